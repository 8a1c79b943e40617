"""Fine-tune and use: what these commands print."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import litebert
from litebert.cli.live import live_view
from litebert.cli.progress import fraction, say
from litebert.cli.training import STOPPED, name_of, speaks
from litebert.corpus.inspect import printable
from litebert.finetuning.baseline import Baseline
from litebert.finetuning.reports import FinetuneReport
from litebert.inference.exits import read_calibration
from litebert.inference.output import to_json_lines
from litebert.model.folder import MODEL
from litebert.tasks.task import Prediction

SHOWN = 200  # characters of a text on a terminal, whose width cuts off more


def finetune(out: Path, **options: Any) -> None:
    """A live view, and the scores of each seed."""
    with live_view() as view:
        result = litebert.finetune(out=out, callbacks=[view], **options)
    if result.report is None:
        print("litebert: stopped and saved; run the same command to resume", file=sys.stderr)
        raise typer.Exit(STOPPED)
    if not speaks():
        return
    _print_seeds(result.report)
    if (calibration := read_calibration(result.folder / MODEL)) is not None:
        print(calibration)
    print(f"{name_of(out)}/model: the best of {len(result.report.seeds)} seed(s)")
    print("where it opens:")
    for line in result.opens:
        print(f"  {line}")
    print(f"next: litebert predict {name_of(out)} --input FILE")


def _print_seeds(report: FinetuneReport) -> None:
    for result in report.seeds:
        parts = [_scores(*part) for part in result.scores.items()]
        if result.intervals:  # of the first dev set
            name, scores = next(iter(result.scores.items()))
            parts[0] = _scores(name, scores, result.intervals)
        print(f"seed {result.seed}: {'   '.join(parts)}")
    if len(report.seeds) > 1:
        print(
            f"{report.metric}: mean {report.mean:.4f}, deviation {report.deviation:.4f}, "
            f"median {report.median:.4f}, best {report.best:.4f}"
        )
    if report.collapses:
        print(f"{report.collapses} run(s) collapsed")
    if report.baseline is not None:
        _print_baseline(report.baseline)


def _print_baseline(baseline: Baseline) -> None:
    print(f"{baseline.name}: {_scores(baseline.part, baseline.scores, baseline.intervals)}")
    print(f"  {baseline.verdict}")


def _scores(
    name: str, scores: Mapping[str, float], intervals: Mapping[str, Sequence[float]] | None = None
) -> str:
    """A dev set's scores, with their 95 % intervals where they are known."""
    found = intervals or {}
    return f"{name}: " + ", ".join(
        f"{metric} {value:.4f}"
        + (f" ({found[metric][0]:.4f} to {found[metric][1]:.4f})" if metric in found else "")
        for metric, value in scores.items()
    )


def scores(**options: Any) -> None:
    """A line for each run and dev set, and GLUE's average."""
    board = litebert.scores(**options)
    for row in board.rows:
        for part, found in row.scores.items():
            lines = [
                f"{metric} {summary.mean:.4f}"
                + ("" if summary.deviation is None else f" ± {summary.deviation:.4f}")
                + ("" if summary.count < 3 else f" (median {summary.median:.4f})")
                for metric, summary in found.items()
            ]
            collapsed = f"   {row.collapses} collapsed" if row.collapses else ""
            print(f"{row.task:10} {part:15} {', '.join(lines)}{collapsed}   {row.run}")
    if board.glue_average is not None:
        print(f"GLUE, average of eight: {board.glue_average:.4f}")
    elif len(board.rows) > 1:
        print(f"no GLUE average: without {', '.join(board.missing)}")


def predict(out: Path | None, **options: Any) -> None:
    """Predictions as a table on a terminal, else as JSON lines; or where they are."""
    with fraction("sequences") as on_progress:
        found = litebert.predict(out=out, say=say, on_progress=on_progress, **options)
    if out is not None:
        print(f"{out}: {len(found):,} predictions")
    elif sys.stdout.isatty():
        Console().print(_table(found))
    else:
        sys.stdout.write(to_json_lines(found))


def _table(predictions: Sequence[Prediction]) -> Table:
    """What was asked, its beginning where it is long, and what is predicted."""
    asked, *_ = (one.inputs for one in predictions)
    table = Table("id", *asked, *predictions[0].brief(), show_lines=False)
    for column in table.columns[1 : 1 + len(asked)]:
        column.no_wrap, column.overflow = True, "ellipsis"
    for one in predictions:
        texts = [
            value if isinstance(value, str) else " ".join(value) for value in one.inputs.values()
        ]
        cells = [one.id, *(text[:SHOWN] for text in texts), *one.brief().values()]
        table.add_row(*(Text(printable(" ".join(cell.split()))) for cell in cells))
    return table


def embed(out: Path | None, **options: Any) -> None:
    """How many vectors there are, or the vectors as lines of JSON."""
    with fraction("texts") as on_progress:
        vectors = litebert.embed(out=out, say=say, on_progress=on_progress, **options)
    if out is None:
        for vector in vectors:
            print(json.dumps([round(number, 6) for number in vector.tolist()]))
        return
    count, width = vectors.shape
    print(f"{out}: {count:,} vectors of {width} numbers")


def bench(as_json: bool, **options: Any) -> None:
    """A line for each input and precision."""
    report = litebert.bench(**options)
    if as_json:
        print(json.dumps(report.as_dict(), indent=2))
        return
    print(f"{report.model}, {report.threads} thread(s); inputs a second, latency in ms")
    print(
        f"{'input':16} {'precision':9} {'tokens':>6} {'depth':>5} {'one by one':>10} "
        f"{'p50':>8} {'p95':>8} {'p99':>8} {'all at once':>11}"
    )
    for row in report.rows:
        print(
            f"{row.input[:16]:16} {row.precision:9} {row.tokens:6.1f} {row.depth:5.1f} "
            f"{row.one_at_a_time:10.1f} {row.p50:8.2f} {row.p95:8.2f} {row.p99:8.2f} "
            f"{row.all_at_once:11.1f}"
        )
    if options.get("out") is not None:
        print(f"{options['out']}: the same as a picture")

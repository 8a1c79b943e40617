"""Choose, plan, pretrain, evaluate: what these commands print."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import typer

import litebert
from litebert.base.remote.urls import as_url
from litebert.cli import INTERRUPTED

STOPPED = INTERRUPTED  # saved before


def presets() -> None:
    """A table of names and titles."""
    from rich.console import Console
    from rich.table import Table

    table = Table("preset", "what it is")
    for name, title in litebert.presets().items():
        table.add_row(name, title)
    Console().print(table)


def plan(as_json: bool, **options: Any) -> None:
    """Plans side by side; as JSON a list of them."""
    from rich.console import Console

    from litebert.planning.report import table

    plans = litebert.plan(**options)
    if as_json:
        print(json.dumps([one.as_dict() for one in plans], indent=2))
    else:
        Console().print(table(plans))


def pretrain(**options: Any) -> None:
    """A live view, and where the model is."""
    _train("pretrain", **options)


def distill(**options: Any) -> None:
    """The same."""
    _train("distill", **options)


def _train(function: str, out: Path, corpus: list[Path], **options: Any) -> None:
    started = time.monotonic()  # a budget of time covers the imports too
    from litebert.cli.live import live_view

    with live_view() as view:
        result = getattr(litebert, function)(
            corpus=corpus, out=out, callbacks=[view], started=started, **options
        )
    if not result.finished:
        print(
            f"litebert: stopped at step {result.step:,} and saved; run the same command to resume",
            file=sys.stderr,
        )
        raise typer.Exit(STOPPED)
    if speaks():
        print(
            f"{name_of(out)}/model: {result.step:,} steps, {result.tokens:,} tokens, "
            f"{result.seconds:,.0f} s"
        )
        print(f"next: litebert evaluate {name_of(out)} --corpus {name_of(corpus[0])}")


def speaks() -> bool:
    """Whether this process prints the result: of several ranks the first."""
    return int(os.environ.get("RANK", "0")) == 0


def name_of(folder: Path) -> str:
    """A folder as the user wrote it: a path loses a slash of a URL."""
    return as_url(folder) or str(folder)


def evaluate(as_json: bool, **options: Any) -> None:
    """Losses and accuracies with intervals, or the scores of a task."""
    from litebert.cli.progress import fraction, say

    with fraction("sequences") as on_progress:
        report: Any = litebert.evaluate(say=say, on_progress=on_progress, **options)
    if as_json:
        print(json.dumps(report.as_dict(), indent=2))
    elif hasattr(report, "objectives"):
        print(_held_out(report))
    elif hasattr(report, "phenomena"):
        print(_minimal_pairs(report))
    else:
        print(_task(report))


def _held_out(report: Any) -> str:
    lines = [f"held-out text, {report.max_length} tokens a sequence"]
    for name, entry in report.objectives.items():
        low, high = entry.interval
        line = f"{name:16} loss {entry.loss:.3f}   accuracy {entry.accuracy:.1%} "
        line += f"({low:.1%} to {high:.1%} of {entry.count:,})"
        if name == "masked_lm":
            line += f"   unigram baseline: loss {report.unigram_loss:.3f}"
        if entry.recall is not None:
            line += f"   recall {entry.recall:.1%}"
        lines.append(line)
    return "\n".join(lines)


def _minimal_pairs(report: Any) -> str:
    lines = [
        f"{report.pairs:,} minimal pairs of {report.paradigms} paradigms; the grammatical sentence "
        "is likelier in",
        f"{'mean':34} plain {report.plain:.1%}           word left to right {report.word:.1%}",
    ]
    for name, one in report.phenomena.items():
        shown = [f"{i.value:.1%} ({i.low:.1%} to {i.high:.1%})" for i in (one.plain, one.word)]
        lines.append(f"{name:34} {shown[0]:26} {shown[1]}   of {one.pairs:,}")
    return "\n".join(lines)


def _task(report: Any) -> str:
    lines = [f"{report.task}, {report.examples:,} examples"]
    for name, value in report.scores.items():
        found = report.intervals.get(name)
        lines.append(
            f"{name:12} {value:.4f}"
            + ("" if found is None else f" ({found.low:.4f} to {found.high:.4f})")
        )
    if report.mean_depth is not None:
        lines.append(f"{'mean depth':12} {report.mean_depth:.2f}")
    for name, row in report.details.get("labels", {}).items():
        lines.append(
            f"  {name:12} precision {row['precision']:.3f}  recall {row['recall']:.3f}  "
            f"F1 {row['f1']:.3f}  of {row['support']:,}"
        )
    if "confusion" in report.details:
        names = list(report.details["labels"])
        lines.append("confusion (rows labels, columns predictions):")
        lines.append(" " * 15 + "".join(f"{name[:12]:>13}" for name in names))
        lines += [
            f"  {name[:12]:12} " + "".join(f"{count:13,}" for count in row)
            for name, row in zip(names, report.details["confusion"], strict=True)
        ]
    return "\n".join(lines)


def plot(**options: Any) -> None:
    """Where the picture is."""
    out = litebert.plot(**options)
    count = len(options["runs"])
    print(f"{out}: {count} {'run' if count == 1 else 'runs'} by {options['x']}")

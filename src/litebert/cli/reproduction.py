"""The papers' tables in a terminal: what there is, how it goes, what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import litebert
from litebert.cli.live import LogLines, View, short
from litebert.cli.progress import messages, say
from litebert.cli.training import STOPPED
from litebert.reproduction.findings import TableFinding
from litebert.reproduction.report import verdict_line
from litebert.reproduction.reproduce import GridView, Reproduction
from litebert.train.callbacks import Callback, RunStarted
from litebert.train.metrics import EvaluationMetrics

FAILED = 1
AT = {"tokens": "equal tokens", "time": "equal time", "counts": "no cost"}


def reproduce(**options: Any) -> None:
    """The list, the commands, or the tables with their verdicts."""
    found = litebert.reproduce(callbacks=TerminalGridView(), **options)
    if found.commands:
        print(found.commands)
    elif not found.findings:
        Console().print(_listing(found))
    for one in found.findings:
        _show(one)
    if found.report is not None:
        print(f"\nthe whole report: {found.report}")
    if not found.finished:
        say("litebert: stopped; run the same command to resume")
        raise typer.Exit(STOPPED)
    if found.failed:
        say(f"litebert: {found.failed} row(s) failed; the same command tries them again")
        raise typer.Exit(FAILED)


class GridRunLines(LogLines):
    """A grid has many runs: of each a line now and then, without samples."""

    def on_start(self, run: RunStarted) -> None:
        View.on_start(self, run)

    def on_evaluation(self, metrics: EvaluationMetrics) -> None:
        super().on_evaluation(metrics.model_copy(update={"sample": ""}))


class TerminalGridView(GridView):
    """A line for every run and evaluation."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    def run(self, name: str) -> Callback:
        self.say(name)
        return GridRunLines(self.console)

    @contextmanager
    def measuring(self, name: str) -> Iterator[None]:
        """On a terminal, what is being measured."""
        with messages() as show:
            show(f"measuring {name}")
            yield


def _listing(found: Reproduction) -> Table:
    """A table a block: columns side by side would be a word wide on a usual terminal."""
    table = Table.grid(padding=(0, 2, 1, 0))
    for one in found.listed:
        rows = "; ".join(row.title for row in one.table.rows.values())
        tokens = "" if one.tokens is None else " to ".join(map(short, sorted(set(one.tokens))))
        each = f", {tokens} tokens a run" if tokens else ""
        about = Text(f"{one.table.title}. {one.table.claim}\n")
        about.append(f"rows at {AT[one.table.compare]}{each}: {rows}\n", "dim")
        about.append(f"expected: {one.remark}" if one.tokens else one.remark)
        table.add_row(Text(one.table.name, "bold"), about)
    return table


def _show(found: TableFinding) -> None:
    print(f"\n{found.table.title}\n{found.table.claim}")
    for row in found.rows.values():
        if (one := row.counted) is not None:
            printed = "" if one.published is None else f"   printed {one.published:g} M"
            print(f"  {row.title:24} {one.with_pooler:>13,}{printed}   {one.remark}")
        elif row.left_out or row.failed:
            print(f"  {row.title:24} {row.failed or 'left out: ' + str(row.left_out)}")
    for pair in found.pairs:
        if pair.ours is None:
            continue
        one, sign = pair.ours.interval, "=" if pair.kind == "same" else ">"
        print(
            f"  {pair.column + ': ' + pair.first + ' ' + sign + ' ' + pair.second:34} "
            f"{one.value:+7.2f} ({one.low:+.2f} to {one.high:+.2f}; detectable "
            f"{pair.ours.detectable:.2f}) {pair.verdict}"
        )
    if found.pairs:
        print(f"  {verdict_line(found)}")


def layers(as_json: bool, out: Path | None, **options: Any) -> None:
    """A line a model, and where the picture is."""
    import json

    curves = litebert.layers(out=out, **options)
    if as_json:
        print(json.dumps([one.as_dict() for one in curves], indent=2))
        return
    for one in curves:
        moved = " ".join(f"{value:.2f}" for value in one.distance)
        print(f"{one.name}: L2 {moved}; changes by {one.roughness:.1%} from layer to layer")
    if out is not None:
        print(f"{out}: {len(curves)} curves over {curves[0].tokens:,} tokens")

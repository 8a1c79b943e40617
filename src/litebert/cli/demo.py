"""The demo in a terminal: its stages, their progress, and what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import litebert
from litebert.cli.live import View, live_view
from litebert.cli.progress import counting
from litebert.cli.training import STOPPED
from litebert.demos.compare import ComparisonJob
from litebert.demos.film_reviews import DemoView
from litebert.demos.findings import MEASURED_ON, Findings, verdict


def demo(**options: Any) -> None:
    """Shown as it goes; findings at its end."""
    view = TerminalView()
    try:
        found = litebert.demo(callbacks=view, **options)
    except KeyboardInterrupt:
        found = None
    if found is None:
        view.say("stopped; run the same command to resume")
        raise typer.Exit(STOPPED)


class TerminalView(DemoView):
    """Says it all on standard output; progress goes to standard error."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)

    def stage(self, title: str) -> None:
        self.console.rule(title)

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    def pretraining(self) -> AbstractContextManager[View]:
        return live_view()

    @contextmanager
    def comparing(self, jobs: int) -> Iterator[Callable[[ComparisonJob, float], None]]:
        """How many fine-tunings are done, and the last one."""
        with counting(jobs) as show:
            yield lambda job, accuracy: show(f"{job.description}: {accuracy:.1%}")

    def findings(self, findings: Findings, page: Path, commands: str) -> None:
        """The tables and the verdict."""
        held_out = findings.held_out
        masked, order = held_out.objectives["masked_lm"], held_out.objectives["sentence_order"]
        self.say(
            f"The encoder, on held-out reviews: {masked.accuracy:.1%} of masked tokens correct "
            f"(loss {masked.loss:.2f}, unigram baseline {held_out.unigram_loss:.2f}), "
            f"sentence order {order.accuracy:.1%} correct"
        )
        for gap in findings.gaps:
            self.say(f"    {gap.sentence}    {', '.join(word for word, _ in gap.words)}")
        self.say(f"\nAccuracy on {MEASURED_ON}, mean of {findings.seeds} seeds (95 % interval)")
        self.console.print(_table(findings))
        for line in verdict(findings.rows):
            self.say(line)
        self.say(f"\nThe whole report: {page}\n\nNext\n\n{commands}")


def _table(findings: Findings) -> Table:
    table = Table("", *findings.rows[0].accuracies)
    for row in findings.rows:
        shown = [
            f"{one.value:.1%} ± {50 * (one.high - one.low):.1f}" for one in row.accuracies.values()
        ]
        table.add_row(*(Text(cell) for cell in (row.name, *shown)))
    return table

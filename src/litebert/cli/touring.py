"""The demo in a terminal: its stages, their progress, and what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from litebert.cli.live import watching
from litebert.cli.progress import counting
from litebert.demo.compare import Job
from litebert.demo.findings import MEASURED_ON, Findings, verdict
from litebert.demo.road import Guide
from litebert.train.callbacks import Watcher


class TerminalGuide(Guide):
    """Says it all on standard output; progress goes to standard error."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)

    def stage(self, title: str) -> None:
        """A line across."""
        self.console.rule(title)

    def say(self, text: str) -> None:
        """As it is."""
        self.console.print(text, markup=False, soft_wrap=True)

    def pretraining(self) -> AbstractContextManager[Watcher]:
        """The live view of a run."""
        return watching()

    @contextmanager
    def comparing(self, jobs: int) -> Iterator[Callable[[Job, float], None]]:
        """How many fine-tunings are done, and the last one."""
        with counting(jobs) as show:
            yield lambda job, accuracy: show(
                f"{job.arm}, {job.labels_name}, rate {job.rate:g}, seed {job.seed}: {accuracy:.1%}"
            )

    def found(self, findings: Findings, page: Path, commands: str) -> None:
        """The tables and the verdict."""
        held_out = findings.held_out
        words, order = held_out["masked_lm"], held_out["sentence_order"]
        self.say(
            f"The encoder, on held-out reviews: {words['accuracy']:.1%} of masked pieces right "
            f"(loss {words['loss']:.2f}, guessing by frequency {held_out['unigram']:.2f}), "
            f"sentence order {order['accuracy']:.1%} right"
        )
        for gap in findings.gaps:
            self.say(f"    {gap.sentence}    {', '.join(word for word, _ in gap.words)}")
        self.say(f"\nAccuracy on {MEASURED_ON}, mean of {findings.seeds} seeds (95 % interval)")
        self.console.print(_table(findings))
        for line in verdict(findings.rows):
            self.say(line)
        self.say(f"\nThe whole report: {page}\n\nGo on with\n\n{commands}")


def _table(findings: Findings) -> Table:
    table = Table("", *findings.rows[0].accuracies)
    for row in findings.rows:
        shown = [
            f"{one.value:.1%} ± {50 * (one.high - one.low):.1f}" for one in row.accuracies.values()
        ]
        table.add_row(*(Text(cell) for cell in (row.name, *shown)))
    return table

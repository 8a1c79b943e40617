"""Where a newcomer starts: the demonstration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("demo"),
    seconds: Annotated[float, typer.Option(help="How long to train.")] = 60.0,
) -> None:
    """Walk the whole road in about two minutes, on text that Python itself ships.

    Plans, trains a tiny ALBERT on masked bytes of Python's manual, saves it, converts it to
    Google's format and back, and shows what the model has learned.
    """
    from litebert.demo import demo as run

    run(out, seconds)

"""Draw the curves of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plot(
    run: Annotated[list[Path], typer.Argument(help="Folders of runs, finished or still going.")],
    out: Annotated[Path, typer.Option(help="The PNG file to write.")] = Path("curves.png"),
    x: Annotated[str, typer.Option("--x", help="Across: tokens, steps or minutes.")] = "tokens",
) -> None:
    """Draw the curves of runs side by side: losses, accuracies, learning rate.

    Thin lines are training text, smoothed; dots are held-out text; dashed lines are what guessing
    gives. Compare runs by tokens for what text was worth, by minutes for what time was worth.

    Example: litebert plot run-albert run-bert --out curves.png --x minutes
    """
    from litebert.train.plot import plot as draw

    draw(run, out, x=x)
    print(f"{out}: {len(run)} {'run' if len(run) == 1 else 'runs'} by {x}")

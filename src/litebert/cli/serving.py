"""Serve: what the command says while it runs, and the demo's model where there is no other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

import litebert
from litebert.cli.progress import say
from litebert.cli.training import STOPPED

DEMO_FOLDER, DEMO_BUDGET = Path("demo"), "60s"


def serve(models: Sequence[str], demo: bool, **options: Any) -> None:
    """Runs until it is stopped; what there is to know goes to the terminal."""
    if demo:
        home = _demo_home()
        models = [*models, *_demo_models(home)]
        options["runs"] = options.get("runs") or home
    litebert.serve(models, say=say, **options)


def _demo_models(home: Path) -> list[str]:
    """One for every view of the playground: a classifier, the same in int8, its encoder before."""
    from litebert.demos.film_reviews import CLASSIFIER

    tuned = home / CLASSIFIER
    return [
        f"{CLASSIFIER}={tuned}@fp32",
        f"{CLASSIFIER}-int8={tuned}@int8",
        f"pretrained={home / 'run'}",
    ]


def _demo_home() -> Path:
    """The folder of the newest demo that came to its end, or of a short one that is run now."""
    from litebert.demos.film_reviews import CLASSIFIER
    from litebert.model.folder import CONFIG

    if not (found := list(DEMO_FOLDER.glob(f"*/{CLASSIFIER}/{CONFIG}"))):
        from litebert.cli.demo import TerminalView

        if litebert.demo(out=DEMO_FOLDER, budget=DEMO_BUDGET, callbacks=TerminalView()) is None:
            print("litebert: stopped; run the same command to resume", file=sys.stderr)
            raise typer.Exit(STOPPED)
        found = list(DEMO_FOLDER.glob(f"*/{CLASSIFIER}/{CONFIG}"))
    newest = max(found, key=lambda path: path.stat().st_mtime)
    return newest.parent.parent

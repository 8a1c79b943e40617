"""Serve: what the command says while it runs."""

from __future__ import annotations

import sys
from typing import Any

import litebert


def serve(**options: Any) -> None:
    """Runs until it is stopped; what there is to know goes to the terminal."""
    litebert.serve(say=lambda text: print(text, file=sys.stderr, flush=True), **options)

"""The live view of a training run: a panel that moves on a terminal, plain lines in a log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from litebert.train.watch import Watcher


class Lines(Watcher):
    """Plain lines."""

    leads = int(os.environ.get("RANK", "0")) == 0

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)

    def say(self, message: str) -> None:
        self.console.print(message, markup=False)

    def record(self, record: dict[str, Any]) -> None:
        self.console.print(str(record), markup=False)


@contextmanager
def watching() -> Iterator[Lines]:
    """Something that shows a run."""
    yield Lines()

"""Whoever watches a run: told of steps, lines of metrics, messages and samples. Does nothing."""

from __future__ import annotations

from typing import Any


class Watcher:
    """Override what you want to see."""

    def begin(self, facts: dict[str, Any]) -> None:
        """The run is about to start: what it is, how long it will be."""

    def step(self, step: int, progress: float) -> None:
        """A step was taken; a share of the budget is spent."""

    def record(self, record: dict[str, Any]) -> None:
        """A line was written to metrics.jsonl."""

    def say(self, message: str) -> None:
        """Something the user should know."""

    def sample(self, text: str) -> None:
        """A held-out sequence with the model's guesses."""

"""Callbacks: whoever follows a run is told of its events. Override what you want to see.

    litebert.pretrain("albert-mini", "corpus", "run", callbacks=[MyCallback()])

The records are those of metrics.jsonl (metrics.py); only the main rank tells them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from litebert.train.metrics import EvaluationMetrics, TrainingMetrics


@dataclass(frozen=True)
class RunStarted:
    """What is about to be trained."""

    title: str
    folder: Path
    parameters: int
    budget: str
    warmup: float  # fraction of the budget
    step: int = 0  # more where a run is resumed
    world_size: int = 1
    unigram_loss: float | None = None  # of predicting masked tokens by their frequency
    text_tokens: int | None = None  # of the corpus, once


class Callback:
    """Does nothing."""

    def on_start(self, run: RunStarted) -> None:
        """Training begins, or is resumed."""

    def on_step(self, step: int, progress: float) -> None:
        """A step was taken; a fraction of the budget is spent."""

    def on_training(self, metrics: TrainingMetrics) -> None:
        """The means of the last few steps."""

    def on_evaluation(self, metrics: EvaluationMetrics) -> None:
        """Held-out text, or the dev sets of a task, were evaluated."""

    def on_message(self, message: str) -> None:
        """Something the user should know."""


class CallbackList(Callback):
    """Tells every event to several callbacks, in their order."""

    def __init__(self, callbacks: Iterable[Callback] = ()) -> None:
        self.callbacks = list(callbacks)

    def on_start(self, run: RunStarted) -> None:
        for callback in self.callbacks:
            callback.on_start(run)

    def on_step(self, step: int, progress: float) -> None:
        for callback in self.callbacks:
            callback.on_step(step, progress)

    def on_training(self, metrics: TrainingMetrics) -> None:
        for callback in self.callbacks:
            callback.on_training(metrics)

    def on_evaluation(self, metrics: EvaluationMetrics) -> None:
        for callback in self.callbacks:
            callback.on_evaluation(metrics)

    def on_message(self, message: str) -> None:
        for callback in self.callbacks:
            callback.on_message(message)

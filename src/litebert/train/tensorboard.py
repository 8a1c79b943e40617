"""TensorBoard: the numbers of metrics.jsonl as event files, for those who watch runs there.

Charts stand in groups: loss, accuracy and recall by objective, training text beside held-out text;
learning rate, gradient norm and speed under "training". See them with `tensorboard --logdir RUN`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from litebert.base.errors import MissingExtraError
from litebert.train.callbacks import Callback, RunStarted
from litebert.train.metrics import EvaluationMetrics, Metrics, TrainingMetrics

FOLDER = "tensorboard"


def scalars(metrics: Metrics) -> Iterator[tuple[str, float]]:
    """The charts that a line of metrics.jsonl has a finite number for, and the numbers."""
    for tag, value in _all_scalars(metrics):
        if value is not None:
            yield tag, value


def _all_scalars(metrics: Metrics) -> Iterator[tuple[str, float | None]]:
    for name in ("loss", "accuracy", "recall"):
        for objective, value in getattr(metrics, name).items():
            yield f"{name}/{objective}/{metrics.kind}", value
    if isinstance(metrics, TrainingMetrics):
        yield "training/learning_rate", metrics.learning_rate
        yield "training/gradient_norm", metrics.gradient_norm
        yield "training/tokens_per_second", metrics.time.tokens_per_second
        yield "training/data_fraction", metrics.time.data_fraction


class TensorBoardLogger(Callback):
    """Writes scalars into RUN/tensorboard. Close it, or use `with`."""

    def __init__(self) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingExtraError(
                package="tensorboard", extra="tensorboard", purpose="log.tensorboard=true"
            ) from None
        self._writer_type = SummaryWriter
        self._writer: Any = None

    def on_start(self, run: RunStarted) -> None:
        """Open the event file; steps that a resumed run makes again are dropped from the old."""
        self._writer = self._writer_type(str(run.folder / FOLDER), purge_step=run.step + 1)

    def on_training(self, metrics: TrainingMetrics) -> None:
        self._write(metrics)

    def on_evaluation(self, metrics: EvaluationMetrics) -> None:
        self._write(metrics)

    def _write(self, metrics: Metrics) -> None:
        if self._writer is not None:
            for tag, value in scalars(metrics):
                self._writer.add_scalar(tag, value, metrics.step)

    def close(self) -> None:
        """Have everything on disk."""
        if self._writer is not None:
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""TensorBoard: the numbers of metrics.jsonl as event files, for those who watch runs there.

    TensorBoard(inner)    passes everything on to `inner`, writes scalars into RUN/tensorboard

Charts stand in groups: loss and accuracy by objective, training text beside held-out text; the
rate, the norm of the gradients and the speed under "training". See them with
`tensorboard --logdir RUN`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from litebert.base.errors import MissingExtraError
from litebert.train.watch import Watcher

FOLDER = "tensorboard"
BY_OBJECTIVE = ("loss", "accuracy", "found")

Record = dict[str, Any]


def scalars(record: Record) -> Iterator[tuple[str, float]]:
    """The charts that a line of metrics.jsonl has a number for, and the numbers.

    What is not finite is left out: TensorBoard would draw it as a gap and complain.
    """
    for tag, value in _all_scalars(record):
        if math.isfinite(value):
            yield tag, value


def _all_scalars(record: Record) -> Iterator[tuple[str, float]]:
    for kind in BY_OBJECTIVE:
        for objective, value in record.get(kind, {}).items():
            yield f"{kind}/{objective}/{record['kind']}", value
    if record["kind"] == "train":
        yield "training/rate", record["rate"]
        yield "training/norm", record["norm"]
        yield "training/tokens_per_second", record["time"]["tokens_per_second"]
        yield "training/data", record["time"]["data"]


class TensorBoard(Watcher):
    """Passes everything on to another watcher, and writes scalars. Close it, or use `with`."""

    def __init__(self, inner: Watcher) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingExtraError(
                package="tensorboard", extra="tensorboard", purpose="log.tensorboard=true"
            ) from None
        self.inner = inner
        self._writer_type = SummaryWriter
        self._writer: Any = None

    def begin(self, facts: dict[str, Any]) -> None:
        """Open the event file; steps that a resumed run makes again are dropped from the old."""
        folder = Path(facts["out"]) / FOLDER
        self._writer = self._writer_type(str(folder), purge_step=facts["step"] + 1)
        self.inner.begin(facts)

    def step(self, step: int, progress: float) -> None:
        """Pass it on."""
        self.inner.step(step, progress)

    def record(self, record: Record) -> None:
        """Write its numbers, and pass it on."""
        if self._writer is not None:
            for tag, value in scalars(record):
                self._writer.add_scalar(tag, value, record["step"])
        self.inner.record(record)

    def say(self, message: str) -> None:
        """Pass it on."""
        self.inner.say(message)

    def sample(self, text: str) -> None:
        """Pass it on."""
        self.inner.sample(text)

    def close(self) -> None:
        """Have everything on disk."""
        if self._writer is not None:
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""Metrics: sums of a run as it goes, and the lines of metrics.jsonl.

A line holds what was learned (equal for equal runs, killed or not) and, under "time", how fast.
A resumed run cuts the file back to the length it had at the checkpoint, so no line is there twice.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Self

from pydantic import Field
from torch import Tensor

from litebert.base.errors import FileError, FormatError, SettingsError
from litebert.base.files import check_regular, read_bytes
from litebert.base.settings import Settings
from litebert.model.objective import Objective, Term

METRICS = "metrics.jsonl"
LARGEST_METRICS = 2**28
Count = Annotated[int, Field(ge=0, lt=2**63)]
Values = dict[str, float | None]  # by name; None where not finite, which JSON cannot say


class Means(Settings):
    """Values by objective. A regression has no accuracy; recall is of the rarer class."""

    loss: Values = Field(default_factory=dict)
    accuracy: Values = Field(default_factory=dict)
    recall: Values = Field(default_factory=dict)


class StepTime(Settings):
    """When a line was written, and how fast the steps before it were."""

    seconds: float
    progress: float
    tokens_per_second: float
    data_fraction: float  # of the time, waiting for data


class EvaluationTime(Settings):
    """When an evaluation ended."""

    seconds: float


class TrainingMetrics(Means):
    """The means of the last few steps."""

    kind: Literal["training"] = "training"
    step: Count
    tokens: Count
    learning_rate: float
    gradient_norm: float | None
    time: StepTime


class Evaluation(Means):
    """What an evaluation found: on held-out text, or the scores of a task's dev sets."""

    scores: dict[str, dict[str, float]] = Field(default_factory=dict)  # dev set -> metric -> value
    sample: str = ""  # a held-out sequence with the predicted tokens


class EvaluationMetrics(Evaluation):
    """An evaluation and when it was made."""

    kind: Literal["evaluation"] = "evaluation"
    step: Count
    tokens: Count
    time: EvaluationTime


Metrics = TrainingMetrics | EvaluationMetrics


def term_values(term: Term) -> list[Tensor]:
    """What is summed of a term: its loss, then its counters."""
    return [term.loss, *term.counts]


@dataclass
class Sums:
    """Losses and counters over some batches, by objective."""

    counters: dict[str, tuple[str, ...]]  # of each objective
    counts: list[float] = field(default_factory=list)  # answers, an entry an objective
    values: list[float] = field(default_factory=list)  # loss and counters, one after the other

    def __post_init__(self) -> None:
        self.counts = self.counts or [0.0] * len(self.counters)
        self.values = self.values or [0.0] * self.width

    @classmethod
    def of(cls, objectives: Sequence[Objective]) -> Self:
        """No sums yet."""
        return cls({objective.name: objective.counters for objective in objectives})

    @property
    def width(self) -> int:
        return sum(1 + len(names) for names in self.counters.values())

    def empty(self) -> Sums:
        return Sums(self.counters)

    def add(self, counts: Sequence[float], values: Sequence[float]) -> None:
        """Those of one more step."""
        self.counts = [a + b for a, b in zip(self.counts, counts, strict=True)]
        self.values = [a + b for a, b in zip(self.values, values, strict=True)]

    def rows(self) -> Iterator[tuple[str, float, dict[str, float]]]:
        """Each objective with its count and its sums by name."""
        left = iter(self.values)
        for (name, counters), count in zip(self.counters.items(), self.counts, strict=True):
            yield name, count, {counter: next(left) for counter in ("loss", *counters)}

    def means(self) -> Means:
        """Losses and accuracies; an objective that was not asked has none."""
        loss, accuracy, recall = {}, {}, {}
        for name, count, sums in self.rows():
            if count:
                loss[name] = finite(sums["loss"] / count)
                if "correct" in sums:
                    accuracy[name] = finite(sums["correct"] / count)
            if sums.get("positives"):
                recall[name] = sums["true_positives"] / sums["positives"]
        return Means(loss=loss, accuracy=accuracy, recall=recall)


def finite(value: float) -> float | None:
    """A number as JSON can hold it."""
    return value if math.isfinite(value) else None


class MetricsFile:
    """metrics.jsonl, written line by line; `path` None writes nothing (other ranks)."""

    def __init__(self, path: Path | None, size: int = 0) -> None:
        self.path = path
        if path is not None:
            if os.path.lexists(path):
                check_regular(path)
            with self._open() as stream:
                stream.truncate(min(size, stream.tell()))

    def write(self, metrics: Metrics) -> None:
        """One more line."""
        if self.path is not None:
            kept = metrics.model_dump(exclude_defaults=True)
            line = json.dumps({"kind": metrics.kind, **kept}, allow_nan=False)
            with self._open() as stream:
                stream.write(line.encode() + b"\n")

    def size(self) -> int:
        """Bytes so far, all of them on disk."""
        if self.path is None:
            return 0
        with self._open() as stream:
            os.fsync(stream.fileno())
            return stream.tell()

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        assert self.path is not None
        try:
            with self.path.open("ab") as stream:
                yield stream
        except OSError as error:
            raise FileError(f"{self.path}: cannot be written ({error})") from None


def read_metrics(run: Path) -> list[Metrics]:
    """The lines of a run's metrics.jsonl; a last line cut short is left out."""
    path = run / METRICS
    if not os.path.lexists(path):
        raise FileError(f"{path}: no such file; name the --out folder of `litebert pretrain`")
    try:
        lines = read_bytes(path, LARGEST_METRICS).decode().split("\n")
    except ValueError as error:  # bad UTF-8
        raise FormatError(f"{path}: not readable as metrics ({error})") from None
    found: list[Metrics] = []
    for number, line in enumerate(lines[:-1], 1):  # what follows the last line end is cut short
        found.append(_parse(line, f"{path}, line {number:,}"))
    return found


def _parse(line: str, where: str) -> Metrics:
    try:
        content: Any = json.loads(line)
        kind = EvaluationMetrics if content["kind"] == "evaluation" else TrainingMetrics
        return kind.build(content, where)
    except (LookupError, TypeError, ValueError, RecursionError):
        raise FormatError(f"{where}: no line of metrics; the file is damaged") from None
    except SettingsError as error:
        raise FormatError(f"{error}; no line of metrics, or of another version") from None

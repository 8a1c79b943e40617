"""Metrics: sums of a run as it goes, one line of metrics.jsonl for every few steps.

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
from typing import Any, BinaryIO

from litebert.base.errors import FileError
from litebert.objectives.base import Objective, Term

Record = dict[str, Any]
FIELDS = ("loss", "right", "found", "hidden")  # of a term


def term_sums(term: Term) -> list[Any]:
    """A term's sums, in the order of FIELDS; 0 for what it has not."""
    return [getattr(term, name) if getattr(term, name) is not None else 0.0 for name in FIELDS]


@dataclass
class Sums:
    """Sums and counts over some batches, by objective."""

    names: list[str]
    counts: list[float] = field(default_factory=list)
    values: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.counts = self.counts or [0.0] * len(self.names)
        self.values = self.values or [[0.0] * len(FIELDS) for _ in self.names]

    def add(self, counts: Sequence[float], values: Sequence[Sequence[float]]) -> None:
        """Those of one more step."""
        self.counts = [a + b for a, b in zip(self.counts, counts, strict=True)]
        self.values = [
            [a + b for a, b in zip(mine, more, strict=True)]
            for mine, more in zip(self.values, values, strict=True)
        ]

    def means(self) -> Record:
        """Losses and shares of right answers; an objective that was not asked has none."""
        record: Record = {"loss": {}, "accuracy": {}, "found": {}}
        for name, count, (loss, right, found, hidden) in zip(
            self.names, self.counts, self.values, strict=True
        ):
            if count:
                record["loss"][name], record["accuracy"][name] = loss / count, right / count
            if hidden:
                record["found"][name] = found / hidden
        return record if record["found"] else {k: record[k] for k in ("loss", "accuracy")}


def new_sums(objectives: Sequence[Objective]) -> Sums:
    """No sums yet."""
    return Sums([objective.name for objective in objectives])


class MetricsFile:
    """metrics.jsonl, written line by line; `path` None writes nothing (other ranks)."""

    def __init__(self, path: Path | None, size: int = 0) -> None:
        self.path = path
        if path is not None:
            with self._open() as stream:
                stream.truncate(min(size, stream.tell()))

    def write(self, record: Record) -> None:
        """One more line."""
        if self.path is not None:
            with self._open() as stream:
                stream.write(json.dumps(_plain(record), allow_nan=False).encode() + b"\n")

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


def _plain(value: Any) -> Any:
    """A record with null for numbers that are not finite: JSON has no others."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_metrics(run: Path) -> list[Record]:
    """The lines of a run's metrics.jsonl; a last line cut short is left out."""
    records = []
    for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    return records

"""Measurements of a run, kept beside it: each a value, and pseudo-values by block of examples.

RUN/measures.json    by measure; what is there is not measured again
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from litebert.base.files import json_text, read_json, write_atomic
from litebert.base.settings import load_record
from litebert.reproduction.statistics import jackknife, jackknife_ratio

MEASURED = "measures.json"
BLOCKS = 50  # of examples, where they can be told apart


@dataclass(frozen=True)
class Measurement:
    """One measure of one run."""

    value: float
    blocks: list[float]  # pseudo-values

    @property
    def is_finite(self) -> bool:
        """Whether it is a number: none of nothing, as of pairs in a text without any."""
        return bool(np.isfinite([self.value, *self.blocks]).all())

    @classmethod
    def of_ratio(cls, top: Sequence[float], bottom: Sequence[float], factor: float) -> Measurement:
        """A ratio of sums over blocks, times a factor (100: points)."""
        one, other = np.asarray(top, np.float64), np.asarray(bottom, np.float64)
        blocks = factor * jackknife_ratio(one, other) if len(one) > 1 else np.zeros(0)
        return cls(float(factor * one.sum() / other.sum()), blocks.tolist())

    @classmethod
    def of_score(
        cls, score: Callable[[NDArray[np.int64]], float], examples: int, factor: float
    ) -> Measurement:
        """A score of any examples, by their indices."""
        count = min(BLOCKS, examples)
        blocks = [np.arange(first, examples, count) for first in range(count)]
        pseudo = factor * jackknife(score, blocks) if count > 1 else np.zeros(0)
        return cls(factor * score(np.arange(examples)), pseudo.tolist())


def read_measurements(run: Path) -> dict[str, Measurement]:
    """What was measured of a run so far."""
    path = run / MEASURED
    if not os.path.lexists(path):
        return {}
    return load_record(dict[str, Measurement], read_json(path), str(path))


def keep_measurements(run: Path, found: Mapping[str, Measurement]) -> None:
    """Add to what was measured."""
    known = read_measurements(run) | dict(found)
    content = {name: asdict(one) for name, one in known.items()}
    write_atomic(run / MEASURED, json_text(content).encode())

"""Correlations of numbers with predictions of them, between -1 and 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from litebert.base.intervals import Metric, paired


def pearson(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Linear correlation; 0 if either side is constant, not a number if either has such a value.

    The correlation of a constant is not defined. GLUE's scorers count it as 0, which is what a
    model that gives every pair the same number has earned.
    """
    labels, predictions = (side.astype(np.float64) for side in paired(labels, predictions))
    if not (np.isfinite(labels).all() and np.isfinite(predictions).all()):
        return float("nan")
    if (labels == labels[0]).all() or (predictions == predictions[0]).all():
        return 0.0
    return float(np.clip(_direction(labels) @ _direction(predictions), -1.0, 1.0))


def spearman(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Correlation of the ranks, equal values sharing the mean of theirs; else as `pearson`."""
    labels, predictions = (side.astype(np.float64) for side in paired(labels, predictions))
    if not (np.isfinite(labels).all() and np.isfinite(predictions).all()):
        return float("nan")
    return pearson(ranks(labels), ranks(predictions))


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """The rank of each value, from 1; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def _direction(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values about their mean, as a vector of length 1."""
    # The scaling first, so that squares of very large or very small values neither overflow nor
    # vanish.
    values = values / np.abs(values).max()
    values = values - values.mean()
    values = values / np.abs(values).max()
    return values / np.linalg.norm(values)


CORRELATION_METRICS: dict[str, Metric] = {"pearson": pearson, "spearman": spearman}

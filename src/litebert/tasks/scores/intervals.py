"""How far a score can be trusted: over seeds (Student) and over examples (bootstrap).

Fine-tuning small sets differs more between seeds than between good models, so that a score comes
with its spread, and two models are compared seed by seed: `paired_difference`. What another sample
of examples would have given is the bootstrap's question (Efron 1979; percentile intervals). Two
models on the same examples are compared by `bootstrap_mean` of the difference of their scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import cos, pi, sin, sqrt, tan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from litebert.base.errors import SettingsError
from litebert.tasks.scores.metrics import Metric, paired

AT_ONCE = 1_000_000  # indices drawn at a time: 8 MB


@dataclass(frozen=True)
class Interval:
    """A value and what it lies between."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Summary:
    """A score over seeds. One seed has no deviation (None), rather than one of 0."""

    mean: float
    median: float
    deviation: float | None
    count: int


def over_seeds(values: ArrayLike) -> Summary:
    """Mean, median and standard deviation (of a sample: n - 1) of a score over seeds."""
    values = _numbers(values, 1)
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Summary(float(np.mean(values)), float(np.median(values)), deviation, len(values))


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """The mean over seeds, between Student's limits."""
    values = _numbers(values, 2)
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1)) / sqrt(len(values))
    half = student_quantile(len(values) - 1, confidence) * error
    return Interval(mean, mean - half, mean + half)


def paired_difference(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> Interval:
    """How much better the first is than the second, run with the same seeds in the same order."""
    first, second = paired(first, second)
    return mean_interval(first - second, confidence)


def student_quantile(freedom: int, confidence: float = 0.95) -> float:
    """The t that Student's distribution lies within, on both sides, with this confidence.

    For whole degrees of freedom the probability is a finite sum in an angle, t = sqrt(freedom)
    tan(angle) (Abramowitz and Stegun 26.7.3 and 26.7.4). It rises with the angle, so halving
    finds it.
    """
    if freedom < 1 or not 0 < confidence < 1:
        raise SettingsError(
            f"no quantile for {freedom} degrees of freedom and confidence {confidence}; they must "
            "be at least 1, and between 0 and 1"
        )
    low, high = 0.0, pi / 2
    while low < (middle := (low + high) / 2) < high:
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return sqrt(freedom) * tan(high)


def _within(angle: float, freedom: int) -> float:
    """The probability that Student's t is, on both sides, within sqrt(freedom) tan(angle)."""
    odd = freedom % 2
    # Odd: c + 2/3 c^3 + 2·4/3·5 c^5 …; even: 1 + 1/2 c^2 + 1·3/2·4 c^4 …
    step = np.arange(1, (freedom - odd) // 2, dtype=np.float64)
    ratios = (2 * step - 1 + odd) / (2 * step + odd) * cos(angle) ** 2
    total = 1.0 + float(np.cumprod(ratios).sum())
    if odd:
        beyond = sin(angle) * cos(angle) * total if freedom > 1 else 0.0
        return 2 / pi * (angle + beyond)
    return sin(angle) * total


def bootstrap_mean(
    scores: ArrayLike, *, resamples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> Interval:
    """The mean of a score of each example (right or wrong, F1, …) with its percentile interval."""
    scores = _numbers(scores, 1)
    means = [scores[drawn].mean(axis=1) for drawn in _draws(len(scores), resamples, seed)]
    return _percentiles(float(np.mean(scores)), np.concatenate(means), confidence)


def bootstrap(
    metric: Metric,
    truth: ArrayLike,
    guess: ArrayLike,
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Any metric with its percentile interval, over the examples that `bootstrap_mean` draws.

    For a metric that is a mean over examples, `bootstrap_mean` is the same, many at a time.
    """
    truth, guess = paired(truth, guess)
    values = [
        metric(truth[row], guess[row])
        for drawn in _draws(len(truth), resamples, seed)
        for row in drawn
    ]
    return _percentiles(metric(truth, guess), np.asarray(values), confidence)


def bootstrap_sums(
    parts: ArrayLike,
    score: Callable[[NDArray[np.float64]], ArrayLike],
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """A score made from sums over examples (F1 from three counts), with its percentile interval.

    `parts` has a row of numbers for each example; `score` takes their sums, one row or many.
    """
    rows = np.asarray(parts, np.float64)
    values = [score(rows[drawn].sum(axis=1)) for drawn in _draws(len(rows), resamples, seed)]
    whole = float(np.asarray(score(rows.sum(axis=0))))
    return _percentiles(whole, np.concatenate(values), confidence)


def _draws(count: int, resamples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Rows of `count` examples drawn with replacement, as many rows at a time as memory likes."""
    if resamples < 1:
        raise SettingsError(f"resamples = {resamples}: at least 1 is needed, 1000 are usual")
    generator = np.random.default_rng(seed)
    rows = max(AT_ONCE // count, 1)
    for start in range(0, resamples, rows):
        yield generator.integers(count, size=(min(rows, resamples - start), count))


def _percentiles(value: float, values: NDArray[np.float64], confidence: float) -> Interval:
    if not 0 < confidence < 1:
        raise SettingsError(f"confidence = {confidence}: it must be between 0 and 1")
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return Interval(value, float(low), float(high))


def _numbers(values: ArrayLike, at_least: int) -> NDArray[np.float64]:
    values = np.asarray(values, np.float64)
    if values.ndim != 1 or len(values) < at_least:
        raise SettingsError(
            f"found {values.size} scores; an interval or a summary needs at least {at_least}"
        )
    return values

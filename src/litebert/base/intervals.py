"""How far a score can be trusted: over seeds (Student), over examples (bootstrap), of a fraction.

Fine-tuning small sets differs more between seeds than between good models, so that a score comes
with its spread, and two models are compared seed by seed: `paired_difference`. What another sample
of examples would have given is the bootstrap's question (Efron 1979; percentile intervals). Two
models on the same examples are compared by `bootstrap_mean` of the difference of their scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from litebert.base.errors import MissingExtraError, SettingsError

DRAWN_AT_ONCE = 1_000_000  # indices: 8 MB
NORMAL_95 = 1.96  # the normal distribution lies within it, on both sides, with 95 % probability
PERFECT = 1.0

Metric = Callable[[ArrayLike, ArrayLike], float]  # of labels and predictions


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


def wilson(correct: float, count: float, z: float = NORMAL_95) -> Interval:
    """A fraction and its interval (Wilson 1927): sound near 0 and 1, and for small counts."""
    fraction, square = correct / count, z * z / count
    middle = (fraction + square / 2) / (1 + square)
    half = z * sqrt(fraction * (1 - fraction) / count + square / (4 * count)) / (1 + square)
    return Interval(fraction, max(middle - half, 0.0), min(middle + half, 1.0))


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
    """The t that Student's distribution lies within, on both sides, with this confidence."""
    if freedom < 1 or not 0 < confidence < 1:
        raise SettingsError(
            f"no quantile for {freedom} degrees of freedom and confidence {confidence}; they must "
            "be at least 1, and between 0 and 1"
        )
    try:
        from scipy.stats import t
    except ImportError:
        raise MissingExtraError("scipy", "demo", "an interval over seeds") from None
    return float(t.ppf((1 + confidence) / 2, freedom))


def bootstrap_mean(
    scores: ArrayLike, *, resamples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> Interval:
    """The mean of a score of each example (correct or not, F1, …) with its percentile interval."""
    scores = _numbers(scores, 1)
    return _bootstrap(
        float(np.mean(scores)), lambda drawn: scores[drawn].mean(axis=1),
        len(scores), resamples, confidence, seed,
    )  # fmt: skip


def bootstrap(
    metric: Metric, labels: ArrayLike, predictions: ArrayLike, *,
    resamples: int = 1000, confidence: float = 0.95, seed: int = 0,
) -> Interval:  # fmt: skip
    """Any metric with its percentile interval, over the examples that `bootstrap_mean` draws.

    For a metric that is a mean over examples, `bootstrap_mean` is the same, many at a time.
    """
    labels, predictions = paired(labels, predictions)
    return _bootstrap(
        metric(labels, predictions),
        lambda drawn: np.asarray([metric(labels[row], predictions[row]) for row in drawn]),
        len(labels), resamples, confidence, seed,
    )  # fmt: skip


def bootstrap_difference(
    metric: Metric, labels: ArrayLike, first: ArrayLike, second: ArrayLike, *,
    resamples: int = 1000, confidence: float = 0.95, seed: int = 0,
) -> Interval:  # fmt: skip
    """How much better the first predictions are than the second, on the same drawn examples."""
    labels, first = paired(labels, first)
    labels, second = paired(labels, second)

    def difference(drawn: NDArray[np.int64]) -> float:
        return metric(labels[drawn], first[drawn]) - metric(labels[drawn], second[drawn])

    return _bootstrap(
        difference(np.arange(len(labels))),
        lambda drawn: np.asarray([difference(row) for row in drawn]),
        len(labels), resamples, confidence, seed,
    )  # fmt: skip


def bootstrap_sums(
    parts: ArrayLike, score: Callable[[NDArray[np.float64]], ArrayLike], *,
    resamples: int = 1000, confidence: float = 0.95, seed: int = 0,
) -> Interval:  # fmt: skip
    """A score made from sums over examples (F1 from three counts), with its percentile interval.

    `parts` has a row of numbers for each example; `score` takes their sums, one row or many.
    """
    rows = np.asarray(parts, np.float64)
    return _bootstrap(
        float(np.asarray(score(rows.sum(axis=0)))),
        lambda drawn: np.asarray(score(rows[drawn].sum(axis=1))),
        len(rows), resamples, confidence, seed,
    )  # fmt: skip


def paired(labels: ArrayLike, predictions: ArrayLike) -> tuple[NDArray, NDArray]:
    """Both sides as flat arrays of one length that is not 0, or an error that says why not."""
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if labels.ndim != 1 or labels.shape != predictions.shape or not len(labels):
        raise SettingsError(
            f"cannot score predictions of shape {predictions.shape} against labels of shape "
            f"{labels.shape}; give one prediction for each of at least one example"
        )
    return labels, predictions


def _bootstrap(
    value: float, score: Callable[[NDArray[np.int64]], NDArray[np.float64]], count: int,
    resamples: int, confidence: float, seed: int,
) -> Interval:  # fmt: skip
    """Percentiles of the scores of examples drawn with replacement, memory allowing many a time."""
    if resamples < 1:
        raise SettingsError(f"resamples = {resamples}: at least 1 is needed, 1000 are usual")
    if not 0 < confidence < 1:
        raise SettingsError(f"confidence = {confidence}: it must be between 0 and 1")
    generator = np.random.default_rng(seed)
    rows = max(DRAWN_AT_ONCE // count, 1)
    values = [
        score(generator.integers(count, size=(min(rows, resamples - start), count)))
        for start in range(0, resamples, rows)
    ]
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(values), [tail, 1 - tail]).tolist()
    if low == value == PERFECT:  # examples that are all correct are so however they are drawn
        low = wilson(count, count).low
    return Interval(value, low, high)


def _numbers(values: ArrayLike, at_least: int) -> NDArray[np.float64]:
    values = np.asarray(values, np.float64)
    if values.ndim != 1 or len(values) < at_least:
        raise SettingsError(
            f"found {values.size} scores; an interval or a summary needs at least {at_least}"
        )
    return values

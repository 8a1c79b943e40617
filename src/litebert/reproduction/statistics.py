"""What a difference between rows is worth: paired seeds, crossed with examples.

A measurement of a row is a matrix of seeds by blocks of examples. Seeds are paired (seed s of every
row saw the same text in the same order) and all rows are asked the same blocks, so that

    difference(seed, block) = effect + seed's part + block's part + rest

and the variance of the mean difference is that of seeds over S plus that of blocks over B (crossed
random effects; the rest is in both, which errs on the safe side). The seeds' part is pooled over
all rows of a table, as in a randomised block design, because three seeds of one pair alone decide
next to nothing; degrees of freedom follow Satterthwaite (1946). A score that is no mean (a
correlation, an F1, a ratio of sums) enters by its jackknife pseudo-values, block by block.

`bootstrap_crossed` draws seeds and blocks with replacement instead (Multi-Bootstrap, Sellam et al.
2022): without assumptions, but too narrow for fewer than about ten seeds.

Shapes: R rows, S seeds, B blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from litebert.base.errors import MissingExtraError
from litebert.base.intervals import Interval, student_quantile

Verdict = Literal["agrees", "contradicts", "undecided"]
Matrix = NDArray[np.float64]
CONFIDENCE, POWER = 0.95, 0.80
POINTS = 400  # of a numerical integral


@dataclass(frozen=True)
class Scored:
    """A measure of one row: its value by seed, and pseudo-values by seed and block."""

    values_S: Matrix
    blocks_SB: Matrix


@dataclass(frozen=True)
class Difference:
    """How much higher one row's measure is than another's, and what that is worth."""

    interval: Interval  # 95 %
    error: float  # standard error
    freedom: float  # degrees of freedom
    detectable: float  # the smallest true difference found with a power of 80 %


def jackknife(score: Callable[[NDArray[np.int64]], float], blocks: Sequence[NDArray]) -> Matrix:
    """Pseudo-values of a score: what each block of examples contributes (Tukey 1958).

    `score` takes the indices of examples; the mean of the pseudo-values is the score without the
    first order of its bias.
    """
    whole = score(np.concatenate(blocks))
    count = len(blocks)
    without = [
        score(np.concatenate([block for j, block in enumerate(blocks) if j != i]))
        for i in range(count)
    ]
    return count * whole - (count - 1) * np.asarray(without, np.float64)


def jackknife_ratio(top_B: Matrix, bottom_B: Matrix) -> Matrix:
    """The same for a ratio of sums over blocks, at once."""
    count = len(top_B)
    whole = top_B.sum() / bottom_B.sum()
    without = (top_B.sum() - top_B) / (bottom_B.sum() - bottom_B)
    return count * whole - (count - 1) * without


def compare(rows: Mapping[str, Scored], first: str, second: str) -> Difference | None:
    """The first row's measure minus the second's; None where one seed cannot say how sure it is.

    All `rows` of the table tell how much seeds differ; those with another number of seeds are left
    out of that.
    """
    one, other = rows[first], rows[second]
    seeds = min(len(one.values_S), len(other.values_S))
    if seeds < 2:
        return None
    mean = float(np.mean(one.values_S[:seeds] - other.values_S[:seeds]))
    same = [row.values_S[:seeds] for row in rows.values() if len(row.values_S) >= seeds]
    of_seeds, seed_freedom = _seed_variance(np.stack(same))
    of_blocks, block_freedom = _block_variance(one.blocks_SB[:seeds] - other.blocks_SB[:seeds])
    freedom = _satterthwaite([(of_seeds, seed_freedom), (of_blocks, block_freedom)])
    return _difference(mean, (of_seeds + of_blocks) ** 0.5, freedom)


def _seed_variance(values_RS: Matrix) -> tuple[float, float]:
    """Variance of a difference of two rows' means by seeds, pooled over the rows; its freedom."""
    rows, seeds = values_RS.shape
    rest = values_RS - values_RS.mean(1, keepdims=True) - values_RS.mean(0) + values_RS.mean()
    freedom = (rows - 1) * (seeds - 1)
    return float(2 * (rest**2).sum() / freedom / seeds), freedom


def _block_variance(difference_SB: Matrix) -> tuple[float, float]:
    """Variance of the mean difference by blocks, and its freedom."""
    blocks = difference_SB.shape[1]
    if blocks < 2:
        return 0.0, 1.0
    return float(difference_SB.mean(0).var(ddof=1) / blocks), blocks - 1.0


def _satterthwaite(parts: Sequence[tuple[float, float]]) -> float:
    total = sum(variance for variance, _ in parts)
    lower = sum(variance**2 / freedom for variance, freedom in parts)
    return total**2 / lower if lower > 0 else parts[0][1]


def _difference(mean: float, error: float, freedom: float) -> Difference:
    half = quantile(freedom, CONFIDENCE) * error
    return Difference(
        Interval(mean, mean - half, mean + half), error, freedom, detectable(error, freedom)
    )


def quantile(freedom: float, confidence: float) -> float:
    """Student's, also for broken degrees of freedom (rounded down to tenths; at least one)."""
    return _quantile(int(10 * max(freedom, 1.0)), confidence)


@lru_cache(maxsize=4096)
def _quantile(tenths: int, confidence: float) -> float:
    low, part = tenths // 10, tenths % 10 / 10
    upper = student_quantile(low + 1, confidence) if part else 0.0
    return (1 - part) * student_quantile(low, confidence) + part * upper


def detectable(error: float, freedom: float, power: float = POWER) -> float:
    """The smallest true difference that a test at 5 % finds with this power."""
    return error * _shift(int(10 * max(freedom, 1.0)), power)


@lru_cache(maxsize=1024)
def _shift(tenths: int, power: float) -> float:
    """That difference in standard errors, by bisection."""
    freedom = tenths / 10
    low, high = 0.0, 4 * quantile(freedom, CONFIDENCE)
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if power_of(middle, freedom) < power else (low, middle)
    return high


def power_of(shift: float, freedom: float) -> float:
    """How often a test at 5 % finds a true difference of so many standard errors.

    The noncentral t distribution, integrated over the quantiles of the error's own error.
    """
    stats = _scipy_stats()
    levels = (np.arange(POINTS) + 0.5) / POINTS
    errors = np.sqrt(stats.chi2.ppf(levels, freedom) / freedom) * quantile(freedom, CONFIDENCE)
    return float(np.mean(stats.norm.cdf(shift - errors) + stats.norm.cdf(-shift - errors)))


def _scipy_stats() -> Any:
    try:
        from scipy import stats
    except ImportError:
        raise MissingExtraError("scipy", "baseline", "the statistics of a reproduction") from None
    return stats


def verdict(found: Difference | None, better: int) -> Verdict:
    """Whether a difference has the sign that the paper's has (`better` is 1 or -1)."""
    if found is None or not (found.interval.low > 0 or found.interval.high < 0):
        return "undecided"
    return "agrees" if np.sign(found.interval.value) == better else "contradicts"


def equivalence(found: Difference | None, margin: float) -> Verdict:
    """Whether two rows are the same within a margin: two one-sided tests at 5 % each.

    Agrees where the 90 % interval lies within the margin, contradicts where the 95 % interval lies
    beyond it.
    """
    if found is None:
        return "undecided"
    half = quantile(found.freedom, 0.90) * found.error
    if abs(found.interval.value) + half < margin:
        return "agrees"
    outside = found.interval.low > margin or found.interval.high < -margin
    return "contradicts" if outside else "undecided"


def bootstrap_crossed(
    difference_SB: Matrix, *, resamples: int = 2000, confidence: float = CONFIDENCE, seed: int = 0
) -> Interval:
    """The mean of a matrix of differences, with seeds and blocks drawn with replacement."""
    seeds, blocks = difference_SB.shape
    generator = np.random.default_rng(seed)
    drawn_S = generator.integers(seeds, size=(resamples, seeds))
    drawn_B = generator.integers(blocks, size=(resamples, blocks))
    weights_S = np.stack([(drawn_S == s).sum(1) for s in range(seeds)], 1) / seeds
    weights_B = np.stack([(drawn_B == b).sum(1) for b in range(blocks)], 1) / blocks
    means = np.einsum("ns,sb,nb->n", weights_S, difference_SB, weights_B, optimize=True)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(difference_SB.mean()), float(low), float(high))

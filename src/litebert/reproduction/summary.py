"""All tables together: is our order of rows closer to the papers' than chance would have it?

Under the hypothesis that our results have nothing to do with the published ones, the rows of a
table could be exchanged. So the rows of every table are permuted, all columns alike, and the
agreement of each permutation is compared with the agreement found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

MOST_EXACT = 20_000  # permutations; beyond, so many are drawn


@dataclass(frozen=True)
class ColumnOrder:
    """One column: our values by row, and the pairs that the paper separates (better, worse)."""

    values: Sequence[float]  # better is higher; divided by the error of a difference
    pairs: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class OrderSummary:
    """How well the order of rows agrees, over all tables."""

    agreement: float  # mean over pairs of (better - worse), in standard errors
    expected: float  # of exchanged rows
    p_value: float  # one-sided
    pairs: int


def summarize(tables: Sequence[Sequence[ColumnOrder]], seed: int = 0) -> OrderSummary | None:
    """The permutation test; None where there is no pair."""
    tables = [table for table in tables if any(column.pairs for column in table)]
    pairs = sum(len(column.pairs) for table in tables for column in table)
    if not pairs:
        return None
    found = sum(_agreement(table, np.arange(_rows(table))) for table in tables)
    drawn = _permuted(tables, seed)
    at_least = float(np.mean(drawn >= found - 1e-12))
    if not _is_exact(tables):  # the order found is one of them
        at_least = (at_least * len(drawn) + 1) / (len(drawn) + 1)
    return OrderSummary(found / pairs, float(drawn.mean()) / pairs, at_least, pairs)


def _rows(table: Sequence[ColumnOrder]) -> int:
    return len(table[0].values)


def _agreement(table: Sequence[ColumnOrder], order: NDArray) -> float:
    total = 0.0
    for column in table:
        values = np.asarray(column.values)[order]
        total += sum(float(values[a] - values[b]) for a, b in column.pairs)
    return total


def _is_exact(tables: Sequence[Sequence[ColumnOrder]]) -> bool:
    return prod(factorial(min(_rows(table), 20)) for table in tables) <= MOST_EXACT


def _permuted(tables: Sequence[Sequence[ColumnOrder]], seed: int) -> NDArray[np.float64]:
    if _is_exact(tables):
        sums = [
            [_agreement(table, np.asarray(order)) for order in permutations(range(_rows(table)))]
            for table in tables
        ]
        return np.asarray([sum(each) for each in product(*sums)])
    generator = np.random.default_rng(seed)
    return np.asarray(
        [
            sum(_agreement(table, generator.permutation(_rows(table))) for table in tables)
            for _ in range(MOST_EXACT // 4)
        ]
    )

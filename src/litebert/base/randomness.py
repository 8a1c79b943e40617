"""Keyed randomness: random numbers that are pure functions of what they are for.

A generator with a state makes every draw depend on all draws before it, so another number of
workers, ranks or restarts changes the samples. Here a draw is a hash of names: seed, epoch,
document, sample, position, and the purpose of the draw. It is the finaliser of SplitMix64 (Steele,
Lea and Flood 2014) applied once for each name, over whole arrays.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from litebert.base.ragged import IntArray, positions_within, row_ids

Bits = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


class Purpose(IntEnum):
    """What a draw decides. The numbers are part of every stored position: only add to them."""

    HELD_OUT = 1
    BLOCK_ORDER = 2
    SAMPLE_ORDER = 3
    BATCH_ORDER = 4
    SAMPLE = 5
    SHORT_SEQ = 6
    SHORT_SEQ_LENGTH = 7
    SPLIT = 8
    NEGATIVE = 9
    RANDOM_NEXT_DOCUMENT = 10
    RANDOM_NEXT_SENTENCE = 11
    TRUNCATION_FIRST = 12
    TRUNCATION_SECOND = 13
    SINGLE_SEGMENT = 14
    MASK_ORDER = 15
    MASK_LENGTH = 16
    MASK_KIND = 17
    MASK_TOKEN = 18
    MASK_BUDGET = 19
    GENERATOR = 20
    DROPOUT = 21
    WEIGHTS = 22


def random_bits(*names: ArrayLike) -> Bits:
    """64 random bits for each combination of names, which are broadcast against each other."""
    with np.errstate(over="ignore"):
        bits: Bits = np.zeros((), dtype=np.uint64)
        for name in names:
            bits = (bits ^ np.asarray(name).astype(np.uint64)) + _GOLDEN
            bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
            bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
            bits = bits ^ (bits >> np.uint64(31))
    return bits


def uniform(bits: Bits) -> NDArray[np.float64]:
    """Numbers in [0, 1)."""
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def integers(bits: Bits, high: ArrayLike) -> IntArray:
    """Whole numbers from 0 to `high` - 1, for limits up to 2^31."""
    high = np.asarray(high).astype(np.uint64)
    return ((bits >> np.uint64(32)) * high >> np.uint64(32)).astype(np.int64)


def binomial(bits: Bits, trials: IntArray) -> IntArray:
    """How many of `trials` fair coins show heads: exact draws, one for each name."""
    words = -(-trials // 64)
    owner, turn = row_ids(words), positions_within(words)
    spare = np.clip(64 * (turn + 1) - trials[owner], 0, 63).astype(np.uint64)
    shown = np.bitwise_count(random_bits(bits[owner], turn) >> spare)
    return np.bincount(owner, shown, len(trials)).astype(np.int64)


def permutation(count: int, *names: int) -> IntArray:
    """A random order of 0 … `count` - 1."""
    return np.argsort(random_bits(*names, np.arange(count)), kind="stable")

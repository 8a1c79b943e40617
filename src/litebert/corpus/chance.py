"""Chance without a state: random numbers that are pure functions of what they are for.

A generator with a state makes every draw depend on all draws before it, so another number of
workers, ranks or restarts changes the samples. Here a draw is a hash of names: seed, epoch,
document, sample, position, and the purpose of the draw. It is the finaliser of SplitMix64 (Steele,
Lea and Flood 2014) applied once for each name, over whole arrays.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from litebert.base.batch import Bits

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


class For(IntEnum):
    """What a draw decides. The numbers are part of every stored position: only add to them."""

    HELD_OUT = 1
    BLOCK_ORDER = 2
    SAMPLE_ORDER = 3
    BATCH_ORDER = 4
    SAMPLE = 5
    SHORT = 6
    SHORT_LENGTH = 7
    SPLIT = 8
    NEGATIVE = 9
    BORROWED_DOCUMENT = 10
    BORROWED_SENTENCE = 11
    TRUNCATION_FIRST = 12
    TRUNCATION_SECOND = 13
    SINGLE = 14
    MASK_ORDER = 15
    MASK_LENGTH = 16
    MASK_KIND = 17
    MASK_TOKEN = 18
    MASK_BUDGET = 19
    GENERATOR = 20
    DROPOUT = 21
    WEIGHTS = 22


def draw(*names: ArrayLike) -> Bits:
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


def below(bits: Bits, limit: ArrayLike) -> NDArray[np.int64]:
    """Whole numbers from 0 to `limit` - 1, for limits up to 2^31."""
    limit = np.asarray(limit).astype(np.uint64)
    return ((bits >> np.uint64(32)) * limit >> np.uint64(32)).astype(np.int64)


def heads(bits: Bits, tosses: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of `tosses` fair coins show heads: exact binomial draws, one for each name."""
    words = -(-tosses // 64)
    owner = np.repeat(np.arange(len(tosses)), words)
    turn = np.arange(len(owner)) - np.repeat(np.cumsum(words) - words, words)
    spare = np.clip(64 * (turn + 1) - tosses[owner], 0, 63).astype(np.uint64)
    shown = np.bitwise_count(draw(bits[owner], turn) >> spare)
    return np.bincount(owner, shown, len(tosses)).astype(np.int64)


def permutation(count: int, *names: int) -> NDArray[np.int64]:
    """A random order of 0 … `count` - 1."""
    return np.argsort(draw(*names, np.arange(count)), kind="stable")

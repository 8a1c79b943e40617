"""Words by number, for millions of words a second: hashing and looking up whole texts at once.

A dictionary of strings costs a few hundred nanoseconds a word, most of it waiting for memory. Here
a batch of texts is one array of bytes; every word between two spaces gets a 128-bit polynomial hash
from running sums, and all are looked up in an open hash table together, so that the waiting
overlaps. A word is known by its hash alone: that two of a million words share one is less likely
than 1 in 10^20.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Hashes = tuple[NDArray[np.uint64], NDArray[np.uint64]]

_BASES = (0x9E3779B97F4A7C15, 0xD1342543DE82EF95)  # odd, so that their powers have inverses
_SPREAD = np.uint64(0xBF58476D1CE4E5B9)
_SPACE = 32
_ABSENT = -1
_STEP, _FEW = 2**17, 2**12  # powers are kept in multiples of this; of a text or two, a few


def word_bounds(data: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the words of a joined text begin and end; between two spaces there is an empty one."""
    spaces = np.flatnonzero(data == _SPACE)
    return np.concatenate([[0], spaces + 1]), np.append(spaces, len(data))


def hash_words(
    data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> Hashes:
    """Two hashes for each word: sum of (byte + 1) * base^place, modulo 2^64."""
    letters = data.astype(np.uint64) + np.uint64(1)
    found = []
    size = _FEW if len(data) <= _FEW else -(-len(data) // _STEP) * _STEP
    for base in _BASES:
        powers, inverses = _powers(base, size)
        sums = np.zeros(len(data) + 1, np.uint64)
        np.cumsum(letters * powers[: len(data)], out=sums[1:])
        found.append((sums[ends] - sums[starts]) * inverses[starts])
    return found[0], found[1]


@lru_cache(maxsize=8)
def _powers(base: int, size: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """base^0, base^1, … and base^0, base^-1, …"""
    both = []
    for factor in (base, pow(base, -1, 2**64)):
        powers = np.full(size + 1, factor, np.uint64)
        powers[0] = 1
        both.append(np.multiply.accumulate(powers))
    return both[0], both[1]


class WordTable:
    """Numbers by hash, in an open table with linear probing that is at most half full."""

    def __init__(self) -> None:
        self._count = 0
        self._clear(1 << 12)

    def __len__(self) -> int:
        return self._count

    def find(self, hashes: Hashes) -> NDArray[np.int64]:
        """The numbers of words, -1 for those not in the table."""
        slots = self._home(hashes[0])
        numbers = self._numbers[slots].astype(np.int64)
        pending = np.flatnonzero(self._differs(slots, hashes, numbers))
        while pending.size:
            slots[pending] = (slots[pending] + 1) & self._mask
            numbers[pending] = self._numbers[slots[pending]]
            here = (hashes[0][pending], hashes[1][pending])
            pending = pending[self._differs(slots[pending], here, numbers[pending])]
        return numbers

    def add(self, hashes: Hashes, numbers: NDArray[np.int64]) -> None:
        """Enter words that are not in the table, each once."""
        self._count += len(numbers)
        if 2 * self._count > len(self._numbers):
            filled = self._numbers != _ABSENT
            first, second = self._hashes[0][filled], self._hashes[1][filled]
            old = self._numbers[filled].astype(np.int64)
            self._clear(1 << (2 * self._count).bit_length())
            self._enter((first, second), old)
        self._enter(hashes, numbers)

    def _enter(self, hashes: Hashes, numbers: NDArray[np.int64]) -> None:
        pending, slots = np.arange(len(numbers)), self._home(hashes[0])
        while pending.size:
            here = slots[pending]
            free = np.flatnonzero(self._numbers[here] == _ABSENT)
            chosen = free[np.unique(here[free], return_index=True)[1]]  # one word a slot
            for table, column in zip(self._hashes, hashes, strict=True):
                table[here[chosen]] = column[pending[chosen]]
            self._numbers[here[chosen]] = numbers[pending[chosen]]
            pending = np.delete(pending, chosen)
            slots[pending] = (slots[pending] + 1) & self._mask

    def _home(self, first: NDArray[np.uint64]) -> NDArray[np.int64]:
        return ((first * _SPREAD) >> self._shift).astype(np.int64)

    def _differs(
        self, slots: NDArray[np.int64], hashes: Hashes, numbers: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Whether another word stands in the slot."""
        first, second = self._hashes
        other = (first[slots] != hashes[0]) | (second[slots] != hashes[1])
        return other & (numbers != _ABSENT)

    def _clear(self, size: int) -> None:
        self._hashes: Hashes = (np.zeros(size, np.uint64), np.zeros(size, np.uint64))
        self._numbers = np.full(size, _ABSENT, np.int32)
        self._mask = size - 1
        self._shift = np.uint64(64 - (size - 1).bit_length())

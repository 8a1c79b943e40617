"""Ties: words that can be cut into the same tokens in another order.

Two neighbours p q can change places if they spell the same both ways, which makes both of them
repetitions of one string (`k` and `kk`); p q r can be turned round to r q p (`ana` `n` `a`). The
scores are then equal but for rounding, so which order wins depends on the sentence around the word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from litebert.base.ragged import row_ids


class Ties:
    """Finds such words among encoded ones."""

    def __init__(self, tokens: list[str], special: np.ndarray) -> None:
        self._pieces = tokens
        self._root = _numbered(_primitive_root(token) for token in tokens)
        self._root[special] = -1 - np.flatnonzero(special)  # the unknown token has no spelling
        self._first = _numbered(token[0] for token in tokens)
        self._last = _numbered(token[-1] for token in tokens)

    def words(self, encoded: Sequence[Sequence[int] | None]) -> list[int]:
        """The indices of the words whose tokens can change places."""
        lengths = np.fromiter((len(ids or ()) for ids in encoded), np.int64, len(encoded))
        ids = np.fromiter(chain.from_iterable(row or () for row in encoded), np.int64)
        word = row_ids(lengths)
        found = word[:-1][self._swapping(ids) & (word[:-1] == word[1:])].tolist()
        turning = np.flatnonzero(self._turning(ids) & (word[:-2] == word[2:]))
        found += [word[at] for at in turning.tolist() if self._turns(ids[at : at + 3].tolist())]
        return found

    def _swapping(self, ids: np.ndarray) -> np.ndarray:
        left, right = ids[:-1], ids[1:]
        return (self._root[left] == self._root[right]) & (left != right)

    def _turning(self, ids: np.ndarray) -> np.ndarray:
        left, right = ids[:-2], ids[2:]
        same_ends = (self._first[left] == self._first[right]) & (
            self._last[left] == self._last[right]
        )
        return same_ends & (left != right)

    def _turns(self, triple: list[int]) -> bool:
        first, second, third = (self._pieces[i] for i in triple)
        return first + second + third == third + second + first


def _numbered(keys: Iterable[str]) -> np.ndarray:
    numbers: dict[str, int] = {}
    return np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.int32)


def _primitive_root(token: str) -> str:
    """The shortest string whose repetition the token is: where it first recurs in itself twice."""
    return token[: (token + token).index(token, 1)]

"""Ragged arrays: rows of different lengths, end to end in one array without padding.

lengths           2 3 0 1
offsets           0 2 5 5 6      where each row begins, and the end
row_ids           0 0 1 1 1 3    the row of each element
positions_within  0 1 0 1 2 0    the place of each element in its row
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray = NDArray[np.int64]


def offsets(lengths: ArrayLike) -> IntArray:
    """Where rows of the given lengths begin, and the end of the last."""
    return np.cumsum(np.append(0, lengths), dtype=np.int64)


def row_ids(lengths: ArrayLike) -> IntArray:
    """The row of each element."""
    lengths = np.asarray(lengths, np.int64)
    return np.repeat(np.arange(len(lengths)), lengths)


def positions_within(lengths: ArrayLike) -> IntArray:
    """The place of each element in its row."""
    return ranges(0, lengths)


def ranges(starts: ArrayLike, lengths: ArrayLike) -> IntArray:
    """Indices start, start + 1, … of every row, end to end: gathers rows out of another array."""
    lengths = np.asarray(lengths, np.int64)
    edges = offsets(lengths)
    return np.repeat(np.asarray(starts) - edges[:-1], lengths) + np.arange(edges[-1])

"""Near-duplicates by MinHash: documents that share most of their runs of five tokens.

A document's runs are hashed and thrown into BINS bins, of which each keeps its smallest hash (one
permutation hashing, Li et al. 2012): two documents agree in about as many bins as they share of
their runs together (Jaccard). Documents that agree in a whole band of bins are compared; those that
agree in SIMILAR of all bins are one cluster, of which the first stays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from litebert.base.ragged import IntArray, positions_within, row_ids
from litebert.base.randomness import random_bits

RUN = 5  # tokens
BINS, BAND = 64, 4
SIMILAR = 0.8
FEWEST_BINS = 16  # a document that fills fewer is too short to compare
EMPTY = np.iinfo(np.uint32).max
Signatures = NDArray[np.uint32]  # documents x BINS


def signatures(ids: NDArray[np.integer], lengths: IntArray) -> Signatures:
    """The smallest hashes of each document; documents lie end to end."""
    hashes = random_bits(ids)
    mixed = hashes[: max(len(ids) - RUN + 1, 0)].copy()
    with np.errstate(over="ignore"):
        for place in range(1, RUN):
            mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + hashes[place : place + len(mixed)]
    mixed = random_bits(mixed)
    inside = np.flatnonzero(positions_within(lengths) <= np.repeat(lengths, lengths) - RUN)
    document, mixed = row_ids(lengths)[inside], mixed[inside]
    slot = document * BINS + (mixed % np.uint64(BINS)).astype(np.int64)
    value = np.minimum(mixed >> np.uint64(32), EMPTY - 1).astype(np.uint32)
    result = np.full(len(lengths) * BINS, EMPTY, np.uint32)
    order = np.lexsort((value, slot))
    first = np.flatnonzero(np.diff(slot[order], prepend=-1))
    result[slot[order[first]]] = value[order[first]]
    return result.reshape(len(lengths), BINS)


def clusters(found: Signatures) -> IntArray:
    """For each document the first of its cluster: its own number where it is like none before."""
    leader = np.arange(len(found))
    long_enough = np.flatnonzero((found != EMPTY).sum(1) >= FEWEST_BINS)
    for band in range(0, BINS, BAND):
        names = found[long_enough, band : band + BAND]
        full = (names != EMPTY).all(1)
        documents = long_enough[full]
        key = random_bits(*names[full].T)
        order = np.lexsort((documents, key))
        starts = np.flatnonzero(np.diff(key[order], prepend=key[order[:1]] + np.uint64(1)))
        sizes = np.diff(np.append(starts, len(order)))
        firsts = np.repeat(documents[order[starts]], sizes)
        others = documents[order]
        for first, other in zip(firsts.tolist(), others.tolist(), strict=True):
            if first != other and leader[other] == other and _alike(found[first], found[other]):
                leader[other] = leader[first]
    return leader


def _alike(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> bool:
    filled = (one != EMPTY) | (other != EMPTY)
    return bool(((one == other) & filled).sum() >= SIMILAR * filled.sum())

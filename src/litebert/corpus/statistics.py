"""How often pieces occur in a store's training text, from a bounded, fixed sample of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from litebert.corpus.store import Store
from litebert.corpus.window import Numbers, Window, read_window, window_count

MOST_TOKENS = 20_000_000
SAMPLE_SEED = 0  # the sample is a property of the store, not of a run


def sample_windows(store: Store, tokens: int = MOST_TOKENS) -> Iterator[Window]:
    """Training text in random windows, until so many tokens have come."""
    for number in range(window_count(store)):
        if tokens <= 0:
            return
        window = read_window(store, "train", SAMPLE_SEED, 0, number)
        tokens -= len(window.ids)
        yield window


def piece_counts(store: Store) -> Numbers:
    """Occurrences of every piece."""
    counts = np.zeros(store.info.vocabulary, dtype=np.int64)
    for window in sample_windows(store):
        counts += np.bincount(window.ids, minlength=len(counts))
    return counts


def unigram_level(counts: Numbers) -> float:
    """The loss of guessing by frequency alone: what a model must beat to have learned anything."""
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())

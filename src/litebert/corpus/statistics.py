"""How often tokens occur in a store's training text, from a bounded, fixed sample of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from litebert.base.ragged import IntArray
from litebert.corpus.sampling.window import Window, read_window, window_count
from litebert.corpus.store import Store

MAX_TOKENS = 20_000_000
SAMPLE_SEED = 0  # the sample is a property of the store, not of a run


def sample_windows(store: Store, tokens: int = MAX_TOKENS) -> Iterator[Window]:
    """Training text in random windows, until so many tokens have come."""
    for number in range(window_count(store)):
        if tokens <= 0:
            return
        window = read_window(store, "train", SAMPLE_SEED, 0, number)
        tokens -= len(window.ids)
        yield window


def token_counts(store: Store) -> IntArray:
    """Occurrences of every token of the vocabulary."""
    counts = np.zeros(store.info.vocab_size, dtype=np.int64)
    for window in sample_windows(store):
        counts += np.bincount(window.ids, minlength=len(counts))
    return counts


def lone_sentences(store: Store, shards: int = 64) -> float:
    """The fraction of documents that have one sentence, by the first shards."""
    lone, documents = 0, 0
    for number in range(min(len(store.paths), shards)):
        sentences = np.diff(store.shard(number).documents)
        lone, documents = lone + int((sentences == 1).sum()), documents + len(sentences)
    return lone / max(documents, 1)


def unigram_loss(counts: IntArray) -> float:
    """The loss of predicting by frequency alone: what a model must beat to have learned a thing."""
    fractions = counts[counts > 0] / counts.sum()
    return float(-(fractions * np.log(fractions)).sum())

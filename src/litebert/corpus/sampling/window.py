"""A window: the documents of some blocks, in memory, as one run of tokens.

An epoch visits the blocks of a store in a random order, a window at a time; samples are made and
shuffled within a window. So the memory is that of a window, however large the corpus, and to go
on in the middle of an epoch it is enough to read one window again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from litebert.base.errors import SettingsError
from litebert.base.ragged import IntArray, offsets, row_ids
from litebert.base.randomness import Purpose, permutation
from litebert.corpus.store import Split, Store

WINDOW_BLOCKS = 64


@dataclass(frozen=True)
class Window:
    """Documents side by side. Sentences and documents are given by offsets, as in a shard."""

    ids: NDArray[np.unsignedinteger]
    sentences: IntArray  # first token of each sentence, and the end
    documents: IntArray  # first sentence of each document, and the end
    keys: NDArray[np.uint64]

    @property
    def document_of(self) -> IntArray:
        """The document of each sentence."""
        return row_ids(np.diff(self.documents))


def window_count(store: Store, blocks: int = WINDOW_BLOCKS) -> int:
    """How many windows an epoch has."""
    return -(-len(store.blocks) // blocks)


def read_window(
    store: Store, split: Split, seed: int, copy: int, number: int, blocks: int = WINDOW_BLOCKS
) -> Window:
    """The documents of a split in the `number`-th window of a pass over the store."""
    if not 0 <= number < window_count(store, blocks):
        raise SettingsError(f"{store.folders[0]}: has no window {number} of samples")
    order = _block_order(len(store.blocks), seed, copy)
    chosen = store.blocks[order[number * blocks : (number + 1) * blocks]]
    following = store.blocks[order[(number + 1) * blocks : (number + 2) * blocks]]
    store.fetch_ahead([*chosen[:, 0].tolist(), *following[:, 0].tolist()])
    parts = [_read_block(store, split, shard, block) for shard, block in chosen.tolist()]
    ids, sentences, documents, keys = map(np.concatenate, zip(*parts, strict=True))
    return Window(ids, offsets(sentences), offsets(documents), keys)


@lru_cache(maxsize=2)
def _block_order(count: int, seed: int, copy: int) -> IntArray:
    return permutation(count, Purpose.BLOCK_ORDER, seed, copy)


def _read_block(
    store: Store, split: Split, number: int, block: int
) -> tuple[NDArray[np.unsignedinteger], IntArray, IntArray, NDArray[np.uint64]]:
    """Ids, tokens a sentence, sentences a document, and keys of a block's chosen documents."""
    shard, ids = store.shard(number), store.block_ids(number, block)
    low, high = shard.blocks[block : block + 2].tolist()
    edges = shard.documents[low : high + 1].astype(np.int64)
    sentences = np.diff(shard.sentences[edges[0] : edges[-1] + 1].astype(np.int64))
    documents, keys = np.diff(edges), np.asarray(shard.keys[low:high])
    kept = store.in_split(number, slice(low, high), split)
    if kept.all():
        return np.asarray(ids), sentences, documents, keys
    kept_sentences = np.repeat(kept, documents)
    kept_tokens = np.repeat(kept_sentences, sentences)
    return ids[kept_tokens], sentences[kept_sentences], documents[kept], keys[kept]

"""Word vectors from counting alone: what a token table can know before any training.

How much more often a token stands near each frequent token than by chance (positive pointwise
mutual information), squeezed to E columns by a singular value decomposition. Counting is one pass
over a bounded sample, and the decomposition goes through the contexts' small Gram matrix, so 30,000
tokens take seconds. Held-out documents are not looked at, and pairs never cross documents.

Shapes: V tokens, C contexts (the most frequent tokens), E columns.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from litebert.base.ragged import IntArray
from litebert.corpus.statistics import sample_windows
from litebert.corpus.store import Store

NEIGHBOURS = 5  # tokens to either side that count as a token's company, the nearer the more
CONTEXTS = 1024
SLICE = 2**19  # tokens whose pairs are in memory at one time
SMOOTHING = 0.75  # flattens the contexts' frequencies, so that rare ones do not stand out too much


def word_vectors(store: Store, counts: IntArray, size: int) -> Tensor:
    """A vector of `size` numbers for each token (V, E); zeros where a token never occurs."""
    frequent = np.argsort(-counts, kind="stable")[:CONTEXTS]
    near = _information(_company(store, frequent))
    strength, right = torch.linalg.eigh(near.T @ near)  # squared singular values, rising
    strength, right = strength.flip(0)[:size].clamp(min=1e-12), right.flip(1)[:, :size]
    vectors = torch.zeros(len(near), size)
    vectors[:, : len(strength)] = near @ right * strength**-0.25  # left vectors x root of strength
    return vectors


def _company(store: Store, frequent: IntArray) -> Tensor:
    """How often each context stands near each token, (V, C); a pair at distance d counts 1/d."""
    width = len(frequent)
    rank = np.full(store.info.vocab_size, width, dtype=np.int64)
    rank[frequent] = np.arange(width)
    near = torch.zeros(store.info.vocab_size * width)
    for window in sample_windows(store):
        document = np.repeat(window.document_of.astype(np.int32), np.diff(window.sentences))
        for start in range(0, len(window.ids), SLICE):
            for distance in range(1, NEIGHBOURS + 1):
                here = slice(start, min(start + SLICE, len(window.ids) - distance))
                there = slice(start + distance, max(here.stop, start) + distance)
                alike = document[here] == document[there]
                for one, other in ((here, there), (there, here)):
                    token, beside = window.ids[one].astype(np.int64), rank[window.ids[other]]
                    kept = alike & (beside < width)
                    cells = torch.from_numpy(token[kept] * width + beside[kept])
                    near.index_add_(0, cells, torch.tensor(1 / distance).expand(len(cells)))
    return near.view(-1, width)


def _information(near: Tensor) -> Tensor:
    """Positive pointwise mutual information, in the memory of the counts."""
    context = near.sum(0) ** SMOOTHING
    chance = near.sum(1, keepdim=True) * (context / context.sum().clamp(min=1e-9))
    return near.div_(chance.clamp_(min=1e-9)).clamp_(min=1).log_()

"""`start = "warm"`: initial values that spare a small model the long plateau at the unigram level.

Only initial values differ from the paper's start; the architecture, and so what opens in
`transformers`, is the same. What counting can tell is written into the model before the first step:

- how often a piece occurs is the output's bias;
- which company it keeps is its row of the token table (word_vectors.py). ALBERT's V x E table is
  context-independent by design (paper, section 3.1), so word vectors are its natural start.

The rest is chosen so that the model can use that at once:

- words, positions and segments have columns of their own (warm_tables.py);
- heads begin with something to look at: neighbours, a segment, likenesses (warm_attention.py);
- the E->H projection is orthogonal, and the masked-language head leads back from H to E the way the
  tokens came.

docs/log.md has the measurements behind each.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from litebert.base.errors import SettingsError
from litebert.corpus.store import Store
from litebert.corpus.window import Numbers
from litebert.objectives.learner import Learner
from litebert.train.warm_attention import orthogonal, start_attention
from litebert.train.warm_tables import SMALLEST, Columns, start_tables
from litebert.train.word_vectors import word_vectors

SEED = 1


@torch.no_grad()
def warm_start(
    learner: Learner, store: Store, counts: Numbers, hidden: Numbers | None = None
) -> None:
    """Set the initial values of all of a learner's models; embeddings that they share once.

    `counts` says how often each piece occurs, `hidden` how often it is hidden if that differs.
    """
    hidden = counts if hidden is None else hidden
    generator = torch.Generator().manual_seed(SEED)
    size = learner.model.config.embedding_size
    if size < SMALLEST:
        raise SettingsError(
            f'start = "warm" needs an embedding_size of {SMALLEST} or more, not {size}; '
            "--set start=paper does without"
        )
    vectors = word_vectors(store, counts, Columns(size).tokens)
    start_tables(learner.model.encoder.embeddings, vectors)
    for model in learner.models():
        projection = model.encoder.projection
        if projection is not None:
            projection.weight.copy_(orthogonal(projection.weight, generator))
        start_attention(model, generator)
        if "masked_language" in model.heads:
            _start_head(model.heads["masked_language"], projection, hidden)
        if "span_boundary" in model.heads:
            _start_bias(model.heads["span_boundary"], hidden)


def _start_head(head: Any, projection: nn.Linear | None, counts: Numbers) -> None:
    """Back from H to E the way the tokens came, and each piece's frequency as its bias."""
    if projection is not None:
        head.dense.weight.copy_(projection.weight.T)
    _start_bias(head, counts)


def _start_bias(head: Any, counts: Numbers) -> None:
    """Guessing by frequency, each piece seen once more than it was."""
    shares = torch.ones(len(head.bias))
    shares[: len(counts)] += torch.from_numpy(counts)
    head.bias.copy_((shares / shares.sum()).log())

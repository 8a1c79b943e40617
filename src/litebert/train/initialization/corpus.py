"""`initialization = "corpus"`: initial values that spare small models a long plateau.

Only initial values differ from the paper's; the architecture, and so what opens in
`transformers`, is the same. What counting can tell is written into the model before the first step:

- how often a token occurs is the output's bias;
- which company it keeps is its row of the token table (word_vectors.py). ALBERT's V x E table is
  context-independent by design (paper, section 3.1), so word vectors are its natural start;
- in which of two segments it stands rather is a column of that table (sentence_order.py), unless
  `initialization = "corpus_tokens"`: where objectives are compared, none may begin ahead.

The rest is chosen so that the model can use that at once:

- words, positions and segments have columns of their own (tables.py);
- heads begin with something to look at: neighbours, a segment, likenesses (attention.py);
- the E->H projection is orthogonal, and the masked-LM head maps back from H to E the way the
  tokens came.

docs/log.md has the measurements behind each.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from litebert.base.errors import SettingsError
from litebert.base.ragged import IntArray
from litebert.corpus.store import Store
from litebert.objectives.learner import Learner
from litebert.train.initialization.attention import (
    has_segment_heads,
    initialize_attention,
    orthogonal,
)
from litebert.train.initialization.sentence_order import initialize_order, order_evidence
from litebert.train.initialization.tables import (
    SMALLEST,
    EmbeddingColumns,
    equally_long,
    initialize_tables,
    shorter_where_frequent,
    squeezed,
)
from litebert.train.initialization.word_vectors import word_vectors

SEED = 1


@torch.no_grad()
def initialize_from_corpus(
    learner: Learner, store: Store, counts: IntArray, masked_counts: IntArray | None = None,
    table: Tensor | None = None, *, order: bool = True,
) -> None:  # fmt: skip
    """Set the initial values of all of a learner's models; embeddings that they share once.

    `counts` says how often each token occurs, `masked_counts` how often it is masked, if other.
    A teacher's token `table` takes the place of word vectors. Without `order` nothing is counted
    of which sentence stood first.
    """
    masked_counts = counts if masked_counts is None else masked_counts
    generator = torch.Generator().manual_seed(SEED)
    size = learner.model.config.embedding_size
    if size < SMALLEST:
        raise SettingsError(
            f'initialization = "corpus" needs an embedding_size of {SMALLEST} or more, not {size}; '
            "--set initialization=truncated_normal does without"
        )
    columns = EmbeddingColumns(size).tokens
    vectors = word_vectors(store, counts, columns) if table is None else squeezed(table, columns)
    rows = equally_long(vectors)
    if table is not None and _learns(learner, "sentence_vectors"):
        rows = shorter_where_frequent(vectors, _with_frame(counts, store))
    initialize_tables(learner.model.encoder.embeddings, rows)
    for model in learner.models():
        projection = model.encoder.projection
        if projection is not None:
            projection.weight.copy_(orthogonal(projection.weight, generator))
        initialize_attention(model, generator)
        if order and has_segment_heads(model) and _learns(learner, "sentence_order"):
            initialize_order(model, order_evidence(store))
        if "masked_lm" in model.heads:
            _initialize_head(model.heads["masked_lm"], projection, masked_counts)
        if "span_boundary" in model.heads:
            _initialize_bias(model.heads["span_boundary"], masked_counts)


def _with_frame(counts: IntArray, store: Store) -> IntArray:
    """Counts that know of the tokens around every sentence."""
    counts, special = counts.copy(), store.tokenizer.special
    counts[[special.cls, special.sep]] = store.total.sentences
    return counts


def _learns(learner: Learner, name: str) -> bool:
    return any(objective.name == name for objective in learner.objectives)


def _initialize_head(head: Any, projection: nn.Linear | None, counts: IntArray) -> None:
    """Back from H to E the way the tokens came, and each token's frequency as its bias."""
    if projection is not None:
        head.dense.weight.copy_(projection.weight.T)
    _initialize_bias(head, counts)


def _initialize_bias(head: Any, counts: IntArray) -> None:
    """Predicting by frequency, each token seen once more than it was."""
    frequencies = torch.ones(len(head.bias))
    frequencies[: len(counts)] += torch.from_numpy(counts)
    head.bias.copy_((frequencies / frequencies.sum()).log())

"""`start = "warm"`: initial values that spare a small model the long plateau at the unigram level.

Only initial values differ from the paper's start; the architecture, and so what opens in
`transformers`, is the same.

- The token table begins as word vectors counted from the corpus (word_vectors.py). ALBERT's V x E
  table is context-independent by design (paper, section 3.1), so they are its natural start.
- The position table begins as sinusoids of the same scale: neighbouring places are alike.
- Each head's queries equal its keys (random orthonormal rows), and the E->H projection is
  orthogonal: attention begins by comparing pieces and places instead of looking everywhere alike
  (compare Trockman and Kolter 2023, "Mimetic Initialization of Self-Attention Layers").
- The vocabulary's output bias begins at the logarithm of the pieces' frequencies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from litebert.corpus.store import Store
from litebert.corpus.window import Numbers
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.train.word_vectors import word_vectors

SEED = 1


@torch.no_grad()
def warm_start(learner: Learner, store: Store, counts: Numbers) -> None:
    """Set the initial values of all of a learner's models; embeddings they share once."""
    generator = torch.Generator().manual_seed(SEED)
    vectors = word_vectors(store, counts, learner.model.config.embedding_size)
    _start_embeddings(learner.model, vectors)
    for model in learner.models():
        _start_encoder(model, generator)
        if "masked_language" in model.heads:
            head: Any = model.heads["masked_language"]
            head.bias.copy_(_log_shares(counts))


def _start_embeddings(model: Model, vectors: Tensor) -> None:
    tables, scale = model.encoder.embeddings, model.config.initializer_range
    known = vectors.abs().sum(1) > 0
    tables.token.weight[: len(vectors)][known] = (
        vectors[known] * (scale / vectors[known].std())
    ).to(tables.token.weight.device)
    tables.position.weight.copy_(_waves(*tables.position.weight.shape) * scale)


def _waves(places: int, width: int) -> Tensor:
    """Sinusoids of falling frequency, with a mean square of 1."""
    half = width // 2
    angles = torch.arange(places)[:, None] * 10000.0 ** (-torch.arange(half) / half)
    waves = torch.zeros(places, width)
    waves[:, 0 : 2 * half : 2], waves[:, 1 : 2 * half : 2] = angles.sin(), angles.cos()
    return waves * 2**0.5


def _start_encoder(model: Model, generator: torch.Generator) -> None:
    for attention in model.encoder.attentions:
        query, key, _ = attention.query_key_value.weight.chunk(3)  # type: ignore[union-attr]
        value = nn.init.orthogonal_(torch.empty(query.shape), generator=generator)
        query.copy_(value)
        key.copy_(value)
    projection = model.encoder.projection
    if projection is not None:
        value = torch.empty(projection.weight.shape)
        projection.weight.copy_(nn.init.orthogonal_(value, generator=generator))


def _log_shares(counts: Numbers) -> Tensor:
    """Logarithms of frequencies, each piece seen half a time more than it was."""
    smooth = counts + 0.5
    return torch.from_numpy(np.log(smooth / smooth.sum())).float()

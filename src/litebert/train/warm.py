"""`start = "warm"`: initial values that spare a small model the long plateau at the unigram level.

Only initial values differ from the paper's start; the architecture, and so what opens in
`transformers`, is the same. What counting can tell is written into the model before the first step:

- how often a piece occurs is the output's bias;
- which company it keeps is its row of the token table (word_vectors.py). ALBERT's V x E table is
  context-independent by design (paper, section 3.1), so word vectors are its natural start.

The rest is chosen so that the model can use that at once:

- positions are sinusoids: neighbouring places are alike;
- each head's queries equal its keys, so that attention begins by comparing pieces and places
  instead of looking everywhere alike (compare Trockman and Kolter 2023, "Mimetic Initialization of
  Self-Attention Layers"), and values and output undo each other, so that a token takes over half of
  what it attends to;
- where sentence pairs are asked about, two heads look at one segment each, whatever the token, so
  that [CLS] knows the two apart from the first step;
- the E->H projection is orthogonal, and the masked-language head leads back from H to E the way the
  tokens came.

docs/log.md has the measurements behind each.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from litebert.corpus.store import Store
from litebert.corpus.window import Numbers
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.train.word_vectors import word_vectors

SEED = 1
ROW_LENGTH = 1.2  # of the token and position tables: 0.15 a number at E = 64, 0.11 at 128
ATTENTION_GAIN = 0.5  # how much of what it attends to a token takes over
SEGMENT_LENGTH = 0.6  # of the segment table's rows, where segments are told apart
SEGMENT_CONTRAST = 6.0  # how much higher the scores of the segment that a head looks at
FEWEST_HEADS = 4  # from which on two of them can be spared for the segments


@torch.no_grad()
def warm_start(learner: Learner, store: Store, counts: Numbers) -> None:
    """Set the initial values of all of a learner's models; embeddings that they share once."""
    generator = torch.Generator().manual_seed(SEED)
    vectors = word_vectors(store, counts, learner.model.config.embedding_size)
    _start_tables(learner.model, vectors)
    for model in learner.models():
        for attention in model.encoder.attentions:
            _start_attention(attention, generator)
        projection = model.encoder.projection
        if projection is not None:
            projection.weight.copy_(_orthogonal(projection.weight, generator))
        if "sentence_pair" in model.heads and model.config.num_attention_heads >= FEWEST_HEADS:
            _start_segments(model, projection)
        if "masked_language" in model.heads:
            _start_head(model.heads["masked_language"], projection, counts)
        if "span_boundary" in model.heads:
            _start_bias(model.heads["span_boundary"], counts)


def _start_tables(model: Model, vectors: Tensor) -> None:
    """Word vectors for the pieces that occur, sinusoids for the positions."""
    tables = model.encoder.embeddings
    rows = vectors.abs().sum(1).nonzero().squeeze(1)
    # Frequent pieces have short vectors that point the same way; centred and all of one length
    # they can be told apart.
    known = nn.functional.normalize(vectors[rows] - vectors[rows].mean(0))
    tables.token.weight[rows] = (known * ROW_LENGTH).to(tables.token.weight)
    tables.position.weight.copy_(_sinusoids(*tables.position.weight.shape))


def _sinusoids(places: int, size: int) -> Tensor:
    """Waves of growing length, a sine and a cosine each, (places, size)."""
    angles = torch.arange(places)[:, None] * 10000 ** (-torch.arange(0, size, 2) / size)
    waves = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :size]
    return waves * (ROW_LENGTH * (2 / size) ** 0.5)


def _start_attention(attention: Any, generator: torch.Generator) -> None:
    """Queries equal keys; values and output undo each other but for the gain."""
    query, key, value = attention.query_key_value.weight.chunk(3)
    query.copy_(_orthogonal(query, generator))
    key.copy_(query)
    value.copy_(_orthogonal(value, generator))
    attention.output.weight.copy_(ATTENTION_GAIN * value.T)


def _start_segments(model: Model, projection: nn.Linear | None) -> None:
    """The first head looks at the first segment, the second at the second.

    Their query is a constant, along which the key measures the segment's direction.
    """
    config, table = model.config, model.encoder.embeddings.segment.weight
    table.copy_(nn.functional.normalize(table) * SEGMENT_LENGTH)
    apart = table[1] - table[0]
    # The norm brings token + position + segment to the length sqrt(E).
    before = (2 * ROW_LENGTH**2 + SEGMENT_LENGTH**2) ** 0.5
    reach = apart.norm() * config.embedding_size**0.5 / before
    direction = nn.functional.normalize(apart if projection is None else projection(apart), dim=0)
    width, size = config.hidden_size, config.hidden_size // config.num_attention_heads
    for attention in model.encoder.attentions:
        joint: Any = attention.query_key_value
        for head, sign in enumerate((-1.0, 1.0)):
            first = head * size
            joint.weight[first : first + size] = 0.0
            joint.weight[width + first : width + first + size] = 0.0
            joint.weight[width + first] = direction
            joint.bias[first] = sign * SEGMENT_CONTRAST * size**0.5 / reach


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


def _orthogonal(like: Tensor, generator: torch.Generator) -> Tensor:
    return nn.init.orthogonal_(torch.empty(like.shape), generator=generator)

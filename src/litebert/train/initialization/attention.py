"""Attention: heads that begin with something to do.

- Two heads look at the tokens beside, one at the token before and one at the token after, and put
  what they find where no embedding reaches (E < H leaves room), so that a masked token knows its
  neighbours from the first step. This is what ends the plateau (docs/log.md).
- Where sentence pairs are asked about, two heads look at one segment each, whatever the token, so
  that [CLS] knows the two apart.
- All others compare: their queries equal their keys (compare Trockman and Kolter 2023, "Mimetic
  Initialization of Self-Attention Layers"), and values and output undo each other, so that a token
  takes over half of what it attends to.

Shapes: H units, E columns of the tables, D units of a head.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from litebert.model.model import Model
from litebert.train.initialization.tables import ROW_LENGTH, SEGMENT_LENGTH, EmbeddingColumns

GAIN = 0.5  # how much of what it attends to a token takes over
OFFSETS = (-1, 1)  # of the neighbours that are looked at
NEIGHBOUR_CONTRAST = 8.0  # how much higher the score of that neighbour than of a place like others
NEIGHBOUR_GAIN = 1.0
SEGMENT_CONTRAST = 6.0  # how much higher the scores of the segment that a head attends to
FEWEST_HEADS = 4  # from which on two of them can be spared for the segments


def initialize_attention(model: Model, generator: torch.Generator) -> None:
    """Set the queries, keys, values and outputs of all of a model's layers."""
    config, heads = model.config, model.config.num_attention_heads
    for attention in model.encoder.attentions:
        _initialize_comparing(attention, generator)
    if heads >= len(OFFSETS) and config.embedding_size <= config.hidden_size:
        for place, offset in enumerate(OFFSETS):
            _initialize_neighbour(model, heads - 1 - place, place, offset)
    if has_segment_heads(model):
        _initialize_segments(model)


def has_segment_heads(model: Model) -> bool:
    """Whether the first two heads attend to a segment each."""
    return "sentence_pair" in model.heads and model.config.num_attention_heads >= FEWEST_HEADS


def orthogonal(like: Tensor, generator: torch.Generator) -> Tensor:
    """A random matrix of a shape whose rows, or columns, stand at right angles."""
    return nn.init.orthogonal_(torch.empty(like.shape), generator=generator)


def _initialize_comparing(attention: Any, generator: torch.Generator) -> None:
    query, key, value = attention.query_key_value.weight.chunk(3)
    query.copy_(orthogonal(query, generator))
    key.copy_(query)
    value.copy_(orthogonal(value, generator))
    attention.output.weight.copy_(GAIN * value.T)


def _initialize_neighbour(model: Model, head: int, place: int, offset: int) -> None:
    """A head that attends to the token `offset` places on.

    A wave's sine and cosine at the place wanted are those here, turned by the wave's frequency
    times the offset; that is the query, and the key is what is there.
    """
    columns, way = EmbeddingColumns(model.config.embedding_size), way_of(model)
    width = model.config.hidden_size // model.config.num_attention_heads
    rows = slice(head * width, (head + 1) * width)
    waves = min(columns.waves, width // 2)
    sines, cosines = way[:, columns.sines].T[-waves:], way[:, columns.cosines].T[-waves:]
    turn = (columns.frequencies[-waves:] * offset)[:, None]
    strength = (NEIGHBOUR_CONTRAST * width**0.5) ** 0.5 / (ROW_LENGTH * columns.reach)
    content = min(width, columns.tokens)
    found = way[:, :content]  # H, D: where embeddings put words
    room = torch.linalg.qr(way, mode="complete").Q[:, columns.size :]
    room = room[:, place * width : place * width + content]
    for attention in model.encoder.attentions:
        parts: Any = attention
        query, key, value = (part[rows] for part in parts.query_key_value.weight.chunk(3))
        for part in (query, key, value):
            part.zero_()
        query[: 2 * waves] = strength * torch.cat(
            [sines * turn.cos() + cosines * turn.sin(), cosines * turn.cos() - sines * turn.sin()]
        )
        key[: 2 * waves] = strength * torch.cat([sines, cosines])
        value[:content] = found.T
        out = parts.output.weight[:, rows]
        out.zero_()
        out[:, :content] = GAIN * found if room.shape != found.shape else NEIGHBOUR_GAIN * room


def _initialize_segments(model: Model) -> None:
    """The first head attends to the first segment, the second at the second.

    Their query is a constant, and the key measures the segment's column. What they bring is alike
    for all tokens and grows from layer to layer, so that in deep models it would drown the rest:
    a layer takes over its part of it.
    """
    columns, width = EmbeddingColumns(model.config.embedding_size), model.config.hidden_size
    size = width // model.config.num_attention_heads
    apart = 2 * SEGMENT_LENGTH * columns.reach
    for attention in model.encoder.attentions:
        joint: Any = attention.query_key_value
        for head, sign in enumerate((-1.0, 1.0)):
            first = head * size
            joint.weight[first : first + size] = 0.0
            joint.weight[width + first : width + first + size] = 0.0
            joint.weight[width + first] = way_of(model)[:, columns.segment]
            joint.bias[first] = sign * SEGMENT_CONTRAST * size**0.5 / apart
        output: Any = attention.output
        output.weight[:, : 2 * size] /= model.config.num_hidden_layers


def way_of(model: Model) -> Tensor:
    """From the tables' columns to the encoder's units, (H, E)."""
    projection = model.encoder.projection
    return torch.eye(model.config.hidden_size) if projection is None else projection.weight

"""Attention at the start: heads that compare, that look at neighbours, and at one segment."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from litebert.configs.load import load_preset
from litebert.corpus.statistics import token_counts
from litebert.corpus.store import Store
from litebert.objectives.learner import Learner
from litebert.train.build import fit_to_corpus
from litebert.train.initialization.attention import GAIN, NEIGHBOUR_GAIN, OFFSETS
from litebert.train.initialization.corpus import initialize_from_corpus
from tests.train.initialization.learners import FAMILIES, SMALL, assert_orthogonal, fresh


def larger(family: str, stores: dict[str, Store], heads: int) -> Learner:
    """An initialized learner with room for heads of several kinds."""
    name, kind, _ = FAMILIES[family]
    width = 64 if family == "albert" else 128
    overrides = [
        *SMALL, "model.hidden_size=128", f"model.num_attention_heads={heads}",
        f"model.embedding_size={width}",
    ]  # fmt: skip
    preset = fit_to_corpus(load_preset(name, overrides), stores[kind])
    learner = fresh(preset)
    initialize_from_corpus(learner, stores[kind], token_counts(stores[kind]))
    return learner


@pytest.mark.parametrize("family", ["albert", "bert", "roberta"])
def test_other_heads_compare(family: str, stores: dict[str, Store]) -> None:
    """Queries are keys; values and output undo each other but for the gain."""
    learner = larger(family, stores, heads=8)
    first, last = 0 if family == "roberta" else 2, 8 - len(OFFSETS)
    rows = slice(16 * first, 16 * last)
    for attention in learner.model.encoder.attentions:
        part: Any = attention
        query, key, value = (one[rows] for one in part.query_key_value.weight.chunk(3))
        assert torch.equal(query, key)
        assert_orthogonal(query)
        assert_orthogonal(value)
        torch.testing.assert_close(part.output.weight[:, rows], GAIN * value.T)


def embedded(encoder: Any, ids: Tensor, segments: Tensor) -> Tensor:
    """What the first layer sees."""
    tables = encoder.embeddings
    first = encoder.config.pad_token_id + 1 if encoder.config.family == "roberta" else 0
    places = tables.position.weight[first : first + ids.shape[1]]
    x = tables.norm(tables.token(ids) + places + tables.segment(segments))[0]
    return x if encoder.projection is None else encoder.projection(x)


@pytest.mark.parametrize("family", ["albert", "bert", "roberta"])
def test_two_heads_look_at_neighbours(family: str, stores: dict[str, Store]) -> None:
    """Most of the attention is on the token before or after, and its words arrive in the room."""
    learner = larger(family, stores, heads=4)
    encoder: Any = learner.model.encoder
    ids = torch.randint(5, 5 + 200, (1, 30), generator=torch.Generator().manual_seed(3))
    x = embedded(encoder, ids, torch.zeros_like(ids))
    attention = encoder.attentions[0]
    query, key, value = attention.query_key_value(x).chunk(3, -1)
    for place, offset in enumerate(OFFSETS):
        part = slice(32 * (3 - place), 32 * (4 - place))
        weights = (query[:, part] @ key[:, part].T / 32**0.5).softmax(-1)
        inner = range(2, 28)
        assert min(weights[i, i + offset].item() for i in inner) > 0.5
        if encoder.projection is not None:  # E < H: there is room
            written = value[:, part] @ attention.output.weight[:, part].T
            torch.testing.assert_close(
                written @ encoder.projection.weight, torch.zeros(30, 64), atol=1e-4, rtol=0
            )
            torch.testing.assert_close(
                written.norm(dim=1), NEIGHBOUR_GAIN * value[:, part].norm(dim=1)
            )


@pytest.mark.parametrize("family", ["albert", "bert"])
def test_two_heads_look_at_one_segment_each(family: str, stores: dict[str, Store]) -> None:
    """From any token, most of the first head's attention is on A, the second's on B."""
    encoder: Any = larger(family, stores, heads=4).model.encoder
    ids = torch.randint(5, 5 + 200, (1, 30), generator=torch.Generator().manual_seed(3))
    segments = torch.tensor([[0] * 12 + [1] * 18])
    x = embedded(encoder, ids, segments)
    query, key, _ = encoder.attentions[0].query_key_value(x).chunk(3, -1)
    for head in (0, 1):
        part = slice(32 * head, 32 * head + 32)
        weights = (query[:, part] @ key[:, part].T / 32**0.5).softmax(-1)
        assert weights[:, segments[0] == head].sum(-1).min() > 0.9

"""A last layer that is computed only where it is read says the same there, gradients and all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from litebert.base.batches import Batch
from litebert.model.config import EncoderConfig
from litebert.model.inputs import to_inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.objectives.learner import Learner, read_by
from litebert.objectives.masked_lm import MaskedLM
from litebert.objectives.replaced_token import ReplacedToken
from litebert.objectives.sentence_pairs import SentenceOrder

CONFIG = EncoderConfig(
    family="albert", sharing="all", vocab_size=50, embedding_size=8, hidden_size=16,
    num_hidden_layers=3, num_attention_heads=2, intermediate_size=32, max_position_embeddings=32,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0,
)  # fmt: skip
IDS = torch.arange(21) % 50
LENGTHS = (9, 7, 5)


def model(**changes: object) -> Model:
    config = CONFIG.model_copy(update=changes)
    return Model.create(config, ("masked_lm", "sentence_pair"), seed=1).double()


@pytest.mark.parametrize(
    ("read", "changes"),
    [
        ([0, 9, 16], {}),
        ([3, 4, 20], {"num_hidden_layers": 1}),
        ([20], {"inner_group_num": 2}),
        ([1, 2], {"sharing": "none"}),
        (list(range(21)), {}),
    ],
)
def test_the_tokens_that_are_read_are_the_same(read: list[int], changes: dict[str, object]) -> None:
    one, other, rows = model(**changes), model(**changes), torch.tensor(read)
    whole = one(IDS, lengths=LENGTHS).x_NH[rows]
    part = other(IDS, lengths=LENGTHS, read=rows).x_NH
    torch.testing.assert_close(part[rows], whole, rtol=0, atol=1e-12)
    elsewhere = [place for place in range(21) if place not in read]
    assert not part[elsewhere].any()
    weights = torch.randn(
        whole.shape, dtype=whole.dtype, generator=torch.Generator().manual_seed(2)
    )
    (whole * weights).sum().backward()
    (part[rows] * weights).sum().backward()
    for (name, p), q in zip(
        one.encoder.named_parameters(), other.encoder.parameters(), strict=True
    ):
        assert p.grad is not None, name
        assert q.grad is not None, name
        torch.testing.assert_close(q.grad, p.grad, rtol=0, atol=1e-12, msg=name)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_sequences_of_one_length_may_be_read_in_different_places(dropout: float) -> None:
    one, lengths = model(), (9, 9, 5, 5)
    ids, rows = torch.arange(28) % 50, torch.tensor([0, 3, 4, 8, 9, 18, 23, 24, 27])
    for attention in one.encoder.attentions:
        part: Any = attention
        part.dropout = dropout  # evaluated, so nothing is dropped, but by another kernel
    one.eval()
    read = one(ids, lengths=lengths, read=rows).x_NH
    torch.testing.assert_close(read[rows], one(ids, lengths=lengths).x_NH[rows], rtol=0, atol=1e-12)


@pytest.mark.parametrize("read", [None, list(range(34)), [0, 9, 16], list(range(0, 66, 2))])
def test_what_fills_a_batch_up_changes_nothing(
    read: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """66 tokens become 72 or more rows, 33 and 34 that are read 40."""
    lengths, ids = (32, 29, 5), torch.arange(66) % 50
    rows = None if read is None else torch.tensor(read)
    found = []
    for fills in (False, True):
        monkeypatch.setattr(
            "litebert.model.encoder._compiles_kernels", lambda x, fills=fills: fills
        )
        one = model()
        blocks: list[State] = []
        x_NH = one.encoder.layers(one.encoder.embed(ids, lengths=lengths), 0, 3, blocks, rows).x_NH
        assert len(x_NH) == len(blocks[0].x_NH) == 66
        read_RH = x_NH if rows is None else x_NH[rows]
        read_RH.square().sum().backward()
        found.append([read_RH, *(p.grad for p in one.encoder.parameters())])
    for plain, filled in zip(*found, strict=True):
        torch.testing.assert_close(filled, plain, rtol=0, atol=1e-10)


def test_in_a_padded_batch_too_and_with_checkpointing() -> None:
    one, rows = model(), torch.tensor([0, 5, 10])
    ids, mask = IDS[:20].view(2, 10), torch.arange(20).view(2, 10) % 10 < 8
    whole = one(ids, mask=mask).x_NH[rows]
    one.encoder.checkpointing = True
    part = one(ids, mask=mask, read=rows).x_NH[rows]
    torch.testing.assert_close(part, whole, rtol=0, atol=1e-12)


def test_reading_nothing_is_possible() -> None:
    one = model()
    state = one(IDS, lengths=LENGTHS, read=torch.tensor([], dtype=torch.long))
    assert not state.x_NH.any()
    state.x_NH.sum().backward()


def batch() -> Batch:
    return Batch(
        IDS.numpy().astype(np.int32), np.zeros(21, np.int8), np.ones(21, bool), np.zeros(21, bool),
        np.array(LENGTHS), np.array([0, 1, -1]), np.arange(3, dtype=np.uint64),
        np.array([2, 9, 18]), np.array([7, 8, 9], np.int32),
    )  # fmt: skip


def test_a_learner_reads_what_its_objectives_read() -> None:
    masked, order, replaced = MaskedLM(), SentenceOrder(), ReplacedToken()
    read = read_by((masked, order), batch())
    assert read is not None
    assert read.tolist() == [0, 2, 9, 16, 18]
    assert read_by((masked, replaced), batch()) is None
    assert read_by((), batch()) is None


def test_a_learner_loses_nothing_by_it() -> None:
    objectives = (MaskedLM(), SentenceOrder())
    learner, inputs = Learner(model(), objectives), to_inputs(batch(), torch.device("cpu"))
    state = inputs.encode(learner.model)
    for objective, term in zip(objectives, learner(inputs), strict=True):
        expected = objective.term(learner.model, state, inputs)
        torch.testing.assert_close(term.loss, expected.loss, rtol=0, atol=1e-12)

"""The losses against literal versions of the papers' formulas: values, gradients, counts, steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from litebert.base.batches import Batch
from litebert.model.inputs import Inputs, to_inputs
from litebert.objectives.learner import Learner
from litebert.objectives.masked_lm import MaskedLM
from litebert.objectives.registry import build_objectives, heads_of
from litebert.objectives.replaced_token import replace_tokens
from litebert.objectives.sentence_pairs import SentenceOrder
from litebert.train.distributed import DistributedGroup
from litebert.train.step import TrainingStep
from tests.objectives.learners import (
    CPU,
    FAMILIES,
    make_batch,
    make_config,
    make_electra,
    make_model,
    some_batch,
)
from tests.objectives.literal_losses import (
    assert_same_gradients,
    literal_detection,
    literal_masked_lm,
    literal_sentence_pair,
    literal_span_boundary,
    term_of,
)

# Masked language.


@pytest.mark.parametrize("family", FAMILIES)
def test_masked_lm(family: str) -> None:
    single = family == "roberta"  # its samples have no segment of type 1
    types = 1 if single else 2
    model = make_model(make_config(family, type_vocab_size=types), ["masked_lm"])
    batch = some_batch()
    batch = replace(batch, token_types=np.zeros_like(batch.token_types)) if single else batch
    loss, correct = term_of(MaskedLM(), model, batch)
    literal, expected = literal_masked_lm(model, batch)
    torch.testing.assert_close(loss, literal, rtol=1e-10, atol=0)
    assert correct == expected
    assert MaskedLM().count(batch) == 11
    assert_same_gradients(loss, literal, model)


def test_masked_lm_counts_correct_predictions() -> None:
    model = make_model(make_config("albert"), ["masked_lm"])
    batch = some_batch()
    head: Any = model.heads["masked_lm"]
    with torch.no_grad():
        head.bias.zero_()[9] = 1e4
    assert term_of(MaskedLM(), model, batch)[1] == (batch.targets == 9).sum()
    lucky = replace(batch, targets=np.full_like(batch.targets, 9))
    assert term_of(MaskedLM(), model, lucky)[1] == 11


def test_masked_lm_of_nothing() -> None:
    model = make_model(make_config("albert"), ["masked_lm"])
    batch = make_batch([[4, 4], [6]], [[], []])
    loss, correct = term_of(MaskedLM(), model, batch)
    assert (loss.item(), correct, MaskedLM().count(batch)) == (0, 0, 0)


# Sentence pairs.


@pytest.mark.parametrize("family", ["albert", "bert", "electra"])
def test_sentence_pair(family: str) -> None:
    model = make_model(make_config(family), ["sentence_pair"])
    batch = some_batch()
    objective = SentenceOrder()
    loss, correct = term_of(objective, model, batch)
    literal, expected = literal_sentence_pair(model, batch)
    torch.testing.assert_close(loss.double(), literal, rtol=1e-6, atol=0)
    assert correct == expected
    assert objective.count(batch) == 3
    assert_same_gradients(loss, literal, model, tolerance=1e-5)


def test_unlabelled_pairs_are_not_asked() -> None:
    model = make_model(make_config("albert"), ["sentence_pair"])
    batch = make_batch([[5, 5], [7], [4, 3]], [[], [], []], [0, -1, 1])
    objective = SentenceOrder()
    without, _ = term_of(objective, model, make_batch([[5, 5]], [[]], [0]))
    alone = batch.slice(2, 3)
    loss, _ = term_of(objective, model, batch)
    torch.testing.assert_close(loss, without + term_of(objective, model, alone)[0])


def test_no_labelled_pair_at_all() -> None:
    model = make_model(make_config("albert"), ["sentence_pair"])
    batch = some_batch([-1, -1, -1, -1])
    objective = SentenceOrder()
    loss, correct = term_of(objective, model, batch)
    assert (loss.item(), correct, objective.count(batch)) == (0, 0, 0)
    gradients = torch.autograd.grad(loss, list(model.parameters()), materialize_grads=True,
                                    allow_unused=True)  # fmt: skip
    assert all((gradient == 0).all() for gradient in gradients)


# A whole step: sums over counts.


def stepped(learner: Learner, batch: Batch, micro_batch_tokens: int = 10_000) -> list[Tensor]:
    """The gradients of one step that moves nothing."""
    optimizer = torch.optim.SGD(learner.parameters(), lr=0.0)
    step = TrainingStep(
        learner, optimizer, DistributedGroup(), gradient_clipping=0.0,
        micro_batch_tokens=micro_batch_tokens, seed=0, precision="fp32",
    )  # fmt: skip
    assert step(batch, 0, 0.0).applied
    return [parameter.grad.clone() for parameter in learner.parameters()]  # type: ignore[union-attr]


def assert_step_equals(learner: Learner, batch: Batch, literal: Tensor, tolerance: float) -> None:
    theirs = torch.autograd.grad(literal, list(learner.parameters()), allow_unused=True,
                                 materialize_grads=True)  # fmt: skip
    for micro_batch_tokens in (10_000, 30, 1):
        mine = stepped(learner, batch, micro_batch_tokens)
        torch.testing.assert_close(mine, list(theirs), rtol=tolerance, atol=tolerance)


def test_albert_step_is_the_mean_over_masked_tokens_plus_the_mean_over_labelled_pairs() -> None:
    names = ["masked_lm", "sentence_order"]
    model = make_model(make_config("albert"), heads_of(names))
    learner, batch = Learner(model, build_objectives(names)), some_batch()
    assert [one.name for one in learner.objectives] == names
    masked, pairs = literal_masked_lm(model, batch)[0], literal_sentence_pair(model, batch)[0]
    assert_step_equals(learner, batch, masked / 11 + pairs / 3, 1e-5)


def test_a_step_without_labelled_pairs_learns_the_rest() -> None:
    names = ["masked_lm", "next_sentence"]
    model = make_model(make_config("bert"), heads_of(names))
    learner = Learner(model, build_objectives(names))
    assert learner.objectives[1].name == "next_sentence"
    batch = some_batch([-1, -1, -1, -1])
    assert_step_equals(learner, batch, literal_masked_lm(model, batch)[0] / 11, 1e-8)


def test_spanbert_step_divides_by_pairs_and_one() -> None:
    names = ["masked_lm", "span_boundary"]
    model = make_model(make_config("bert"), heads_of(names))
    learner = Learner(model, build_objectives(names))
    batch = make_batch([[9], [30], [9]], [[3, 4, 5], [*range(2, 20), 25], [1, 2, 5, 9]])
    masked, spans = literal_masked_lm(model, batch)[0], literal_span_boundary(model, batch)[0]
    assert learner.counts(batch) == [26, 20]
    assert_step_equals(learner, batch, masked / 26 + spans / (20 + 1), 1e-8)


def test_a_step_without_boundaries_learns_the_rest() -> None:
    names = ["masked_lm", "span_boundary"]
    model = make_model(make_config("bert"), heads_of(names))
    learner = Learner(model, build_objectives(names))
    batch = make_batch([[9], [5]], [[1, 2], [5]])
    assert_step_equals(learner, batch, literal_masked_lm(model, batch)[0] / 3, 1e-8)


def test_electra_step_averages_detection_over_all_tokens_and_weighs_it_fifty() -> None:
    learner, batch = make_electra(), some_batch()
    assert learner.generator is not None
    sampled = replace_tokens(learner.generator, to_inputs(batch, CPU))[1].ids
    masked = literal_masked_lm(learner.generator, batch)[0]
    detection = literal_detection(learner.model, batch, sampled).loss
    literal = masked / len(batch.positions) + 50 * detection / len(batch.ids)
    assert_step_equals(learner, batch, literal, 1e-5)


def test_inputs_have_types_only_where_there_are_two() -> None:
    assert isinstance(to_inputs(some_batch(), CPU), Inputs)
    assert to_inputs(make_batch([[4], [6]], [[], []]), CPU).token_types is None
    types = to_inputs(some_batch(), CPU).token_types
    assert types is not None
    assert types.tolist() == some_batch().token_types.tolist()

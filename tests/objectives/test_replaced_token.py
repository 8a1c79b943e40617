"""ELECTRA's two models: shared embeddings, both losses, and samples as the softmax has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from litebert.base.batches import Batch, split_by_tokens
from litebert.base.errors import SettingsError
from litebert.model.inputs import to_inputs
from litebert.objectives.learner import Learner
from litebert.objectives.replaced_token import ReplacedToken, replace_tokens
from tests.corpus.stores import assert_distributed
from tests.objectives.learners import (
    CPU,
    VOCABULARY,
    make_batch,
    make_config,
    make_electra,
    make_model,
    some_batch,
)
from tests.objectives.literal_losses import (
    all_logits,
    assert_same_gradients,
    encoded,
    literal_detection,
    literal_masked_lm,
)


def test_embeddings_are_shared() -> None:
    learner = make_electra()
    assert learner.generator is not None
    mine, theirs = learner.generator.encoder.embeddings, learner.model.encoder.embeddings
    for name, tensor in theirs.named_parameters():
        assert mine.get_parameter(name) is tensor
    names = [name for name, _ in learner.named_parameters()]
    assert sum(".embeddings." in name for name in names) == len(list(theirs.parameters()))
    assert not any(name.startswith("generator.encoder.embeddings") for name in names)


def test_embeddings_of_other_shapes_cannot_be_shared() -> None:
    model = make_model(make_config("electra"), ["replaced_token"])
    other = make_model(make_config("electra", vocab_size=VOCABULARY + 1), ["masked_lm"])
    with pytest.raises(SettingsError, match="cannot be shared"):
        Learner(model, [ReplacedToken()], other)


def test_replaced_token_and_its_generator() -> None:
    learner, batch = make_electra(), some_batch()
    assert learner.generator is not None
    inputs = to_inputs(batch, CPU)
    first, second = learner(inputs)
    literal, correct = literal_masked_lm(learner.generator, batch)
    torch.testing.assert_close(first.loss, literal, rtol=1e-10, atol=0)
    assert int(first.counts[0]) == correct
    assert learner.objectives[0].counters == ("correct",)
    sampled = replace_tokens(learner.generator, inputs)[1].ids
    detection = literal_detection(learner.model, batch, sampled)
    torch.testing.assert_close(second.loss.double(), detection.loss, rtol=1e-6, atol=0)
    assert learner.objectives[1].counters == ("correct", "true_positives", "positives")
    found = tuple(int(count) for count in second.counts)
    assert found == (detection.correct, detection.true_positives, detection.positives)
    assert 0 < detection.positives <= len(batch.positions)
    assert_same_gradients(first.loss + 50 * second.loss, literal + 50 * detection.loss, learner,
                          tolerance=1e-4)  # fmt: skip


def test_only_masked_tokens_are_replaced_and_no_mask_is_left() -> None:
    learner, batch = make_electra(), some_batch()
    assert learner.generator is not None
    _, inputs = replace_tokens(learner.generator, to_inputs(batch, CPU))
    kept = np.ones(len(batch.ids), dtype=bool)
    kept[batch.positions] = False
    assert (inputs.ids.numpy()[kept] == batch.ids[kept]).all()
    assert (inputs.batch.ids == batch.ids).all()


def test_names_weights_and_counts_of_electra() -> None:
    learner, batch = make_electra(), some_batch()
    assert [one.name for one in learner.objectives] == ["masked_lm", "replaced_token"]
    assert [one.weight for one in learner.objectives] == [1, 50]
    assert [one.count_offset for one in learner.objectives] == [0, 0]
    assert learner.counts(batch) == [len(batch.positions), len(batch.ids)]
    assert make_electra(weight=7).objectives[1].weight == 7
    assert list(learner.folders()) == ["model", "generator"]


def test_detection_gives_the_generator_no_gradient() -> None:
    learner = make_electra()
    _, detection = learner(to_inputs(some_batch(), CPU))
    own = {n: p for n, p in learner.named_parameters() if n.startswith("generator.")}
    assert own
    gradients = torch.autograd.grad(detection.loss, list(own.values()), allow_unused=True)
    assert all(gradient is None for gradient in gradients)


def test_gradients_of_both_losses_add_up_in_the_embeddings() -> None:
    learner = make_electra()
    first, second = learner(to_inputs(some_batch(), CPU))
    shared = list(learner.model.encoder.embeddings.parameters())
    one = torch.autograd.grad(first.loss, shared, retain_graph=True)
    two = torch.autograd.grad(second.loss, shared, retain_graph=True)
    both = torch.autograd.grad(first.loss + 50 * second.loss, shared)
    for a, b, sum_ in zip(one, two, both, strict=True):
        assert a.abs().max() > 0
        assert b.abs().max() > 0
        torch.testing.assert_close(sum_, a + 50 * b, rtol=1e-5, atol=1e-5)


def with_favourite(learner: Learner, piece: int) -> Learner:
    """The generator says nothing but this."""
    assert learner.generator is not None
    head: Any = learner.generator.heads["masked_lm"]
    with torch.no_grad():
        head.bias.fill_(-1e4)[piece] = 1e4
    return learner


def test_a_sample_that_is_correct_counts_as_original() -> None:
    learner, batch = with_favourite(make_electra(), 9), some_batch()
    lucky = replace(batch, targets=np.full_like(batch.targets, 9))
    _, detection = learner(to_inputs(lucky, CPU))
    assert int(detection.counts[2]) == 0
    unlucky = replace(batch, targets=np.full_like(batch.targets, 8))
    _, detection = learner(to_inputs(unlucky, CPU))
    assert int(detection.counts[2]) == len(batch.positions)
    half = replace(batch, targets=np.where(np.arange(11) < 5, 9, 8).astype(np.int32))
    _, detection = learner(to_inputs(half, CPU))
    assert int(detection.counts[2]) == 6


def many_alike(count: int) -> Batch:
    """One sequence again and again, each with a name of its own."""
    one = make_batch([[6]], [[2, 3, 5]])
    places = np.arange(count)[:, None] * len(one.ids) + one.positions
    columns = ("ids", "token_types", "is_text", "segment_starts", "lengths", "labels", "targets")
    return Batch(
        **{name: np.tile(getattr(one, name), count) for name in columns},
        keys=np.random.default_rng(5).integers(0, 2**64, count, dtype=np.uint64),
        positions=places.ravel(),
    )


def test_samples_follow_the_generators_softmax() -> None:
    learner, count = make_electra(), 50_000
    generator, batch = learner.generator, many_alike(count)
    assert generator is not None
    with torch.no_grad():
        _, inputs = replace_tokens(generator, to_inputs(batch, CPU))
        (x,) = encoded(generator, batch.slice(0, 1))
        shares = all_logits(generator, x, generator.heads["masked_lm"]).softmax(-1)
    sampled = inputs.ids.view(count, -1)[:, [2, 3, 5]]
    for column, place in enumerate((2, 3, 5)):
        found = np.bincount(sampled[:, column].numpy(), minlength=VOCABULARY)
        assert_distributed(found, shares[place].numpy() * count)
    table = np.zeros((VOCABULARY, VOCABULARY))  # neighbours are drawn independently
    np.add.at(table, (sampled[:, 0].numpy(), sampled[:, 1].numpy()), 1)
    expected = np.outer(shares[2].numpy(), shares[3].numpy()) * count
    enough = expected >= 5
    rest, expected_rest = table[~enough].sum(), expected[~enough].sum()
    assert_distributed([*table[enough], rest], [*expected[enough], expected_rest])


@pytest.mark.parametrize("tokens", [1, 20, 31, 1000])
def test_samples_do_not_depend_on_how_a_batch_is_cut(tokens: int) -> None:
    learner, batch = make_electra(), some_batch()
    assert learner.generator is not None
    whole = replace_tokens(learner.generator, to_inputs(batch, CPU))[1].ids
    parts = [replace_tokens(learner.generator, to_inputs(part, CPU))[1].ids
             for part in split_by_tokens(batch, tokens)]  # fmt: skip
    assert torch.equal(whole, torch.cat(parts))
    with torch.no_grad():
        assert torch.equal(whole, replace_tokens(learner.generator, to_inputs(batch, CPU))[1].ids)


def test_names_decide_the_samples() -> None:
    learner, batch = make_electra(), many_alike(50)
    assert learner.generator is not None
    rows = replace_tokens(learner.generator, to_inputs(batch, CPU))[1].ids.view(50, -1)
    assert len({tuple(row) for row in rows.tolist()}) > 25
    other = replace(batch, keys=batch.keys + np.uint64(1))
    assert not torch.equal(
        rows.flatten(), replace_tokens(learner.generator, to_inputs(other, CPU))[1].ids
    )

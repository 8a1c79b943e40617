"""What is learned from a teacher, against literal versions of the formulas."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from litebert.base.batches import Batch
from litebert.base.errors import SettingsError
from litebert.model.config import EncoderConfig
from litebert.model.inputs import Inputs, to_inputs
from litebert.model.model import Model
from litebert.objectives.distillation import Distillation, TeacherSettings
from litebert.objectives.learner import Learner
from litebert.objectives.masked_lm import MaskedLM
from litebert.objectives.registry import TAUGHT
from litebert.objectives.relations import most_heads, relation_divergence
from litebert.objectives.sentence_vectors import principal_components, turned

LENGTHS = [5, 3, 7]
SETTINGS = TeacherSettings(folder="teacher", relation_heads=2, weights={"relations": 0.5})


def config(width: int, **changes: Any) -> EncoderConfig:
    size = {"vocab_size": 20, "embedding_size": 6, "intermediate_size": 16}
    return EncoderConfig(
        family="albert", hidden_size=width, num_hidden_layers=3, num_attention_heads=2,
        max_position_embeddings=16, initializer_range=0.5, **{**size, **changes},
    )  # fmt: skip


class PlainTeacher:
    """A teacher without packed weights."""

    same_tokens = True

    def __init__(self, width: int) -> None:
        self.config = config(width)
        self.model = Model.create(self.config, seed=7).double().eval()

    def _states(self, inputs: Inputs) -> list[Any]:
        ids = torch.from_numpy(inputs.batch.originals).long()
        state = self.model.encoder.embed(ids, lengths=inputs.batch.lengths.tolist())
        states = [state]
        self.model.encoder.layers(state, 0, self.config.num_hidden_layers, states)
        return states

    @torch.no_grad()
    def query_key_value(self, inputs: Inputs, layer: int) -> Tensor:
        attention: Any = self.model.encoder.attentions[0]
        return attention.query_key_value(self._states(inputs)[layer - 1].x_NH)

    @torch.no_grad()
    def hidden_states(self, inputs: Inputs, layer: int) -> Tensor:
        return self._states(inputs)[layer].x_NH

    @torch.no_grad()
    def vectors(self, inputs: Inputs) -> Tensor:
        return self._states(inputs)[-1].mean()


def batch(seed: int = 0) -> Batch:
    chance = np.random.default_rng(seed)
    count = sum(LENGTHS)
    ids = chance.integers(5, 20, count).astype(np.int32)
    positions = np.array([1, 6, 10])
    targets, masked = ids[positions], ids.copy()
    masked[positions] = 4
    return Batch(
        ids=masked, token_types=np.zeros(count, np.int8), is_text=np.ones(count, bool),
        segment_starts=np.zeros(count, bool), lengths=np.array(LENGTHS),
        labels=np.full(3, -1), keys=np.arange(3, dtype=np.uint64),
        positions=positions, targets=targets,
    )  # fmt: skip


def taught(name: str, width: int = 8, teacher: int = 12) -> tuple[Distillation, Model, Inputs]:
    student = Model.create(config(width), ("masked_lm",), seed=1).double()
    objective = TAUGHT[name](student.config, PlainTeacher(teacher), SETTINGS).double()
    return objective, student, to_inputs(batch(), torch.device("cpu"))


def slow_divergence(x_TH: Tensor, taught_TH: Tensor, heads: int) -> Tensor:
    """Of one sequence, relation head by relation head, token by token."""
    total = x_TH.new_zeros(())
    for one, other in zip(x_TH.chunk(heads, -1), taught_TH.chunk(heads, -1), strict=True):
        ours = (one @ one.T / one.shape[1] ** 0.5).log_softmax(-1)
        theirs = (other @ other.T / other.shape[1] ** 0.5).log_softmax(-1)
        total = total + F.kl_div(ours, theirs, reduction="sum", log_target=True) / heads
    return total


def test_relations_are_those_of_the_paper() -> None:
    """Values and gradients, of sequences of several lengths."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(sum(LENGTHS), 8, generator=generator, dtype=torch.float64, requires_grad=True)
    other = torch.randn(sum(LENGTHS), 12, generator=generator, dtype=torch.float64)
    pairs = zip(x.split(LENGTHS), other.split(LENGTHS), strict=True)
    expected = torch.stack([slow_divergence(*pair, 4) for pair in pairs]).sum()
    (expected_gradient,) = torch.autograd.grad(expected, x)

    padded, theirs = (
        torch.nn.utils.rnn.pad_sequence(list(rows.split(LENGTHS)), batch_first=True)
        for rows in (x, other)
    )
    real = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    found = relation_divergence(padded, theirs, real, 4)
    (gradient,) = torch.autograd.grad(3 * found, x)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradient, 3 * expected_gradient)


def test_a_student_learns_the_last_layers_relations() -> None:
    """Of all three kinds; the student reads masked tokens, the teacher what was there."""
    objective, student, inputs = taught("relations")
    learner = Learner(student, [MaskedLM(), objective])
    term = learner(inputs)[1]
    states: list[Any] = [inputs.embed(student)]
    inputs.layers(student, states[0], 0, 3, None, states)
    attention: Any = student.encoder.attentions[0]
    ours = attention.query_key_value(states[2].x_NH).chunk(3, -1)
    theirs = objective.teacher.query_key_value(inputs, 3).chunk(3, -1)
    expected = torch.zeros((), dtype=torch.float64)
    for one, other in zip(ours, theirs, strict=True):
        parts = zip(one.split(LENGTHS), other.split(LENGTHS), strict=True)
        expected = expected + torch.stack([slow_divergence(*pair, 2) for pair in parts]).sum()
    torch.testing.assert_close(term.loss, expected)
    assert objective.weight == 0.5
    assert learner.counts(inputs.batch) == [3, 15]


def test_hidden_states_through_a_projection() -> None:
    objective, student, inputs = taught("hidden_states")
    learner = Learner(student, [objective])
    (term,) = learner(inputs)
    ours = objective.projection(inputs.encode(student).x_NH)
    theirs = objective.teacher.hidden_states(inputs, 3)
    expected = torch.zeros((), dtype=torch.float64)
    for one, other in zip(ours, theirs, strict=True):
        one, other = ((row - row.mean()) / (row.var(correction=0) + 1e-5) ** 0.5
                      for row in (one.float(), other.float()))  # fmt: skip
        expected = expected + (one - other).square().mean()
    torch.testing.assert_close(term.loss.double(), expected, rtol=1e-5, atol=1e-6)
    names = dict(learner.named_parameters())
    assert "taught.0.projection.weight" in names  # it learns, and is saved with a checkpoint
    assert not any("teacher" in name for name in names)


@pytest.mark.parametrize(("width", "teacher"), [(8, 12), (12, 8), (8, 8)])
def test_vectors_point_where_the_teachers_do(width: int, teacher: int) -> None:
    objective, student, inputs = taught("sentence_vectors", width, teacher)
    with torch.no_grad():
        objective.prepare(iter([inputs] * 40), lambda inputs: inputs.encode(student))
    (term,) = Learner(student, [objective])(inputs)
    theirs = F.normalize(objective.teacher.vectors(inputs)).float()
    seen = theirs @ objective.basis.float()
    torch.testing.assert_close(seen @ seen.T, theirs @ theirs.T, atol=1e-4, rtol=1e-4)
    ours = F.normalize(inputs.encode(student).mean()).float()
    expected = (1 - (ours * F.normalize(seen)).sum(-1)).sum()
    torch.testing.assert_close(term.loss.float(), expected, atol=1e-4, rtol=1e-4)


def test_principal_components_keep_the_most() -> None:
    rows = torch.randn(50, 6, generator=torch.Generator().manual_seed(3))
    found = principal_components(rows, 2)
    torch.testing.assert_close(found.T @ found, torch.eye(2))
    kept = (rows @ found).square().sum()
    torch.testing.assert_close(kept, torch.linalg.svdvals(rows)[:2].square().sum())


@pytest.mark.parametrize(("theirs", "ours"), [(6, 6), (9, 6), (4, 6)])
def test_vectors_are_turned_to_where_the_students_stand(theirs: int, ours: int) -> None:
    """What differs by a turn alone is found: nothing is left to unlearn."""
    generator = torch.Generator().manual_seed(4)
    width = min(theirs, ours)
    plain = torch.randn(200, width, generator=generator) * torch.linspace(2, 1, width)
    turns = [torch.linalg.qr(torch.randn(n, width, generator=generator))[0] for n in (theirs, ours)]
    taught_BH, ours_BS = (plain @ turn.T for turn in turns)
    basis = turned(taught_BH, ours_BS)
    torch.testing.assert_close(taught_BH @ basis, ours_BS, atol=1e-4, rtol=1e-4)
    if theirs <= ours:
        torch.testing.assert_close(basis @ basis.T, torch.eye(theirs), atol=1e-5, rtol=1e-5)


def test_relation_heads_divide_both_widths() -> None:
    assert most_heads(256, 384) == 16
    assert most_heads(128, 768) == 32
    assert most_heads(7, 12) == 1
    odd = SETTINGS.model_copy(update={"relation_heads": 5})
    with pytest.raises(SettingsError, match=r"relation_heads 5: must divide .* 8 and 12"):
        TAUGHT["relations"](config(8), PlainTeacher(12), odd)


def test_what_cannot_be_learned_is_refused() -> None:
    deep = SETTINGS.model_copy(update={"layer": 4})
    with pytest.raises(SettingsError, match="layer 4: teacher has 3 layers"):
        TAUGHT["hidden_states"](config(8), PlainTeacher(12), deep)
    other: Any = SimpleNamespace(config=config(12), same_tokens=False)
    with pytest.raises(SettingsError, match="--tokenizer teacher"):
        TAUGHT["relations"](config(8), other, SETTINGS)
    TAUGHT["sentence_vectors"](config(8), other, SETTINGS)

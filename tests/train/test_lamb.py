"""LAMB against the formula, written out in plain Python, in double precision."""

from __future__ import annotations

import math
from copy import deepcopy
from itertools import pairwise

import pytest
import torch

from litebert.configs.load import load_preset
from litebert.configs.schema import OptimizerSettings, ScheduleSettings
from litebert.model.model import Model
from litebert.train.lamb import Lamb
from litebert.train.optimizer import parameter_groups
from litebert.train.schedule import learning_rate_at, peak_learning_rate


def reference(
    weights: list[float], gradients: list[list[float]], rates: list[float], excluded: bool
) -> list[float]:
    """One tensor, number by number, as the fact sheet has it."""
    mean, square = [0.0] * len(weights), [0.0] * len(weights)
    for gradient, rate in zip(gradients, rates, strict=True):
        mean = [0.9 * m + 0.1 * g for m, g in zip(mean, gradient, strict=True)]
        square = [0.999 * v + 0.001 * g * g for v, g in zip(square, gradient, strict=True)]
        change = [m / (math.sqrt(v) + 1e-6) for m, v in zip(mean, square, strict=True)]
        ratio = 1.0
        if not excluded:
            change = [r + 0.01 * w for r, w in zip(change, weights, strict=True)]
            size = math.sqrt(sum(w * w for w in weights))
            step = math.sqrt(sum(r * r for r in change))
            ratio = size / step if size > 0 and step > 0 else 1.0
        weights = [w - rate * ratio * r for w, r in zip(weights, change, strict=True)]
    return weights


def run(weight: torch.Tensor, gradients: torch.Tensor, rates: list[float], **group: object) -> None:
    optimizer = Lamb([{"params": [weight], **group}])
    for gradient, rate in zip(gradients, rates, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        weight.grad = gradient
        optimizer.step()


@pytest.mark.parametrize("excluded", [False, True])
def test_a_hundred_steps_equal_the_formula(excluded: bool) -> None:
    weight = torch.randn(4, 5, dtype=torch.float64) * 0.02
    gradients = (
        torch.randn(100, 4, 5, dtype=torch.float64) * torch.logspace(-3, 1, 100)[:, None, None]
    )
    rates = [
        learning_rate_at(ScheduleSettings(warmup=0.1, continuous=False), 0.00176, t / 100)
        for t in range(100)
    ]
    expected = reference(
        weight.flatten().tolist(), gradients.flatten(1).tolist(), rates, excluded
    )  # fmt: skip
    group = {"weight_decay": 0.0, "adapt": False} if excluded else {}
    run(weight, gradients, rates, **group)
    torch.testing.assert_close(
        weight.flatten(), torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12
    )


def test_fused_tensors_have_a_ratio_each() -> None:
    whole = (
        torch.randn(6, 3, dtype=torch.float64)
        * torch.tensor([1.0, 10.0, 100.0]).repeat_interleave(2)[:, None]
    )
    gradients = torch.randn(30, 6, 3, dtype=torch.float64)
    pieces = [piece.clone() for piece in whole.chunk(3)]
    run(whole, gradients, [0.01] * 30, parts=3)
    for piece, gradient in zip(pieces, gradients.chunk(3, dim=1), strict=True):
        run(piece, gradient, [0.01] * 30)
    torch.testing.assert_close(whole, torch.cat(pieces), rtol=0, atol=1e-14)


def test_zero_weights_and_zero_gradients_have_a_ratio_of_one() -> None:
    weight = torch.zeros(3, 3, dtype=torch.float64)
    run(weight, torch.ones(1, 3, 3, dtype=torch.float64), [0.5])
    change = 0.1 / (math.sqrt(0.001) + 1e-6)
    torch.testing.assert_close(weight, torch.full_like(weight, -0.5 * change))
    still = torch.ones(2, 2, dtype=torch.float64)
    run(still, torch.zeros(1, 2, 2, dtype=torch.float64), [0.5], weight_decay=0.0)
    assert (still == 1).all()


def test_groups_of_a_model() -> None:
    """Google's exclusions by name are the parameters of one dimension; nothing is lost or twice."""
    preset = load_preset("albert-tiny")
    model = Model.create(preset.model, preset.heads, seed=1)
    groups = parameter_groups(model, 0.01)
    names = {id(p): name for name, p in model.named_parameters()}
    listed = [id(p) for group in groups for p in group["params"]]
    assert sorted(listed) == sorted(names)
    plain, fused, vectors = groups
    assert {names[id(p)].split(".")[-2] for p in fused["params"]} == {"query_key_value"}
    assert fused["parts"] == 3
    assert all("bias" in names[id(p)] or "norm" in names[id(p)] for p in vectors["params"])
    assert not any("bias" in names[id(p)] or "norm" in names[id(p)] for p in plain["params"])
    assert vectors["weight_decay"] == 0
    assert not vectors["adapt"]


def test_state_survives_saving() -> None:
    gradients = torch.randn(8, 3, 3)
    one = torch.nn.Parameter(torch.randn(3, 3))
    first = Lamb([one])
    for gradient in gradients[:4]:
        one.grad = gradient.clone()
        first.step()
    other = torch.nn.Parameter(one.detach().clone())
    second = Lamb([other])
    second.load_state_dict(deepcopy(first.state_dict()))
    for gradient in gradients[4:]:
        one.grad, other.grad = gradient.clone(), gradient.clone()
        first.step()
        second.step()
    assert torch.equal(one, other)


def test_googles_schedule_jumps_where_warmup_ends() -> None:
    google = ScheduleSettings(warmup=0.025, continuous=False)
    rates = {
        step: learning_rate_at(google, 0.00176, step / 125_000) for step in (0, 3124, 3125, 125_000)
    }
    assert rates[0] == 0
    assert rates[3124] == pytest.approx(0.00176 * 3124 / 3125)
    assert rates[3125] == pytest.approx(0.00176 * (1 - 3125 / 125_000))
    assert rates[125_000] == 0


def test_the_continuous_schedule_does_not() -> None:
    schedule = ScheduleSettings(warmup=0.1, decay_power=2.0)
    rates = [learning_rate_at(schedule, 1.0, step / 100) for step in range(140)]
    assert rates[10] == 1.0
    assert max(abs(a - b) for a, b in pairwise(rates)) <= 0.1 + 1e-9
    assert rates[55] == pytest.approx(0.25)
    assert rates[100:] == [0.0] * 40


def test_rates_scale_by_the_root_of_the_batch() -> None:
    settings = OptimizerSettings(learning_rate=0.00176, reference_batch_size=4096)
    assert peak_learning_rate(settings, 4096) == 0.00176
    assert peak_learning_rate(settings, 1024) == pytest.approx(0.00088)
    assert peak_learning_rate(OptimizerSettings(learning_rate=1e-3), 7) == 1e-3

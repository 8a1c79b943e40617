"""Optimizers against their formulas, their state on disk, and gradients in one run of memory."""

from __future__ import annotations

import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from litebert.base.errors import FormatError
from litebert.configs.schema import OptimizerSettings
from litebert.model.config import EncoderConfig
from litebert.model.folder import read_tensors, write_tensors
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.objectives.replaced_token import ReplacedToken
from litebert.train.gradients import LINE, Gradients
from litebert.train.lamb import Lamb
from litebert.train.optimizer import (
    build_optimizer,
    optimizer_tensors,
    parameter_groups,
    restore_optimizer,
    set_learning_rate,
)

SIZE: dict[str, Any] = {
    "vocab_size": 30, "embedding_size": 8, "hidden_size": 12, "num_hidden_layers": 2,
    "num_attention_heads": 2, "intermediate_size": 20, "max_position_embeddings": 16,
}  # fmt: skip


def make_electra() -> Learner:
    config = EncoderConfig(family="electra", sharing="none", **SIZE)
    small = config.model_copy(update={"hidden_size": 4, "num_attention_heads": 1})
    model = Model.create(config, ("replaced_token",), seed=1)
    generator = Model.create(small, ("masked_lm",), seed=2)
    return Learner(model, [ReplacedToken()], generator)


def make_albert() -> Model:
    config = EncoderConfig(**SIZE)
    return Model.create(config, ("masked_lm", "sentence_pair"), seed=1)


# Groups.


def test_groups_of_an_electra_learner_hold_each_tensor_once() -> None:
    learner = make_electra()
    assert learner.generator is not None
    every = {*map(id, learner.model.parameters()), *map(id, learner.generator.parameters())}
    groups = parameter_groups(learner, 0.01)
    listed = [id(parameter) for group in groups for parameter in group["params"]]
    assert len(listed) == len(set(listed))
    assert set(listed) == every
    table = learner.model.encoder.embeddings.token.weight
    assert learner.generator.encoder.embeddings.token.weight is table
    assert sum(parameter is table for parameter in groups[0]["params"]) == 1
    optimizer = build_optimizer(learner, OptimizerSettings())
    assert sum(len(group["params"]) for group in optimizer.param_groups) == len(every)


def test_both_models_attentions_count_as_three_in_one() -> None:
    learner = make_electra()
    fused = [group for group in parameter_groups(learner, 0.01) if group["parts"] == 3]
    assert [len(group["params"]) for group in fused] == [4]  # two layers in either model
    shapes = sorted(tuple(parameter.shape) for parameter in fused[0]["params"])
    assert shapes == [(12, 4), (12, 4), (36, 12), (36, 12)]


def test_what_needs_no_gradient_is_left_out() -> None:
    model = make_albert()
    model.encoder.embeddings.token.weight.requires_grad_(False)
    listed = [p for group in parameter_groups(model, 0.01) for p in group["params"]]
    assert len(listed) == len(list(model.parameters())) - 1


# Formulas.


class Two(nn.Module):
    """A matrix, which decays, and a vector, which does not."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.matrix = nn.Parameter(torch.randn(4, 5, dtype=torch.float64))
        self.vector = nn.Parameter(torch.randn(6, dtype=torch.float64))


def random_gradients(steps: int) -> list[tuple[Tensor, Tensor]]:
    """Of very different sizes, some of them zero."""
    chance = torch.Generator().manual_seed(3)

    def one(step: int, *shape: int) -> Tensor:
        size = 10.0 ** (step % 5 - 3) * (step % 7 > 0)
        return torch.randn(*shape, dtype=torch.float64, generator=chance) * size

    return [(one(step, 4, 5), one(step, 6)) for step in range(steps)]


def rates(steps: int) -> list[float]:
    return [1e-3 * (step + 1) / steps for step in range(steps)]


def run(module: Two, settings: OptimizerSettings, steps: int) -> None:
    optimizer = build_optimizer(module, settings)
    for rate, gradients in zip(rates(steps), random_gradients(steps), strict=True):
        module.matrix.grad, module.vector.grad = gradients[0].clone(), gradients[1].clone()
        set_learning_rate(optimizer, rate)
        optimizer.step()


def literal_google(
    weight: list[float], gradients: list[list[float]], decay: float, first: float, second: float,
    eps: float,
) -> list[float]:  # fmt: skip
    """m and v without bias correction; w -= rate (m / (sqrt(v) + eps) + decay w)."""
    mean, square = [0.0] * len(weight), [0.0] * len(weight)
    for rate, gradient in zip(rates(len(gradients)), gradients, strict=True):
        for n, g in enumerate(gradient):
            mean[n] = first * mean[n] + (1 - first) * g
            square[n] = second * square[n] + (1 - second) * g * g
            update = mean[n] / (math.sqrt(square[n]) + eps) + decay * weight[n]
            weight[n] -= rate * update
    return weight


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.8, 0.98)])
@pytest.mark.parametrize("decay", [0.01, 0.0])
def test_adamw_without_correction_is_googles(betas: tuple[float, float], decay: float) -> None:
    module = Two()
    before = {name: parameter.detach().flatten().tolist() for name, parameter in
              module.named_parameters()}  # fmt: skip
    settings = OptimizerSettings(name="adamw", betas=betas, weight_decay=decay)
    assert (settings.bias_correction, settings.eps) == (False, 1e-6)
    run(module, settings, 50)
    gradients = random_gradients(50)
    for number, (name, shrinks) in enumerate((("matrix", decay), ("vector", 0.0))):
        flat = [pair[number].flatten().tolist() for pair in gradients]
        expected = literal_google(before[name], flat, shrinks, *betas, 1e-6)
        found = module.get_parameter(name).detach().flatten()
        torch.testing.assert_close(
            found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12
        )


def test_adamw_with_correction_is_torchs() -> None:
    module, other = Two(), Two()
    settings = OptimizerSettings(name="adamw", bias_correction=True, betas=(0.9, 0.98), eps=1e-8)
    run(module, settings, 50)
    groups = [{"params": [other.matrix], "weight_decay": 0.01},
              {"params": [other.vector], "weight_decay": 0.0}]  # fmt: skip
    theirs = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-8, foreach=False)
    for rate, gradients in zip(rates(50), random_gradients(50), strict=True):
        other.matrix.grad, other.vector.grad = gradients[0].clone(), gradients[1].clone()
        for group in theirs.param_groups:
            group["lr"] = rate
        theirs.step()
    torch.testing.assert_close(module.matrix, other.matrix, rtol=0, atol=1e-13)
    torch.testing.assert_close(module.vector, other.vector, rtol=0, atol=1e-13)


def test_the_two_kinds_of_adamw_differ() -> None:
    one, two = Two(), Two()
    run(one, OptimizerSettings(name="adamw"), 5)
    run(two, OptimizerSettings(name="adamw", bias_correction=True), 5)
    assert (one.vector - two.vector).abs().max() > 1e-4


def test_first_step_without_correction_is_3_2_times_as_large() -> None:
    """Facts C: 0.1 / sqrt(0.001)."""
    module = Two()
    before = module.vector.detach().clone()
    optimizer = build_optimizer(module, OptimizerSettings(name="adamw"))
    module.vector.grad = torch.full((6,), 2.0, dtype=torch.float64)
    set_learning_rate(optimizer, 1e-3)
    optimizer.step()
    change = (before - module.vector.detach()) / 1e-3
    torch.testing.assert_close(change, torch.full_like(change, 0.1 / math.sqrt(1e-3)), rtol=1e-4,
                               atol=0)  # fmt: skip


def test_kinds() -> None:
    module = Two()
    lamb = build_optimizer(module, OptimizerSettings())
    assert isinstance(lamb, Lamb)
    assert [group["adapt"] for group in lamb.param_groups] == [True, False]
    google = build_optimizer(module, OptimizerSettings(name="adamw"))
    assert not any(group["adapt"] for group in google.param_groups)
    torchs = build_optimizer(module, OptimizerSettings(name="adamw", bias_correction=True))
    assert isinstance(torchs, torch.optim.AdamW)


# State.

KINDS = [
    OptimizerSettings(name="lamb"),
    OptimizerSettings(name="adamw"),
    OptimizerSettings(name="adamw", bias_correction=True),
]


def take_steps(module: nn.Module, optimizer: torch.optim.Optimizer, first: int, last: int) -> None:
    """Steps whose gradients are known by their numbers."""
    for step in range(first, last):
        chance = torch.Generator().manual_seed(step)
        for parameter in module.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=chance)
        set_learning_rate(optimizer, 1e-3 * (step + 1))
        optimizer.step()


@pytest.mark.parametrize("settings", KINDS, ids=["lamb", "google", "adamw"])
@pytest.mark.parametrize("build", [make_albert, make_electra])
def test_a_restored_optimizer_goes_on_bit_for_bit(
    settings: OptimizerSettings, build: Any, tmp_path: Path
) -> None:
    module = build()
    optimizer = build_optimizer(module, settings)
    take_steps(module, optimizer, 0, 5)
    write_tensors(tmp_path / "state.safetensors", optimizer_tensors(optimizer))
    other = deepcopy(module)
    again = build_optimizer(other, settings)
    restore_optimizer(again, read_tensors(tmp_path / "state.safetensors"), "here")
    take_steps(module, optimizer, 5, 10)
    take_steps(other, again, 5, 10)
    for name, parameter in module.named_parameters():
        assert torch.equal(parameter, other.get_parameter(name)), name
    mine, theirs = optimizer_tensors(optimizer), optimizer_tensors(again)
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


@pytest.mark.parametrize("settings", KINDS, ids=["lamb", "google", "adamw"])
def test_an_optimizer_that_has_not_stepped_has_no_state(settings: OptimizerSettings) -> None:
    module = make_albert()
    optimizer = build_optimizer(module, settings)
    assert optimizer_tensors(optimizer) == {}
    restore_optimizer(optimizer, {}, "here")
    take_steps(module, optimizer, 0, 1)


def damaged(kind: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """A state that does not fit, in one way."""
    first = next(iter(tensors))
    if kind == "number":
        return {**tensors, "999.mean": tensors[first]}
    if kind == "name":
        return {**tensors, "mean": tensors[first]}
    if kind == "shape":
        return {**tensors, first: torch.zeros(3, 1, 4)}
    if kind == "other optimizer":
        names = {"mean": "exp_avg", "square": "exp_avg_sq"}
        return {f"{n.split('.')[0]}.{names[n.split('.')[1]]}": t for n, t in tensors.items()}
    if kind == "missing moment":
        return {name: tensor for name, tensor in tensors.items() if name != first}
    number = first.split(".")[0] + "."
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(number)}


@pytest.mark.parametrize(
    "kind",
    ["number", "name", "shape", "other optimizer", "missing moment", "missing parameter"],
)
def test_a_state_that_does_not_fit_is_refused(kind: str) -> None:
    module = make_albert()
    optimizer = build_optimizer(module, OptimizerSettings())
    take_steps(module, optimizer, 0, 2)
    wrong = damaged(kind, optimizer_tensors(optimizer))
    with pytest.raises(FormatError, match="somewhere"):
        restore_optimizer(build_optimizer(module, OptimizerSettings()), wrong, "somewhere")


# Gradients in one run of memory.


def loss_of(model: Model) -> Tensor:
    state = model(torch.arange(10)[None])
    pairs = model.head("sentence_pair")(state).square().sum()
    return model.head("masked_lm")(state).logsumexp(-1).sum() + 30 * pairs


def test_gradients_are_views_of_one_run() -> None:
    model, plain = make_albert(), make_albert()
    gradients = Gradients(model, 4)
    loss_of(model).backward()
    loss_of(plain).backward()
    low = gradients.flat.untyped_storage().data_ptr()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        assert parameter.grad.untyped_storage().data_ptr() == low
        wanted = plain.get_parameter(name).grad
        found = parameter.grad if wanted is not None else parameter.grad.any()
        torch.testing.assert_close(found, wanted if wanted is not None else torch.tensor(False))
    starts = [p.grad.storage_offset() for p in model.parameters()]  # type: ignore[union-attr]
    assert all(start % LINE == 0 for start in starts)
    assert (gradients.sums == 0).all()
    assert len(gradients.sums) == 4
    gradients.sums += 2
    assert (gradients.flat[-4:] == 2).all()


def test_no_two_gradients_overlap() -> None:
    learner = make_electra()
    gradients = Gradients(learner, 3)
    for number, parameter in enumerate(learner.parameters(), start=1):
        assert parameter.grad is not None
        parameter.grad.fill_(number)
    for number, parameter in enumerate(learner.parameters(), start=1):
        assert parameter.grad is not None
        assert (parameter.grad == number).all()
    assert (gradients.sums == 0).all()


def test_clearing_keeps_the_views() -> None:
    model = make_albert()
    gradients = Gradients(model, 2)
    loss_of(model).backward()
    first = gradients.values.clone()
    gradients.sums.fill_(3)
    gradients.clear()
    assert not gradients.flat.any()
    assert all(not parameter.grad.any() for parameter in model.parameters())  # type: ignore[union-attr]
    loss_of(model).backward()
    torch.testing.assert_close(gradients.values, first)
    loss_of(model).backward()
    torch.testing.assert_close(gradients.values, 2 * first)


@pytest.mark.parametrize("most", [0.01, 1.0, 1e6])
def test_norm_and_clipping_are_torchs(most: float) -> None:
    model, plain = make_albert(), make_albert()
    gradients = Gradients(model, 5)
    loss_of(model).backward()
    loss_of(plain).backward()
    gradients.sums.fill_(1e9)  # not part of the norm
    norm = gradients.norm()
    theirs = nn.utils.clip_grad_norm_(plain.parameters(), most)
    torch.testing.assert_close(norm, theirs)
    gradients.clip(norm.item(), most)
    for name, parameter in plain.named_parameters():
        mine = model.get_parameter(name).grad
        assert mine is not None
        if parameter.grad is not None:
            torch.testing.assert_close(mine, parameter.grad, rtol=1e-4, atol=1e-7)
    assert gradients.norm().item() <= most * (1 + 1e-5) or norm.item() <= most
    assert (gradients.sums == 1e9).all()


def test_a_clip_of_zero_leaves_all_gradients() -> None:
    model = make_albert()
    gradients = Gradients(model, 0)
    loss_of(model).backward()
    before = gradients.values.clone()
    gradients.clip(gradients.norm().item(), 0.0)
    assert torch.equal(gradients.values, before)
    assert len(gradients.sums) == 0


def test_padding_between_gradients_stays_zero() -> None:
    model = make_albert()
    gradients = Gradients(model, 0)
    for parameter in model.parameters():
        assert parameter.grad is not None
        parameter.grad.fill_(1.0)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert gradients.norm().item() == pytest.approx(math.sqrt(count), rel=1e-6)


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_the_pair_head_and_pooler_may_learn_more_slowly(name: str) -> None:
    model = make_albert()
    optimizer = build_optimizer(model, OptimizerSettings(name=name, pair_head_lr_factor=0.25))
    set_learning_rate(optimizer, 0.8)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    found = {name: rates.pop(id(parameter)) for name, parameter in model.named_parameters()}
    assert not rates
    slower = {each for each, rate in found.items() if rate == pytest.approx(0.2)}
    assert slower == {
        f"{each}.dense.{kind}"
        for each in ("pooler", "heads.sentence_pair")
        for kind in ("weight", "bias")
    }
    assert all(rate == pytest.approx(0.8) for each, rate in found.items() if each not in slower)

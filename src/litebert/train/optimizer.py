"""The optimizer of a run, from its settings; and its state as named tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from litebert.base.errors import FormatError
from litebert.presets.recipe import OptimizerSettings
from litebert.train.groups import layered_groups, parameter_groups
from litebert.train.lamb import Lamb

Tensors = dict[str, Tensor]
MOMENTS: dict[type[Optimizer], tuple[str, ...]] = {
    Lamb: ("mean", "square"),
    torch.optim.AdamW: ("step", "exp_avg", "exp_avg_sq"),
}


def build_optimizer(
    module: nn.Module, settings: OptimizerSettings, layer_decay: float = 1.0
) -> Optimizer:
    """LAMB, AdamW, or Google's AdamW: LAMB's moments without its trust ratio."""
    groups = parameter_groups(module, settings.weight_decay)
    if layer_decay != 1.0:
        groups = layered_groups(module, groups, layer_decay)
    options: dict[str, Any] = {"lr": 0.0, "betas": settings.betas, "eps": settings.eps}
    if settings.kind == "lamb":
        return Lamb(groups, **options)
    if not settings.bias_correction:
        return Lamb([{**group, "adapt": False} for group in groups], **options)
    wanted = ("params", "weight_decay", "scale")
    known = [{key: group[key] for key in wanted if key in group} for group in groups]
    return torch.optim.AdamW(known, fused=True, **options)


def set_rate(optimizer: Optimizer, rate: float) -> None:
    """The learning rate of all groups; lower layers may have less of it."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("scale", 1.0)


def optimizer_tensors(optimizer: Optimizer) -> Tensors:
    """The state of an optimizer: parameter's number and moment -> tensor."""
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": tensor for index in state for name, tensor in state[index].items()}


def restore_optimizer(optimizer: Optimizer, tensors: Tensors, where: str) -> None:
    """Put back what `optimizer_tensors` took."""
    shapes = [tuple(p.shape) for group in optimizer.param_groups for p in group["params"]]
    moments = MOMENTS[type(optimizer)]
    expected = {f"{index}.{name}" for index in range(len(shapes)) for name in moments}
    if tensors and tensors.keys() != expected:
        odd = min(tensors.keys() ^ expected)
        raise FormatError(f"{where}: {odd!r} does not belong to both file and optimizer")
    state: dict[int, Tensors] = {}
    for name, tensor in tensors.items():
        index, _, moment = name.partition(".")
        if tuple(tensor.shape) != (() if moment == "step" else shapes[int(index)]):
            raise FormatError(f"{where}: {name!r} has another shape than the optimizer's")
        state.setdefault(int(index), {})[moment] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})

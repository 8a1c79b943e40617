"""The optimizer of a run, from its settings: parameter groups, and its state as named tensors.

Google's code excludes by name what matches LayerNorm, layer_norm or bias, from weight decay and
from LAMB's trust ratio alike. Those are the parameters of one dimension: every bias (the
vocabulary's too) and every norm's gain. A shared tensor appears once.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from litebert.base.errors import FormatError
from litebert.configs.schema import OptimizerSettings
from litebert.train.averaging import AVERAGE, DECAY
from litebert.train.eager import AdamW
from litebert.train.lamb import Lamb

FUSED = {"query_key_value": 3}  # matrices that are several in one
Tensors = dict[str, Tensor]
MOMENTS: dict[type[Optimizer], tuple[str, ...]] = {
    Lamb: ("mean", "square"),
    AdamW: ("step", "exp_avg", "exp_avg_sq"),
}


def build_optimizer(
    module: nn.Module, settings: OptimizerSettings, layerwise_lr_decay: float = 1.0
) -> Optimizer:
    """LAMB, AdamW, or Google's AdamW: LAMB's moments without its trust ratio."""
    groups = parameter_groups(module, settings.weight_decay)
    if layerwise_lr_decay != 1.0:
        groups = layered_groups(module, groups, layerwise_lr_decay)
    if settings.pair_head_lr_factor != 1.0:
        groups = pair_head_groups(module, groups, settings.pair_head_lr_factor)
    if settings.averaging:
        groups = [{**group, DECAY: settings.averaging} for group in groups]
    options: dict[str, Any] = {"lr": 0.0, "betas": settings.betas, "eps": settings.eps}
    if settings.name == "lamb":
        return Lamb(groups, **options)
    if not settings.bias_correction:
        return Lamb([{**group, "adapt": False} for group in groups], **options)
    wanted = ("params", "weight_decay", "scale", DECAY)
    known = [{key: group[key] for key in wanted if key in group} for group in groups]
    return AdamW(known, fused=True, **options)


def set_learning_rate(optimizer: Optimizer, learning_rate: float) -> None:
    """The learning rate of all groups; lower layers may have less of it."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group.get("scale", 1.0)


def optimizer_tensors(optimizer: Optimizer) -> Tensors:
    """The state of an optimizer: parameter's number and moment -> tensor."""
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": tensor for index in state for name, tensor in state[index].items()}


def restore_optimizer(optimizer: Optimizer, tensors: Tensors, where: str) -> None:
    """Put back what `optimizer_tensors` took."""
    shapes = [tuple(p.shape) for group in optimizer.param_groups for p in group["params"]]
    averaged = optimizer.param_groups[0].get(DECAY)
    moments = MOMENTS[type(optimizer)] + ((AVERAGE,) if averaged else ())
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


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Parameters for an optimizer, in a fixed order: plain matrices, fused ones, vectors."""
    plain, fused, vectors = [], [], []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if parameter.ndim < 2:
            vectors.append(parameter)
        elif any(part in FUSED for part in name.split(".")):
            fused.append(parameter)
        else:
            plain.append(parameter)
    (parts,) = FUSED.values()
    groups = [
        {"params": plain, "weight_decay": weight_decay, "adapt": True, "parts": 1},
        {"params": fused, "weight_decay": weight_decay, "adapt": True, "parts": parts},
        {"params": vectors, "weight_decay": 0.0, "adapt": False, "parts": 1},
    ]
    return [group for group in groups if group["params"]]


def layered_groups(
    model: nn.Module, groups: list[dict[str, Any]], decay: float
) -> list[dict[str, Any]]:
    """Groups divided by depth: what lies a level lower gets `decay` times the learning rate.

    Heads and pooler are the top; a layer that is shared counts once; embeddings lie lowest.
    """
    levels = _levels(model)
    divided = []
    for group in groups:
        for level in sorted({levels[id(parameter)] for parameter in group["params"]}):
            chosen = [p for p in group["params"] if levels[id(p)] == level]
            divided.append({**group, "params": chosen, "scale": decay**level})
    return divided


def pair_head_groups(
    model: nn.Module, groups: list[dict[str, Any]], factor: float
) -> list[dict[str, Any]]:
    """Groups divided by whether the pooler and the sentence-pair head are meant."""
    named = model.named_parameters()
    slower = {id(p) for name, p in named if {"pooler", "sentence_pair"} & set(name.split("."))}
    divided = []
    for group in groups:
        for chosen, scale in ((False, 1.0), (True, factor)):
            if found := [p for p in group["params"] if (id(p) in slower) is chosen]:
                divided.append({**group, "params": found, "scale": scale * group.get("scale", 1.0)})
    return divided


def _levels(model: nn.Module) -> dict[int, int]:
    """How many levels below the top each parameter lies, by its identity."""
    places = {}
    for name, parameter in model.named_parameters():
        parts = name.split(".")
        blocks = [i for i, part in enumerate(parts) if part in ("attentions", "feed_forwards")]
        if blocks:
            places[id(parameter)] = int(parts[blocks[0] + 1])
        elif "embeddings" in parts or "projection" in parts:
            places[id(parameter)] = -1
        else:
            places[id(parameter)] = -2  # heads, pooler
    depth = max(places.values()) + 1
    return {key: 0 if place == -2 else depth - place for key, place in places.items()}

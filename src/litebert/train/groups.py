"""Which parameters decay, and which tensors are several in one.

Google's code excludes by name what matches LayerNorm, layer_norm or bias, from weight decay and
from LAMB's trust ratio alike. Those are the parameters of one dimension: every bias (the
vocabulary's too) and every norm's gain. A shared tensor appears once.
"""

from __future__ import annotations

from typing import Any

from torch import nn

FUSED = {"query_key_value": 3}


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
    """Groups divided by depth: what lies a level lower gets `decay` times the rate.

    Heads and pooler are the top; a layer that is shared counts once; embeddings lie lowest.
    """
    levels = _levels(model)
    divided = []
    for group in groups:
        for level in sorted({levels[id(parameter)] for parameter in group["params"]}):
            chosen = [p for p in group["params"] if levels[id(p)] == level]
            divided.append({**group, "params": chosen, "scale": decay**level})
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

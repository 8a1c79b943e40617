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

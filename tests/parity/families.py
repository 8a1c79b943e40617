"""Tiny models of `transformers` with random weights: the oracle for numbers and names."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn

SIZE: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 514,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}


def config(family: str, **changes: Any) -> Any:
    """A small configuration of a family."""
    values = {**SIZE, "num_hidden_layers": 3, **changes}
    if family in ("albert", "electra"):
        values.setdefault("embedding_size", 16)
    return getattr(transformers, f"{family.capitalize()}Config")(**values)


def build(architecture: str, configuration: Any, seed: int = 0, scale: float = 0.15) -> Any:
    """A model in evaluation mode whose every parameter is random, norms and biases included."""
    torch.manual_seed(seed)
    model = getattr(transformers, architecture)(configuration).eval()
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            nn.init.normal_(parameter, std=scale if parameter.dim() > 1 else 0.1)
            if isinstance(module, nn.LayerNorm) and name == "weight":
                parameter.data.add_(1.0)
    model.tie_weights()
    return model

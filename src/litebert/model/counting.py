"""Counting a model: parameters by part, floating-point operations a token, item by item.

Parameters are counted on the model itself, built without values, so they are exact by definition.
FLOPs are of matrix products (2 per multiply-add); norms, activations and look-ups are not counted.
"""

from __future__ import annotations

from torch import nn

from litebert.model.config import EncoderConfig
from litebert.model.heads import HEADS
from litebert.model.model import Model


def model_parts(model: Model) -> dict[str, int]:
    """Parameters of one model, by part."""
    encoder = model.encoder
    parts: dict[str, nn.Module | None] = {
        "embeddings": encoder.embeddings,
        "projection": encoder.projection,
        "attention": encoder.attentions,
        "feed_forward": encoder.feed_forwards,
        "pooler": model.pooler,
        **{f"head.{name}": head for name, head in model.heads.items()},
    }
    return {name: _size(module) for name, module in parts.items() if module is not None}


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def forward_flops(config: EncoderConfig, heads: tuple[str, ...], length: int) -> dict[str, float]:
    """Forward FLOPs a token at a sequence length, by item."""
    width, inner = config.hidden_size, config.intermediate_size
    blocks = config.num_hidden_layers * config.inner_group_num
    items: dict[str, float] = {}
    if config.has_projection:
        items["projection"] = 2 * config.embedding_size * width
    items |= {
        "attention.query_key_value": blocks * 2 * 3 * width * width,
        "attention.scores": blocks * 2 * length * width,
        "attention.context": blocks * 2 * length * width,
        "attention.output": blocks * 2 * width * width,
        "feed_forward": blocks * 2 * 2 * width * inner,
    }
    items |= {f"head.{name}": HEADS[name].flops_per_token(config, length) for name in heads}
    return items

"""Counting: parameters by part, and floating-point operations a token, item by item.

Parameters are counted on the model itself, built without values, so they are exact by definition.
FLOPs are of matrix products (2 per multiply-add); norms, activations and look-ups are not counted.
"""

from __future__ import annotations

from torch import nn

from litebert.configs.schema import Preset
from litebert.model.config import EncoderConfig
from litebert.model.heads import HEADS
from litebert.model.model import Model

TRAINING_PASSES = 3  # backward costs two forward passes; one more with activation checkpointing


def models_of(preset: Preset) -> dict[str, Model]:
    """The models a preset trains, without values: one, or ELECTRA's two under prefixes."""
    main = Model.skeleton(preset.model, preset.heads)
    if preset.generator is None:
        return {"": main}
    return {"": main, "generator.": Model.skeleton(preset.generator, ("masked_lm",))}


def parameters(preset: Preset) -> dict[str, int]:
    """`total` (encoder and pooler of the model that is kept), `with_heads`, and every part."""
    parts: dict[str, int] = {}
    for prefix, model in models_of(preset).items():
        parts |= {prefix + name: count for name, count in model_parts(model).items()}
    kept = {name: n for name, n in parts.items() if not name.startswith("generator.")}
    encoder = {name: n for name, n in kept.items() if not name.startswith("head.")}
    return {"total": sum(encoder.values()), "with_heads": sum(kept.values()), **parts}


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


def flops_per_token(preset: Preset, length: int) -> dict[str, float]:
    """Forward FLOPs a token at a sequence length, item by item."""
    items = _model_flops(preset.model, preset.heads, length)
    if preset.generator is not None:
        generator = _model_flops(preset.generator, ("masked_lm",), length)
        items |= {f"generator.{name}": value for name, value in generator.items()}
    return items


def _model_flops(config: EncoderConfig, heads: tuple[str, ...], length: int) -> dict[str, float]:
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

"""What the models of a preset count together: parameters by part, forward FLOPs a token."""

from __future__ import annotations

from litebert.configs.schema import Preset
from litebert.model.counting import forward_flops, model_parts
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


def flops_per_token(preset: Preset, length: int) -> dict[str, float]:
    """Forward FLOPs a token at a sequence length, item by item."""
    items = forward_flops(preset.model, preset.heads, length)
    if preset.generator is not None:
        generator = forward_flops(preset.generator, ("masked_lm",), length)
        items |= {f"generator.{name}": value for name, value in generator.items()}
    return items

"""Models in and out: what these commands print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import litebert


def import_model(destination: Path, **options: Any) -> None:
    """What came in."""
    _describe(destination, litebert.import_model(destination=destination, **options))


def export_model(destination: Path, **options: Any) -> None:
    """What went out, and of ONNX what was checked."""
    _describe(destination, litebert.export_model(destination=destination, say=print, **options))


def _describe(destination: Path, model: litebert.Model) -> None:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    heads = ", ".join(model.heads) or "none"
    print(f"{destination}: {model.config.family}, {parameters:,} parameters, heads: {heads}")
    found = model.sentence_encoder
    if found is not None and found.unknown:
        print(
            f"not kept: its modules.json asks for {', '.join(found.unknown)}, which is not "
            "followed here; the encoder is whole"
        )
    elif found is not None:
        length = f"{found.max_length} tokens" if found.max_length else "any length"
        unit = ", vectors of length 1" if found.normalize else ""
        print(f"a sentence encoder: {found.pooling} pooling, {length}{unit}")

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

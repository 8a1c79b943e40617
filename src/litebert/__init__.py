"""litebert: train small language encoders from raw text and ship them.

    model = litebert.load("folder")        # ours, or one that transformers saved
    model.save("another")
    preset = litebert.load_preset("albert-base", ["model.embedding_size=64"])
    model = litebert.Model.create(preset.model, preset.heads, seed=1)

Names are imported when first used, so that `import litebert` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "EncoderConfig",
    "LitebertError",
    "Model",
    "Preset",
    "__version__",
    "export_model",
    "import_model",
    "load",
    "load_preset",
    "plan",
    "preset_names",
    "share_embeddings",
]

_HOMES = {
    "EncoderConfig": "litebert.model.config",
    "LitebertError": "litebert.base.errors",
    "Model": "litebert.model.model",
    "Preset": "litebert.model.presets",
    "load": "litebert.model.model",
    "load_preset": "litebert.model.presets",
    "export_model": "litebert.convert.transfer",
    "import_model": "litebert.convert.transfer",
    "plan": "litebert.planning.report",
    "preset_names": "litebert.model.presets",
    "share_embeddings": "litebert.model.model",
}

if TYPE_CHECKING:
    from litebert.base.errors import LitebertError
    from litebert.convert.transfer import export_model, import_model
    from litebert.model.config import EncoderConfig
    from litebert.model.model import Model, load, share_embeddings
    from litebert.model.presets import Preset, load_preset, preset_names
    from litebert.planning.report import plan


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'litebert' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

"""litebert: train small language encoders from raw text and ship them.

    model = litebert.load("folder")        # ours, or one that transformers saved
    model.save("another")
    preset = litebert.load_preset("albert-base", ["model.embedding_size=64"])
    model = litebert.Model.create(preset.model, preset.heads, seed=1)

    litebert.train_tokenizer(["wiki.jsonl.gz"], "tokenizer", vocabulary=8000)
    litebert.prepare(["wiki.jsonl.gz"], "tokenizer", "corpus")
    litebert.pretrain("albert-mini", "corpus", "run", budget="30m")
    litebert.finetune("run", "classify", "tuned", train="reviews.csv")
    litebert.predict(["tuned"], "new.csv")

Names are imported when first used, so that `import litebert` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "EncoderConfig",
    "LitebertError",
    "Loader",
    "LoaderSettings",
    "Masker",
    "Masking",
    "Model",
    "PrepareSettings",
    "Preset",
    "Tokenizer",
    "__version__",
    "embed",
    "evaluate",
    "export_model",
    "finetune",
    "import_model",
    "inspect",
    "load",
    "load_preset",
    "load_tokenizer",
    "open_store",
    "plan",
    "predict",
    "prepare",
    "preset_names",
    "pretrain",
    "scores",
    "share_embeddings",
    "train_tokenizer",
]

_HOMES = {
    "EncoderConfig": "litebert.model.config",
    "LitebertError": "litebert.base.errors",
    "Loader": "litebert.corpus.loader",
    "LoaderSettings": "litebert.corpus.loader",
    "Masker": "litebert.objectives.masking",
    "Masking": "litebert.objectives.masking",
    "Model": "litebert.model.model",
    "PrepareSettings": "litebert.corpus.prepare",
    "Preset": "litebert.presets.recipe",
    "Tokenizer": "litebert.text.tokenizer",
    "embed": "litebert.inference.embed",
    "evaluate": "litebert.train.evaluate",
    "export_model": "litebert.convert.transfer",
    "finetune": "litebert.finetuning.finetune",
    "import_model": "litebert.convert.transfer",
    "inspect": "litebert.corpus.report",
    "load": "litebert.model.model",
    "load_preset": "litebert.presets.load",
    "load_tokenizer": "litebert.text.tokenizer",
    "open_store": "litebert.corpus.store",
    "plan": "litebert.planning.report",
    "predict": "litebert.inference.predict",
    "prepare": "litebert.corpus.prepare",
    "pretrain": "litebert.train.pretrain",
    "preset_names": "litebert.presets.load",
    "scores": "litebert.finetuning.scoreboard",
    "share_embeddings": "litebert.model.model",
    "train_tokenizer": "litebert.corpus.tokenizers",
}

if TYPE_CHECKING:
    from litebert.base.errors import LitebertError
    from litebert.convert.transfer import export_model, import_model
    from litebert.corpus.loader import Loader, LoaderSettings
    from litebert.corpus.prepare import PrepareSettings, prepare
    from litebert.corpus.report import inspect
    from litebert.corpus.store import open_store
    from litebert.corpus.tokenizers import train_tokenizer
    from litebert.finetuning.finetune import finetune
    from litebert.finetuning.scoreboard import scores
    from litebert.inference.embed import embed
    from litebert.inference.predict import predict
    from litebert.model.config import EncoderConfig
    from litebert.model.model import Model, load, share_embeddings
    from litebert.objectives.masking import Masker, Masking
    from litebert.planning.report import plan
    from litebert.presets.load import load_preset, preset_names
    from litebert.presets.recipe import Preset
    from litebert.text.tokenizer import Tokenizer, load_tokenizer
    from litebert.train.evaluate import evaluate
    from litebert.train.pretrain import pretrain


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'litebert' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

"""litebert: train small language encoders from raw text and ship them.

    litebert.train_tokenizer(["wiki.jsonl.gz"], "tokenizer", vocab_size=8000)
    litebert.prepare(["wiki.jsonl.gz"], "tokenizer", "corpus")
    litebert.pretrain("albert-mini", "corpus", "run", budget="30m")
    litebert.finetune("run", "classify", "tuned", train="reviews.csv")
    litebert.predict("tuned", "new.csv")

    model = litebert.load("folder")        # ours, or one that transformers saved
    model.save("another")

Every command is a function here, with the same arguments (docs/api.md). Names are imported when
first used, so that `import litebert` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Callback",
    "EncoderConfig",
    "Engine",
    "LitebertError",
    "Loader",
    "LoaderSettings",
    "Masker",
    "Masking",
    "Model",
    "Preset",
    "Tokenizer",
    "__version__",
    "bench",
    "demo",
    "distill",
    "embed",
    "evaluate",
    "export_model",
    "finetune",
    "import_model",
    "inspect",
    "layers",
    "load",
    "load_preset",
    "load_tokenizer",
    "open_store",
    "plan",
    "plot",
    "predict",
    "prepare",
    "presets",
    "pretrain",
    "reproduce",
    "scores",
    "serve",
    "show_tokenizer",
    "train_tokenizer",
]

HOMES = {
    "Callback": "litebert.train.callbacks",
    "EncoderConfig": "litebert.model.config",
    "Engine": "litebert.inference.engine",
    "LitebertError": "litebert.base.errors",
    "Loader": "litebert.corpus.loader",
    "LoaderSettings": "litebert.corpus.loader",
    "Masker": "litebert.objectives.masking",
    "Masking": "litebert.objectives.masking",
    "Model": "litebert.model.model",
    "Preset": "litebert.configs.schema",
    "Tokenizer": "litebert.text.tokenizer",
    "bench": "litebert.inference.bench",
    "demo": "litebert.demos.film_reviews",
    "distill": "litebert.train.distill",
    "embed": "litebert.inference.embed",
    "evaluate": "litebert.train.evaluate",
    "export_model": "litebert.convert.transfer",
    "finetune": "litebert.finetuning.finetune",
    "import_model": "litebert.convert.transfer",
    "inspect": "litebert.train.inspect",
    "layers": "litebert.reproduction.layers",
    "load": "litebert.model.model",
    "load_preset": "litebert.configs.load",
    "load_tokenizer": "litebert.text.tokenizer",
    "open_store": "litebert.corpus.store",
    "plan": "litebert.train.plan",
    "plot": "litebert.train.plot",
    "predict": "litebert.inference.predict",
    "prepare": "litebert.corpus.preparing.prepare",
    "presets": "litebert.configs.load",
    "pretrain": "litebert.train.pretrain",
    "reproduce": "litebert.reproduction.reproduce",
    "scores": "litebert.finetuning.scoreboard",
    "serve": "litebert.serving.serve",
    "show_tokenizer": "litebert.text.tokenizer",
    "train_tokenizer": "litebert.corpus.train_tokenizer",
}

if TYPE_CHECKING:
    from litebert.base.errors import LitebertError
    from litebert.configs.load import load_preset, presets
    from litebert.configs.schema import Preset
    from litebert.convert.transfer import export_model, import_model
    from litebert.corpus.loader import Loader, LoaderSettings
    from litebert.corpus.preparing.prepare import prepare
    from litebert.corpus.store import open_store
    from litebert.corpus.train_tokenizer import train_tokenizer
    from litebert.demos.film_reviews import demo
    from litebert.finetuning.finetune import finetune
    from litebert.finetuning.scoreboard import scores
    from litebert.inference.bench import bench
    from litebert.inference.embed import embed
    from litebert.inference.engine import Engine
    from litebert.inference.predict import predict
    from litebert.model.config import EncoderConfig
    from litebert.model.model import Model, load
    from litebert.objectives.masking import Masker, Masking
    from litebert.reproduction.layers import layers
    from litebert.reproduction.reproduce import reproduce
    from litebert.serving.serve import serve
    from litebert.text.tokenizer import Tokenizer, load_tokenizer, show_tokenizer
    from litebert.train.callbacks import Callback
    from litebert.train.distill import distill
    from litebert.train.evaluate import evaluate
    from litebert.train.inspect import inspect
    from litebert.train.plan import plan
    from litebert.train.plot import plot
    from litebert.train.pretrain import pretrain


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'litebert' has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)

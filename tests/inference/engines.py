"""Small engines with random weights, and a tokenizer of whole words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from litebert.inference.engine import Engine
from litebert.model.config import EncoderConfig
from litebert.model.model import Model
from litebert.tasks.registry import find_kind
from litebert.tasks.task import TASK_KEY
from litebert.text.tokenizer import load_tokenizer
from tests.corpus.stores import write_wordpiece

HEADS = {
    "classify": "classification", "pair": "classification", "regress": "classification",
    "tag": "token_classification", "qa": "span", "choice": "multiple_choice",
}  # fmt: skip
LABELS = {"tag": ("O", "B-x", "I-x"), "regress": ("value",)}


def write_model(
    folder: Path, kind: str | None = "classify", *, scale: float = 10.0, max_length: int = 60,
    extra: tuple[str, ...] = (), **config: Any,
) -> Path:  # fmt: skip
    """A model folder of a kind of task; random weights large enough to make texts differ."""
    tokenizer = load_tokenizer(write_wordpiece(folder / "tokenizer"))
    size = {
        "vocab_size": tokenizer.vocab_size, "embedding_size": 16, "hidden_size": 32,
        "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 64,
        "max_position_embeddings": 64,
    }  # fmt: skip
    heads = (HEADS[kind], *extra) if kind else ("masked_lm", "sentence_pair")
    labels = LABELS.get(kind or "", ("no", "yes"))
    model = Model.create(EncoderConfig(**{**size, **config}), heads, labels, seed=3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.mul_(10 if "embeddings" in name or "heads" in name else scale)
    if kind:
        settings = {
            "name": kind, "kind": kind, "metrics": ("accuracy",), "max_length": max_length,
            "labels": () if kind in ("regress", "qa", "choice") else labels,
        }  # fmt: skip
        settings |= {"options": 3} if kind == "choice" else {}
        found = find_kind(kind).settings_class.build(settings, "test")
        model.metadata[TASK_KEY] = found.model_dump()
    model.save(folder / "model", tokenizer=tokenizer)
    return folder / "model"


def open_small(folder: Path, kind: str | None = "classify", **config: Any) -> Engine:
    return Engine(write_model(folder, kind, **config), precision="fp32")

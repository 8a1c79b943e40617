"""Model folders as doors: configs, weights, manifests, tasks and Google's checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import litebert
from litebert.base.files import MANIFEST
from litebert.model.model import Model
from litebert.tasks.task import TASK_KEY
from tests.fuzz.tokenizers import TEXT, trained

SHAPE: dict[str, Any] = {
    "vocab_size": 40, "embedding_size": 4, "hidden_size": 8, "num_hidden_layers": 2,
    "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 24,
}  # fmt: skip
LABELS = ("no", "yes")
TASK = {"name": "classify", "kind": "classify", "metrics": ["accuracy"], "labels": list(LABELS)}


def _model(heads: tuple[str, ...], **changes: Any) -> Model:
    config = litebert.EncoderConfig.build({**SHAPE, **changes}, "fuzz")
    return Model.create(config, heads, LABELS)


def build_model(folder: Path) -> None:
    _model(("masked_lm", "sentence_pair", "span_boundary")).save(folder / "model")
    (folder / "model" / MANIFEST).unlink()


def use_model(folder: Path, out: Path) -> None:
    model = litebert.load(folder / "model")
    for name, tensor in model.state_dict().items():
        assert tensor.isfinite().all(), f"{name} is not finite and was accepted"
    model(torch.ones(1, 4, dtype=torch.long))


def import_command(folder: Path, out: Path) -> list[str]:
    return ["import", str(folder / "model"), str(out)]


def build_sealed(folder: Path) -> None:
    _model(("masked_lm",)).save(folder / "model")
    save_all(folder / "model", folder / "sound")


def save_all(source: Path, destination: Path) -> None:
    destination.mkdir()
    for path in source.iterdir():
        (destination / path.name).write_bytes(path.read_bytes())


def use_sealed(folder: Path, out: Path) -> None:
    """A folder with a manifest: nothing that differs from what was written may be accepted."""
    litebert.load(folder / "model")
    sound = {path.name: path.read_bytes() for path in (folder / "sound").iterdir()}
    found = {path.name: path.read_bytes() for path in (folder / "model").iterdir()}
    assert found == sound, "a changed folder was accepted"


def build_task_model(folder: Path) -> None:
    tokenizer = trained("wordpiece")
    model = _model(("classification",), vocab_size=tokenizer.vocab_size)
    model.metadata[TASK_KEY] = TASK
    model.save(folder / "model", tokenizer=tokenizer)
    (folder / "model" / MANIFEST).unlink()
    (folder / "rows.csv").write_text(f'text\n"{TEXT}"\nno\n')


def use_task_model(folder: Path, out: Path) -> None:
    for prediction in litebert.predict(folder / "model", folder / "rows.csv"):
        values = getattr(prediction, "probabilities", {}).values()
        assert all(0 <= value <= 1 for value in values), "a probability is none"


def build_tensorflow(folder: Path) -> None:
    _model(("masked_lm", "sentence_pair")).save(folder / "model")
    litebert.export_model(folder / "model", folder / "google", format="tensorflow")
    (folder / "google" / MANIFEST).unlink()


def use_tensorflow(folder: Path, out: Path) -> None:
    model = litebert.import_model(folder / "google", out)
    assert all(tensor.isfinite().all() for tensor in model.state_dict().values())

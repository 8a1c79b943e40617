"""The model that fine-tuning begins with: a pretrained encoder and a new head."""

from __future__ import annotations

from pathlib import Path

from litebert.base.errors import FileError, SettingsError
from litebert.model.config import EncoderConfig
from litebert.model.model import NEEDS_POOLER, Model
from litebert.tasks.base import KEY, Task
from litebert.tasks.recipe import Recipe
from litebert.text.tokenizer import Tokenizer, load_tokenizer


def open_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer beside a model."""
    try:
        return load_tokenizer(folder)
    except FileError as error:
        raise FileError(
            f"{folder}: the model needs its tokenizer beside it ({error}); save it there with "
            "`model.save(folder, tokenizer=...)`"
        ) from None


def begin(start: Model, task: Task, recipe: Recipe, seed: int) -> Model:
    """A copy of an encoder with a new head, and the pooler that it had if the head needs one."""
    model = Model.create(
        _config(start.config, recipe), (task.head,), task.settings.labels or ("LABEL_0",), seed
    )
    kept = {
        name: tensor
        for name, tensor in start.state_dict().items()
        if name.startswith("encoder.") or (name.startswith("pooler.") and task.head in NEEDS_POOLER)
    }
    model.load_state_dict(kept, strict=False)
    model.metadata = {KEY: task.settings.model_dump(mode="json", exclude_defaults=True)}
    return model


def _config(config: EncoderConfig, recipe: Recipe) -> EncoderConfig:
    changes = {"classifier_dropout_prob": recipe.classifier_dropout}
    if recipe.dropout is not None:
        changes |= {
            "hidden_dropout_prob": recipe.dropout,
            "attention_probs_dropout_prob": recipe.dropout,
        }
    return config.model_copy(update=changes)


def check_length(start: Model, length: int, where: str) -> None:
    """Refuse sequences that the encoder has no positions for."""
    longest = start.config.longest_sequence
    if length > longest:
        raise SettingsError(
            f"length {length}: {where} has positions for {longest} tokens (--set length={longest})"
        )

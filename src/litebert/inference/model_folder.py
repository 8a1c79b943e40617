"""Model folders for use: the model, its tokenizer, and the task that it was fine-tuned for."""

from __future__ import annotations

from pathlib import Path

from litebert.base.errors import FileError, FormatError
from litebert.model.model import Model
from litebert.tasks.registry import KINDS, build_task, load_task
from litebert.tasks.task import TASK_KEY, Task
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


def task_of(model: Model, where: Path) -> Task:
    """The task that a model was fine-tuned for; `where` names its folder in errors."""
    task = find_task(model, where)
    if task is None:
        raise FormatError(
            f"{where}: not a fine-tuned model (its config.json names no task, and none of its "
            "heads is a task's); fine-tune it with `litebert finetune`"
        )
    return task


def find_task(model: Model, where: Path) -> Task | None:
    """The same, or None for a model that was only pretrained.

    A folder that `transformers` saved names no task; there the head tells the kind.
    """
    content = model.metadata.get(TASK_KEY)
    if content is None:
        return _foreign_task(model, where)
    if not isinstance(content, dict):
        raise FormatError(f"{where}: config.json: {TASK_KEY} = {content!r}: expected a table")
    task = load_task(content, f"{where}: config.json, {TASK_KEY}")
    if task.head not in model.heads:
        have = ", ".join(model.heads) or "none"
        raise FormatError(
            f"{where}: the task {task.settings.name} needs a {task.head} head, the model has {have}"
        )
    return task


def _foreign_task(model: Model, where: Path) -> Task | None:
    for kind in KINDS.values():
        try:
            settings = kind.settings_of(model)
        except FormatError as error:
            raise FormatError(f"{where}: {error}") from None
        if settings is not None:
            return build_task(settings)
    return None

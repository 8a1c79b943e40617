"""Task distillation: what a fine-tuned teacher says of the examples, and of others without labels.

A teacher's probabilities say more than a label: which other answers are near, and how sure one can
be (Hinton et al. 2015). They are computed once, kept in the run's folder, and learned beside the
labels; texts without labels have only them.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from litebert.base.batches import Batch
from litebert.base.errors import FormatError, SettingsError
from litebert.base.files import read_bytes, sha256, write_atomic
from litebert.base.ragged import IntArray
from litebert.finetuning.feature_cache import checksum
from litebert.finetuning.recipe import Recipe
from litebert.inference.engine import Engine
from litebert.inference.model_folder import task_of
from litebert.model.folder import find_model_folder
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import Term
from litebert.tasks.data import TaskData
from litebert.tasks.features import Features, join_features
from litebert.tasks.readers.text_file import Say
from litebert.tasks.registry import KINDS
from litebert.tasks.source import DataSource
from litebert.tasks.task import Task

KEPT = "soft_labels.npy"
LARGEST = 2**31
UNNAMED = "LABEL_"  # how transformers names labels that nobody has named
Rows = NDArray[np.float32]


class SoftLabels:
    """An objective: what the teacher says of each example, softened by a temperature."""

    name, count_offset = "soft_labels", 0
    counters: tuple[str, ...] = ()

    def __init__(self, task: Task, rows: Rows, recipe: Recipe) -> None:
        self.task, self.rows, self.temperature = task, torch.from_numpy(rows), recipe.temperature
        self.weight = recipe.soft_label_weight

    def count(self, batch: Batch) -> int:
        return len(batch) // batch.group_size

    def reads(self, batch: Batch) -> IntArray | None:
        return self.task.reads(batch)

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        examples = inputs.batch.keys[:: inputs.batch.group_size].astype(np.int64)
        taught = self.rows[torch.from_numpy(examples)].to(inputs.ids.device)
        return self.task.soft_term(model, state, taught, self.temperature)


@dataclass(frozen=True)
class TaughtExamples:
    """Labelled examples and then others, with what the teacher says of each."""

    features: Features
    rows: Rows


@dataclass(frozen=True)
class TaskTeacher:
    """A fine-tuned model that teaches a task, and texts without labels to learn it by."""

    folder: Path
    unlabelled: Sequence[Any] = ()

    def describe(self) -> dict[str, Any]:
        """What decides what is learned from it."""
        files = sorted(self.folder.glob("*.safetensors"))
        weights = {file.name: sha256(file)[:16] for file in files}
        return {"weights": weights, "unlabelled": checksum(self.unlabelled)[:16]}

    def joined(self, data: TaskData) -> TaskData:
        """All that is learned from, as the choice of a recipe sees it."""
        return replace(data, train=[*data.train, *self.unlabelled])

    def teach(
        self, task: Task, examples: Sequence[Any], features: Sequence[Features], out: Path, say: Say
    ) -> TaughtExamples:
        """The labelled examples and those without labels, whose `features` are given in turn."""
        known = [part for part in features if len(part.batch)]
        rows = self._rows(task, [*examples, *self.unlabelled], out, say)
        return TaughtExamples(join_features(known), rows)

    def _rows(self, task: Task, examples: Sequence[Any], out: Path, say: Say) -> Rows:
        """What it says of examples, a row each, as the task has them; kept in the run's folder."""
        path = out / KEPT
        if os.path.lexists(path):
            rows = _read(path)
            if len(rows) == len(examples):
                return rows
        say(f"the teacher {self.folder} reads {len(examples):,} examples")
        rows = _ask(self.folder, task, examples)
        stream = io.BytesIO()
        np.save(stream, rows, allow_pickle=False)
        write_atomic(path, stream.getvalue())
        return rows


def open_teacher(
    folder: str | Path | None, unlabelled: str | Path | None, data: TaskData, source: DataSource,
    say: Say,
) -> TaskTeacher | None:  # fmt: skip
    """What the user names; a teacher is needed where there are unlabelled texts."""
    if folder is None:
        if unlabelled is not None:
            raise SettingsError(f"--unlabelled {unlabelled}: needs --teacher, which labels it")
        return None
    kind, folder = KINDS[data.settings.kind], find_model_folder(Path(folder))
    if not kind.takes_soft_labels:
        raise SettingsError(f"--teacher: tasks of the kind {kind.kind} cannot be learned from one")
    _order(data.settings.labels, task_of(Model.load(folder), folder), folder)
    if unlabelled is None:
        return TaskTeacher(folder)
    given = replace(source, columns=source.columns.without("label", "id"), repair=False)
    examples = kind.read_file(Path(unlabelled), given, labelled=False, say=say)
    plain = [replace(one, label=None) for one in examples]
    if kind(data.settings).form(plain) != kind(data.settings).form(data.train):
        raise FormatError(f"{unlabelled}: pairs of texts and lone texts cannot be learned together")
    say(f"{unlabelled}: {len(plain):,} examples without labels")
    return TaskTeacher(folder, plain)


def _ask(folder: Path, task: Task, examples: Sequence[Any]) -> Rows:
    with Engine(folder) as engine:
        teacher = engine.needs_task()
        order = _order(task.settings.labels, teacher, folder)
        features = teacher.features(examples, engine.tokenizer)
        predictions = engine.predict_examples(examples, features, tell_depth=False)
        rows = np.array([teacher.to_row(one) for one in predictions], np.float32)
    return rows[:, order]


def _order(labels: Sequence[str], teacher: Task, folder: Path) -> list[int]:
    """The columns of the teacher's rows in the order of the student's labels."""
    theirs = list(teacher.settings.labels)
    if not teacher.takes_soft_labels or len(theirs) != len(labels):
        raise SettingsError(
            f"--teacher {folder}: fine-tuned for {teacher.settings.name} with {len(theirs)} "
            f"labels, the task has {len(labels)}"
        )
    if not labels:
        return [0]
    if all(name == f"{UNNAMED}{number}" for number, name in enumerate(theirs)):
        return list(range(len(labels)))
    if set(theirs) != set(labels):
        raise SettingsError(
            f"--teacher {folder}: its labels are {', '.join(theirs[:12])}, the task's "
            f"{', '.join(labels[:12])}"
        )
    return [theirs.index(label) for label in labels]


def _read(path: Path) -> Rows:
    try:
        rows = np.load(io.BytesIO(read_bytes(path, LARGEST)), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise FormatError(
            f"{path}: damaged ({error}); remove it to ask the teacher again"
        ) from None
    if rows.ndim != 2 or rows.dtype != np.float32 or not np.isfinite(rows).all():
        raise FormatError(f"{path}: damaged; remove it to ask the teacher again")
    return rows

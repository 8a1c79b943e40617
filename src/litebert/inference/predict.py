"""Predictions of fine-tuned models for a file: `litebert.predict(["tuned"], "new.csv")`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from litebert.base.errors import SettingsError
from litebert.base.files import check_writable, write_atomic
from litebert.base.runtime import default_device, keep_freed_memory
from litebert.inference.exits import FULL_DEPTH, DepthDial
from litebert.inference.model_folder import open_tokenizer, task_of
from litebert.inference.run import predict_examples
from litebert.model.folder import find_model_folder
from litebert.model.model import Model
from litebert.tasks.data import read_split
from litebert.tasks.featurize import make_features
from litebert.tasks.published.registry import PUBLISHED
from litebert.tasks.readers.text_file import Say, quiet
from litebert.tasks.source import DataSource
from litebert.tasks.task import Prediction, Task


def predict(
    models: str | Path | Sequence[str | Path], input: str | Path, *,
    out: str | Path | None = None, split: str = "test",
    columns: Sequence[str] | Mapping[str, str] = (),
    repair: bool = False, submission: str | Path | None = None,
    exit: str | None = None, depth: int | None = None, say: Say = quiet,
) -> list[Prediction]:  # fmt: skip
    """Predict with a fine-tuned model; several models vote.

    Example: litebert predict tuned --input new.csv --out predictions.jsonl

    Args:
        models: Fine-tuned runs or model folders; several vote.
        input: Examples: a file, or a published task's folder.
        out: Where predictions also go, as JSON lines.
        split: Of a published task's folder; `ax` for a model of MNLI.
        columns: Which column of a table is what, where names do not say so: text=body.
        repair: Move SQuAD's answers that are not at their offset to the nearest place.
        submission: Where predictions also go in the task's official format: GLUE's zip (which
            grows task by task), SQuAD's folder of JSON, RACE's JSON lines.
        exit: When a text has been read deeply enough: patience=3, confidence=0.95, depth=4, or
            accuracy=-0.5, the cheapest rule that lost so many points on dev at most. For models
            fine-tuned with --set exits=true.
        depth: Layers to run, at most; encoders that share all layers can run any number.
        say: Told what the user should know, a sentence each.

    Returns:
        A prediction for each example, of the class that its kind of task has.
    """
    for path in (out, submission):
        if path is not None:
            check_writable(Path(path))
    source = DataSource.build(input, columns=columns, repair=repair)
    dial = DepthDial(exit, depth)
    task, _, predictions = ask(models, source, split=split, labelled=False, dial=dial, say=say)
    if submission is not None:
        _submit(task, predictions, Path(submission), split, say)
    if out is not None:
        write_atomic(Path(out), to_json_lines(predictions).encode())
    return predictions


def to_json_lines(predictions: Iterable[Prediction]) -> str:
    """Predictions as JSON, a line each."""
    lines = (json.dumps(one.to_json(), ensure_ascii=False) for one in predictions)
    return "".join(f"{line}\n" for line in lines)


def ask(
    models: str | Path | Sequence[str | Path], source: DataSource, *, split: str, labelled: bool,
    dial: DepthDial = FULL_DEPTH, say: Say = quiet,
) -> tuple[Task, list[Any], list[Prediction]]:  # fmt: skip
    """What one or several fine-tuned models say of a file's examples."""
    models = [models] if isinstance(models, str | Path) else models
    if not models:
        raise SettingsError("name at least one model folder")
    keep_freed_memory()
    tasks: list[Task] = []
    examples: list[Any] = []
    said: list[list[Prediction]] = []
    for folder in (find_model_folder(Path(model)) for model in models):
        model = Model.load(folder)
        task = task_of(model, folder)
        rule = dial.rule(model, task, folder)
        if not tasks:
            examples = read_split(task, source, split=split, labelled=labelled, say=say)
        tasks.append(task)
        _check_same(tasks[0], task, folder)
        features = make_features(task, examples, open_tokenizer(folder), folder)
        model = model.to(default_device())
        said.append(predict_examples(task, model, examples, features, rule=rule, depth=dial.depth))
    if len(said) == 1:
        return tasks[0], examples, said[0]
    jury = tasks[0].together_with(tasks[1:])
    return jury, examples, [jury.merge(votes) for votes in zip(*said, strict=True)]


def _check_same(task: Task, other: Task, where: Path) -> None:
    for key in ("kind", "labels"):
        mine, theirs = (getattr(one.settings, key) for one in (task, other))
        if mine != theirs:
            raise SettingsError(
                f"{where}: a model of other {key} ({theirs}) cannot vote with the first ({mine})"
            )


def _submit(
    task: Task, predictions: Sequence[Prediction], path: Path, split: str, say: Say
) -> None:
    published = PUBLISHED.get(task.settings.name)
    if published is None:
        task.write_submission(path, predictions)
    else:
        published.write_submission(task, predictions, path, split, say)

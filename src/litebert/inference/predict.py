"""Fine-tuned model folders at work: predictions for files, and official submissions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from litebert.base.errors import FormatError, SettingsError
from litebert.base.files import check_writable
from litebert.base.runtime import default_device, keep_freed_memory
from litebert.model.model import Model
from litebert.tasks.base import KEY, Prediction, Task, TaskSettings
from litebert.tasks.data import read_split
from litebert.tasks.files.glue import GLUE, resolve_split
from litebert.tasks.files.glue_submission import submission_file, submission_text, write_submission
from litebert.tasks.files.race import write_answers
from litebert.tasks.files.roles import Columns
from litebert.tasks.files.squad import write_predictions
from litebert.tasks.files.text_file import Say, quiet
from litebert.tasks.making import make_features
from litebert.tasks.predict import predict_examples
from litebert.tasks.registry import build_task
from litebert.tasks.starting import open_tokenizer
from litebert.train.run import model_folder


def task_of(model: Model, where: Path) -> Task:
    """The task that a model folder was fine-tuned for."""
    raw = model.metadata.get(KEY)
    if not isinstance(raw, dict):
        raise FormatError(
            f"{where}: not a model that `litebert finetune` made (its config.json names no task)"
        )
    task = build_task(TaskSettings.build(raw, f"{where}: config.json, {KEY}"))
    if task.head not in model.heads:
        have = ", ".join(model.heads) or "none"
        raise FormatError(
            f"{where}: the task {task.settings.name} needs a {task.head} head, the model has {have}"
        )
    return task


def predict(
    folders: Sequence[str | Path], source: str | Path, *,
    split: str = "test", columns: Columns | None = None, repair: bool = False,
    submission: Path | None = None, say: Say = quiet,
) -> list[dict[str, Any]]:  # fmt: skip
    """Predictions for a file's examples, each with its id; several models' answers are merged."""
    if submission is not None:
        check_writable(submission)
    task, examples, guesses = ask(
        folders, source, split=split, labelled=False, columns=columns, repair=repair, say=say
    )
    if submission is not None:
        _submit(task, examples, guesses, submission, split, say)
    return [{"id": example.id, **guess} for example, guess in zip(examples, guesses, strict=True)]


def ask(
    folders: Sequence[str | Path], source: str | Path, *, split: str, labelled: bool,
    columns: Columns | None = None, repair: bool = False, say: Say = quiet,
) -> tuple[Task, list[Any], list[Prediction]]:  # fmt: skip
    """What one or several fine-tuned models say of a file's examples."""
    keep_freed_memory()
    tasks: list[Task] = []
    examples: list[Any] = []
    said: list[list[Prediction]] = []
    for folder in map(model_folder, map(Path, folders)):
        model = Model.load(folder)
        task = task_of(model, folder)
        if not tasks:
            examples = read_split(
                task.settings, Path(source), split=split, labelled=labelled, columns=columns,
                repair=repair, say=say,
            )  # fmt: skip
        tasks.append(task)
        _check_same(tasks[0], task, folder)
        features = make_features(task, examples, open_tokenizer(folder), folder)
        said.append(predict_examples(task, model.to(default_device()), examples, features))
    if not tasks:
        raise SettingsError("name at least one model folder")
    if len(said) == 1:
        return tasks[0], examples, said[0]
    together = _together(tasks)
    return together, examples, [together.merge(votes) for votes in zip(*said, strict=True)]


def _together(tasks: Sequence[Task]) -> Task:
    """The task of several models that vote; where they hold back answers, at the mean of theirs."""
    settings = tasks[0].settings
    thresholds = [task.settings.threshold for task in tasks]
    known = [threshold for threshold in thresholds if threshold is not None]
    mean = sum(known) / len(known) if len(known) == len(thresholds) else None
    return build_task(settings.model_copy(update={"threshold": mean}))


def _check_same(task: Task, other: Task, where: Path) -> None:
    for key in ("kind", "labels"):
        mine, theirs = (getattr(one.settings, key) for one in (task, other))
        if mine != theirs:
            raise SettingsError(
                f"{where}: a model of other {key} ({theirs}) cannot vote with the first ({mine})"
            )


def _submit(
    task: Task, examples: list[Any], guesses: list[Prediction], path: Path, split: str, say: Say
) -> None:
    """The official format of a published task."""
    name, split = resolve_split(task.settings.name, split)
    pairs = list(zip(examples, guesses, strict=True))
    if name in GLUE:
        key = "value" if task.settings.kind == "regress" else "label"
        answers = [(example.id, guess[key]) for example, guess in pairs]
        text = submission_text(name, answers)
        missing = write_submission(path, {submission_file(name, split): text})
        say(f"{path}: still without {', '.join(missing)}" if missing else f"{path}: complete")
    elif task.settings.kind == "qa":
        odds = {e.id: g["null_odds"] for e, g in pairs} if task.settings.impossible else None
        write_predictions(path, {e.id: g["text"] for e, g in pairs}, odds)
    elif name == "race":
        write_answers(path, {example.id: guess["choice"] for example, guess in pairs})
    else:
        raise SettingsError(f"--submission: {name} has no official format")

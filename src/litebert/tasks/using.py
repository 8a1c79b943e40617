"""Fine-tuned model folders at work: predict files, measure on labelled ones, write submissions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from litebert.base.errors import FormatError, SettingsError
from litebert.base.runtime import default_device, keep_freed_memory
from litebert.model.model import Model
from litebert.tasks.base import KEY, Prediction, Task, TaskSettings
from litebert.tasks.data import read_split
from litebert.tasks.files.glue import GLUE
from litebert.tasks.files.glue_submission import submission_file, submission_text, write_submission
from litebert.tasks.files.roles import Columns
from litebert.tasks.files.squad import write_predictions
from litebert.tasks.files.text_file import Say, quiet
from litebert.tasks.making import make_features
from litebert.tasks.predict import predict_examples
from litebert.tasks.registry import build_task
from litebert.tasks.scores.intervals import bootstrap, bootstrap_mean
from litebert.tasks.scores.metrics import METRICS, confusion_matrix, per_label
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
    split: str = "test", columns: Columns | None = None,
    submission: Path | None = None, say: Say = quiet,
) -> list[dict[str, Any]]:  # fmt: skip
    """Predictions for a file's examples, each with its id; several models' answers are merged."""
    task, examples, guesses = ask(
        folders, source, split=split, labelled=False, columns=columns, say=say
    )
    if submission is not None:
        _submit(task, examples, guesses, submission, split)
    return [{"id": example.id, **guess} for example, guess in zip(examples, guesses, strict=True)]


def ask(
    folders: Sequence[str | Path], source: str | Path, *, split: str, labelled: bool,
    columns: Columns | None = None, say: Say = quiet,
) -> tuple[Task, list[Any], list[Prediction]]:  # fmt: skip
    """What one or several fine-tuned models say of a file's examples."""
    keep_freed_memory()
    task, examples, said = None, [], []
    for folder in map(model_folder, map(Path, folders)):
        model = Model.load(folder)
        other = task_of(model, folder)
        if task is None:
            task = other
            examples = read_split(
                task.settings,
                Path(source),
                split=split,
                labelled=labelled,
                columns=columns,
                say=say,
            )
            _check_labels(task, examples, source)
        _check_same(task, other, folder)
        features = make_features(other, examples, open_tokenizer(folder), folder)
        said.append(predict_examples(other, model.to(default_device()), examples, features))
    if task is None:
        raise SettingsError("name at least one model folder")
    if len(said) == 1:
        return task, examples, said[0]
    return task, examples, [task.merge(votes) for votes in zip(*said, strict=True)]


def _check_labels(task: Task, examples: Sequence[Any], source: str | Path) -> None:
    """Refuse labels that the model has never heard of."""
    known = set(task.settings.labels)
    if task.settings.kind in ("classify", "pair"):
        found = {str(example.label) for example in examples if example.label is not None}
    elif task.settings.kind == "tag":
        found = {tag for example in examples for tag in example.tags or ()}
    else:
        return
    unknown = sorted(found - known)
    if unknown:
        raise FormatError(
            f"{source}: label {unknown[0]!r} is none of the model's: "
            f"{', '.join(task.settings.labels[:12])}"
        )


def _check_same(task: Task, other: Task, where: Path) -> None:
    for key in ("kind", "labels"):
        mine, theirs = (getattr(one.settings, key) for one in (task, other))
        if mine != theirs:
            raise SettingsError(
                f"{where}: a model of other {key} ({theirs}) cannot vote with the first ({mine})"
            )


def measure(
    folders: Sequence[str | Path], source: str | Path, *,
    split: str = "dev", columns: Columns | None = None,
    say: Say = quiet,
) -> dict[str, Any]:  # fmt: skip
    """Scores on labelled examples, with 95 % intervals; labels get a table each."""
    task, examples, guesses = ask(
        folders, source, split=split, labelled=True, columns=columns, say=say
    )
    report: dict[str, Any] = {
        "task": task.settings.name,
        "examples": len(examples),
        "scores": task.score(examples, guesses),
    }
    if task.settings.kind in ("classify", "pair"):
        report |= _label_report(task, examples, guesses)
    if task.settings.kind == "regress":
        truth = [float(example.label) for example in examples]
        values = [guess["value"] for guess in guesses]
        report["interval"] = _interval(task, truth, values)
    if task.settings.kind == "choice":
        right = [
            float(example.answer == guess["choice"])
            for example, guess in zip(examples, guesses, strict=True)
        ]
        found = bootstrap_mean(right)
        report["interval"] = [found.low, found.high]
    return report


def _interval(task: Task, truth: list[Any], guess: list[Any]) -> list[float]:
    found = bootstrap(METRICS[task.settings.metrics[0]], truth, guess)
    return [found.low, found.high]


def _label_report(task: Task, examples: list[Any], guesses: list[Prediction]) -> dict[str, Any]:
    number = {label: place for place, label in enumerate(task.settings.labels)}
    truth = [number[str(example.label)] for example in examples]
    guess = [number[one["label"]] for one in guesses]
    table = per_label(truth, guess, task.settings.labels)
    return {
        "interval": _interval(task, truth, guess),
        "labels": {name: asdict(row) for name, row in table.items()},
        "confusion": confusion_matrix(truth, guess, len(number)).tolist(),
    }


def _submit(
    task: Task, examples: list[Any], guesses: list[Prediction], path: Path, split: str
) -> None:
    """The official format of a published task."""
    name = task.settings.name
    pairs = list(zip(examples, guesses, strict=True))
    if name in GLUE:
        key = "value" if task.settings.kind == "regress" else "label"
        answers = [(example.id, guess[key]) for example, guess in pairs]
        text = submission_text(name, answers)
        write_submission(path, {submission_file(name, split): text})
    elif task.settings.kind == "qa":
        odds = {e.id: g["null_odds"] for e, g in pairs} if task.settings.impossible else None
        write_predictions(path, {e.id: g["text"] for e, g in pairs}, odds)
    else:
        raise SettingsError(f"--submission: {name} has no official format")

"""How good a fine-tuned model is on labelled examples: scores, 95 % intervals, tables of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from litebert.tasks.base import Prediction, Task
from litebert.tasks.files.roles import Columns
from litebert.tasks.files.text_file import Say, quiet
from litebert.tasks.scores.entities import entity_counts, f1_of_counts
from litebert.tasks.scores.intervals import Interval, bootstrap, bootstrap_mean, bootstrap_sums
from litebert.tasks.scores.metrics import METRICS, confusion_matrix, per_label
from litebert.tasks.scores.squad_metrics import gold_answers, score_questions
from litebert.tasks.using import ask


def measure(
    folders: Sequence[str | Path], source: str | Path, *,
    split: str = "dev", columns: Columns | None = None, repair: bool = False, say: Say = quiet,
) -> dict[str, Any]:  # fmt: skip
    """Scores on labelled examples, with 95 % intervals; labels get a table each."""
    task, examples, guesses = ask(
        folders, source, split=split, labelled=True, columns=columns, repair=repair, say=say
    )
    report: dict[str, Any] = {
        "task": task.settings.name,
        "examples": len(examples),
        "scores": task.score(examples, guesses),
        "intervals": {
            name: [found.low, found.high]
            for name, found in intervals(task, examples, guesses).items()
        },
    }
    if task.settings.kind in ("classify", "pair"):
        report |= _label_report(task, examples, guesses)
    return report


def intervals(
    task: Task, examples: Sequence[Any], guesses: Sequence[Prediction]
) -> dict[str, Interval]:
    """What other examples might have given, for the scores that choose a model."""
    kind, pairs = task.settings.kind, list(zip(examples, guesses, strict=True))
    if kind == "choice":
        return {"accuracy": bootstrap_mean([e.answer == g["choice"] for e, g in pairs])}
    if kind == "tag":
        return _of_tags(task, [list(e.tags) for e in examples], [g["tags"] for g in guesses])
    if kind == "qa":
        said = {example.id: guess["text"] for example, guess in pairs}
        version = "2.0" if task.settings.impossible else "1.1"
        found = score_questions(gold_answers(examples), said, version)
        return {"exact": bootstrap_mean(found.exact), "f1": bootstrap_mean(found.f1)}
    truth, guess = _values(task, examples, guesses)
    return {name: bootstrap(METRICS[name], truth, guess) for name in task.settings.metrics}


def _of_tags(task: Task, truth: list[list[str]], guess: list[list[str]]) -> dict[str, Interval]:
    words = np.array([len(tags) for tags in truth])
    right = np.array([sum(map(str.__eq__, *pair)) for pair in zip(truth, guess, strict=True)])
    found = {
        "accuracy": bootstrap_sums(np.stack([right, words], 1), lambda s: s[..., 0] / s[..., 1])
    }
    if "entity_f1" in task.settings.metrics:
        found["entity_f1"] = bootstrap_sums(entity_counts(truth, guess), f1_of_counts)
    return found


def _values(
    task: Task, examples: Sequence[Any], guesses: Sequence[Prediction]
) -> tuple[list[float], list[float]]:
    """Truth and guesses as numbers: of the labels, or as they are."""
    if task.settings.kind == "regress":
        return [float(one.label) for one in examples], [one["value"] for one in guesses]
    number = {label: place for place, label in enumerate(task.settings.labels)}
    return [number[str(one.label)] for one in examples], [number[one["label"]] for one in guesses]


def _label_report(
    task: Task, examples: Sequence[Any], guesses: Sequence[Prediction]
) -> dict[str, Any]:
    truth, guess = _values(task, examples, guesses)
    labels = task.settings.labels
    return {
        "labels": {name: asdict(row) for name, row in per_label(truth, guess, labels).items()},
        "confusion": confusion_matrix(truth, guess, len(labels)).tolist(),
    }

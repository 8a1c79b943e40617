"""Downstream measures of a run: the tasks that can tell encoders apart at its scale.

    DATA/glue    SST-2 with 1,000 and with all labels, STS-B frozen and fine-tuned, QNLI, MNLI, QQP
    DATA/ner     WikiANN (CoNLL's columns)           DATA/squad   SQuAD 1.1
    DATA/race    RACE                                DATA/blimp   minimal pairs, no training

CoLA, RTE and MRPC are left out: published encoders of these sizes are at their baselines there.
Each is fine-tuned once with the recipe that the rule chooses, from the run's own seed; the plain
baseline (TF-IDF and a linear model) is measured on the same examples, once for all rows.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from litebert.base.errors import LitebertError
from litebert.finetuning.choose import choose_recipe
from litebert.finetuning.runs import FeaturedExamples, RunSetup, run_seed
from litebert.inference.minimal_pairs import evaluate_minimal_pairs
from litebert.inference.model_folder import open_tokenizer
from litebert.inference.run import predict_examples
from litebert.model.folder import MODEL, find_model_folder
from litebert.model.model import Model
from litebert.reproduction.measurement import Measurement
from litebert.reproduction.measures import MEASURES
from litebert.reproduction.scale import SCALES, BudgetScale
from litebert.tasks.data import TaskData, open_data
from litebert.tasks.registry import build_task
from litebert.tasks.source import DataSource
from litebert.tasks.task import Task

POINTS = 100.0
SAMPLE_SEED = 0  # of the labelled examples that are drawn: the same for all rows
Say = Callable[[str], None]


@dataclass(frozen=True)
class DownstreamTask:
    """One fine-tuning."""

    task: str
    metric: str
    scale: str  # the smallest at which it is made
    labels: int | None = None  # training examples; all without
    settings: tuple[str, ...] = ()  # changes of the recipe


TASKS = {
    "sst-2_1000": DownstreamTask("sst-2", "accuracy", "minutes", 1000),
    "sst-2": DownstreamTask("sst-2", "accuracy", "hour"),
    "sts-b_frozen": DownstreamTask("sts-b", "spearman", "minutes", settings=("freeze=true",)),
    "sts-b": DownstreamTask("sts-b", "spearman", "hour"),
    "wikiann": DownstreamTask("ner", "f1", "hour"),
    "qnli": DownstreamTask("qnli", "accuracy", "hour"),
    "mnli": DownstreamTask("mnli", "accuracy", "eight_hours"),
    "qqp": DownstreamTask("qqp", "f1", "eight_hours"),
    "squad-1.1": DownstreamTask("squad-1.1", "f1", "eight_hours"),
    "race": DownstreamTask("race", "accuracy", "eight_hours"),
}
BLIMP = ("blimp", "blimp_word")
MEAN = "downstream"


class Downstream:
    """What the user's data lets us measure at a scale; what is not there is said once."""

    def __init__(self, data: str | Path | None, scale: BudgetScale, say: Say) -> None:
        self.missing: list[str] = []
        self.opened: dict[str, TaskData] = {}
        self.blimp: Path | None = None
        if data is None:
            return
        order = list(SCALES)
        for name, task in TASKS.items():
            if order.index(task.scale) <= order.index(scale.name):
                self._open(name, task, Path(data), say)
        if os.path.isdir(Path(data) / "blimp"):
            self.blimp = Path(data) / "blimp"
        else:
            self._miss("blimp", f"{Path(data) / 'blimp'}: no such folder", say)

    def _open(self, name: str, task: DownstreamTask, data: Path, say: Say) -> None:
        folder = data / str(MEASURES[name].data)
        try:
            found = open_data(task.task, DataSource.build(find_data(folder, task.task)))
        except LitebertError as error:
            self._miss(name, str(error), say)
            return
        if task.labels is not None and task.labels < len(found.train):
            drawn = random.Random(SAMPLE_SEED).sample(found.train, task.labels)
            found = replace(found, train=drawn)
        self.opened[name] = found

    def _miss(self, name: str, why: str, say: Say) -> None:
        self.missing.append(name)
        say(f"{MEASURES[name].title} is not measured: {why}")

    def wanted(self, known: Mapping[str, Measurement]) -> list[str]:
        """Measures that are still to be made of a run."""
        names = [*self.opened, *(["blimp"] if self.blimp is not None else [])]
        return [name for name in names if name not in known]

    def measure(self, name: str, run: Path) -> dict[str, Measurement]:
        """One of them (BLiMP: two)."""
        if name == "blimp":
            assert self.blimp is not None
            correct = np.asarray(evaluate_minimal_pairs(run, self.blimp).correct)
            return {
                way: Measurement.of_score(_mean_of(column), len(column), POINTS)
                for way, column in zip(BLIMP, correct.T, strict=True)
            }
        return {name: tuned_score(run, self.opened[name], TASKS[name])}

    def baselines(self, known: Mapping[str, float]) -> dict[str, float]:
        """TF-IDF and a linear model on the same examples, where not `known`."""
        found = {}
        for name in self.opened.keys() - known.keys():
            data = self.opened[name]
            task, dev = build_task(data.settings), next(iter(data.dev.values()))
            try:
                predictions = task.baseline(data.train, dev)
            except LitebertError:
                continue
            if predictions is not None:
                found[name] = POINTS * task.score(dev, predictions)[TASKS[name].metric]
        return found


def find_data(folder: Path, task: str) -> Path:
    """The folder of a task's files: itself, or for CoNLL's columns the one with English."""
    if task == "ner" and os.path.isdir(folder / "WikiANN" / "en"):
        return folder / "WikiANN" / "en"
    return folder


def common_tasks(runs: Iterable[Mapping[str, Measurement]]) -> list[str]:
    """The tasks that were measured of all runs, as far as any was of a run."""
    have = [found for run in runs if (found := TASKS.keys() & run.keys())]
    return [name for name in TASKS if have and all(name in found for found in have)]


def with_mean(measured: Mapping[str, Measurement], tasks: Sequence[str]) -> dict[str, Measurement]:
    """A run's measures, and the mean of these tasks; its blocks are of all together."""
    if not tasks or not measured.keys() >= set(tasks):
        return dict(measured)
    ones = [measured[name] for name in tasks]
    count = min(len(one.blocks) for one in ones)
    blocks = np.mean([one.blocks[:count] for one in ones], axis=0)
    mean = Measurement(float(np.mean([one.value for one in ones])), blocks.tolist())
    return {**measured, MEAN: mean}


def tuned_score(run: Path, data: TaskData, wanted: DownstreamTask) -> Measurement:
    """Fine-tune a run's model once and score its predictions on dev."""
    folder = find_model_folder(run)
    start, tokenizer = Model.load(folder), open_tokenizer(folder)
    recipe = choose_recipe(
        start, folder, data, tokenizer, None, [*wanted.settings, "evaluations=1"], lambda _: None
    )
    task = build_task(data.settings).configured(recipe.model_dump(), data.train, lambda _: None)
    (name, examples), *_ = data.dev.items()
    train, dev = (
        FeaturedExamples(part, task.features(part, tokenizer)) for part in (data.train, examples)
    )
    setup = RunSetup(start, task, recipe, tokenizer, train, {name: dev})
    with tempfile.TemporaryDirectory() as scratch:
        run_seed(setup, _seed(run), Path(scratch) / "run", recipe.learning_rate)
        model = Model.load(Path(scratch) / "run" / MODEL)
    predictions = predict_examples(task, model, dev.examples, dev.features)
    return Measurement.of_score(
        _score_of(task, examples, predictions, wanted.metric), len(examples), POINTS
    )


def _seed(run: Path) -> int:
    number = run.name.removeprefix("seed-")
    return int(number) if number.isdigit() else 1


def _score_of(
    task: Task, examples: Sequence[Any], predictions: Sequence[Any], metric: str
) -> Callable[[np.ndarray], float]:
    def score(chosen: np.ndarray) -> float:
        picked = [int(i) for i in chosen]
        return task.score([examples[i] for i in picked], [predictions[i] for i in picked])[metric]

    return score


def _mean_of(column: np.ndarray) -> Callable[[np.ndarray], float]:
    return lambda chosen: float(column[chosen].mean())

"""What pretraining is worth: the same fine-tuning from several starts, with few and many labels.

Every arm (a start) is fine-tuned with each number of labels. On the first seed a small grid of
learning rates is tried and the best on dev is kept; the other seeds use that one. A seed decides
which sentences are labelled, their order and the new head, for all arms alike, so that arms are
compared seed by seed. Small models leave a core idle if they use two, so one process a core works
at this, and each result is a file: an interrupted comparison resumes where it was. The plain rival,
TF-IDF and a logistic regression, is trained on the same labelled sentences.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import torch

from litebert.base.batches import take
from litebert.base.processes import ProcessPool, cpu_count
from litebert.base.runtime import keep_freed_memory
from litebert.demos.reviews import LABELS, Sentences, read_sentences
from litebert.finetuning.recipe import Recipe
from litebert.finetuning.runs import (
    RESULT,
    FeaturedExamples,
    RunResult,
    RunSetup,
    read_result,
    run_seed,
)
from litebert.model.folder import MODEL
from litebert.model.model import Model
from litebert.tasks.classification import Classification
from litebert.tasks.features import Features
from litebert.tasks.texts import TextSettings
from litebert.text.tokenizer import load_tokenizer

ALL = 1_000_000  # labels: as many as there are
BASELINE = "TF-IDF"
TASK = TextSettings(
    name="classify", kind="classify", metrics=("accuracy",), labels=tuple(sorted(LABELS.values())),
    max_length=64, pooling="mean",
)  # fmt: skip


def describe_labels(labels: int) -> str:
    """A number of labels for people."""
    return "all labels" if labels == ALL else f"{labels:,} labels"


@dataclass(frozen=True)
class ComparisonPlan:
    """How much is compared."""

    steps: dict[int, int]  # of fine-tuning, by the number of labels
    learning_rates: tuple[float, ...] = (5e-4, 1e-3, 2e-3)
    seeds: int = 5

    def count(self, arms: int) -> int:
        """How many fine-tunings that is."""
        return arms * len(self.steps) * (len(self.learning_rates) + self.seeds - 1)


@dataclass(frozen=True)
class ComparisonJob:
    """One fine-tuning."""

    arm: str
    labels: int
    learning_rate: float
    seed: int
    steps: int
    keeps_model: bool

    @property
    def name(self) -> str:
        """Its folder's name."""
        return f"{self.arm}-{self.labels}-{self.learning_rate:g}-{self.seed}".replace(" ", "-")

    @property
    def description(self) -> str:
        """For people."""
        return (
            f"{self.arm}, {describe_labels(self.labels)}, learning rate {self.learning_rate:g}, "
            f"seed {self.seed}"
        )


@dataclass(frozen=True)
class Cell:
    """One arm with one number of labels: the learning rate chosen, and accuracies by seed."""

    arm: str
    labels: int
    learning_rate: float | None
    jobs: list[ComparisonJob]  # one a seed
    dev: list[float]
    test: list[float]


Results = dict[ComparisonJob, dict[str, float]]
Progress = Callable[[ComparisonJob, float], None]


def compare(
    arms: dict[str, Path], plan: ComparisonPlan, out: Path, progress: Progress
) -> list[Cell]:
    """Fine-tune every arm (a model folder each) with every number of labels; the rival first.

    Models of the last arm with the most labels are kept.
    """
    sentences = read_sentences()
    last, most = list(arms)[-1], max(plan.steps)
    sizes = sorted(plan.steps.items(), reverse=True)  # what takes longest goes first
    grid = [
        ComparisonJob(arm, labels, learning_rate, 1, steps, (arm, labels) == (last, most))
        for labels, steps in sizes
        for arm in arms
        for learning_rate in plan.learning_rates
    ]
    with ProcessPool(cpu_count(), _prepare, (arms, out, sentences)) as pool:
        results = _run_all(grid, pool, out, progress)
        best = {
            (job.arm, job.labels): job
            for job in sorted(results, key=lambda job: (results[job]["dev"], -job.learning_rate))
        }
        rest = [
            replace(best[arm, labels], seed=seed)
            for labels, _ in sizes
            for seed in range(2, plan.seeds + 1)
            for arm in arms
        ]
        results |= _run_all(rest, pool, out, progress)
    cells = []
    for labels in sorted(plan.steps):
        cells.append(_baseline(sentences, labels, plan.seeds))
        for arm in arms:
            jobs = [replace(best[arm, labels], seed=1 + n) for n in range(plan.seeds)]
            dev, test = ([results[job][part] for job in jobs] for part in ("dev", "test"))
            cells.append(Cell(arm, labels, jobs[0].learning_rate, jobs, dev, test))
    return cells


def _baseline(sentences: Sentences, labels: int, seeds: int) -> Cell:
    """TF-IDF with the labels that each seed chooses; all labels are the same for every seed."""
    task, parts = Classification(TASK), (sentences.dev, sentences.test)
    found: list[list[float]] = []
    for seed in range(1, seeds + 1):
        if labels == ALL and found:
            found.append(found[0])
            continue
        chosen = [sentences.train[i] for i in sentences.choose(labels, seed)]
        predictions = iter(task.baseline(chosen, [one for part in parts for one in part]))
        answers = [list(islice(predictions, len(part))) for part in parts]
        found.append([task.score(*both)["accuracy"] for both in zip(parts, answers, strict=True)])
    dev, test = map(list, zip(*found, strict=True))
    return Cell(BASELINE, labels, None, [], dev, test)


def _run_all(
    jobs: list[ComparisonJob], pool: ProcessPool, out: Path, progress: Progress
) -> Results:
    """The results of some jobs: those that are there, and the others by one process a core."""
    results: Results = {}

    def keep(job: ComparisonJob, result: RunResult) -> None:
        results[job] = {name: scores["accuracy"] for name, scores in result.scores.items()}
        progress(job, results[job]["test"])

    for job in jobs:
        if (out / job.name / RESULT).is_file():
            keep(job, read_result(out / job.name, "accuracy"))
        else:
            pool.submit(_run, job)
    for job, result in pool.completed():
        keep(job, result)
    return results


# ------------------------------------------------------------------------ in another process

_worker: _Worker | None = None


class _Worker:
    """What all jobs of a process need."""

    def __init__(self, arms: dict[str, Path], out: Path, sentences: Sentences) -> None:
        self.out, self.task, self.sentences = out, Classification(TASK), sentences
        self.models = {name: Model.load(folder) for name, folder in arms.items()}
        self.tokenizer = load_tokenizer(next(iter(arms.values())))
        self.train, dev, test = (
            FeaturedExamples(part, self.task.features(part, self.tokenizer))
            for part in (sentences.train, sentences.dev, sentences.test)
        )
        self.dev = {"dev": dev, "test": test}

    def run(self, job: ComparisonJob) -> RunResult:
        """Fine-tune once."""
        chosen = self.sentences.choose(job.labels, job.seed)
        features = Features(take(self.train.features.batch, chosen))
        train = FeaturedExamples([self.sentences.train[i] for i in chosen], features)
        recipe = Recipe(
            max_length=TASK.max_length, steps=job.steps, learning_rate=job.learning_rate,
            pooling="mean", evaluations=1, dropout=0.0,
        )  # fmt: skip
        setup = RunSetup(self.models[job.arm], self.task, recipe, self.tokenizer, train, self.dev)
        result = run_seed(setup, job.seed, self.out / job.name, job.learning_rate)
        assert result is not None, "nobody asks it to stop"
        if not job.keeps_model:
            shutil.rmtree(self.out / job.name / MODEL, ignore_errors=True)
        return result


def _prepare(arms: dict[str, Path], out: Path, sentences: Sentences) -> None:
    """Begin a process: one thread, as there is a process for every core."""
    global _worker
    torch.set_num_threads(1)
    keep_freed_memory()
    _worker = _Worker(arms, out, sentences)


def _run(job: ComparisonJob) -> tuple[ComparisonJob, RunResult]:
    assert _worker is not None
    return job, _worker.run(job)

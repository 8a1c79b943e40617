"""What pretraining is worth: the same fine-tuning from several starts, with few and many labels.

Every arm (a start) is fine-tuned with each number of labels. On the first seed the rates of a small
grid are tried and the best on dev is kept; the other seeds use that one. A seed decides which
sentences are labelled, their order and the new head, for all arms alike, so that arms are compared
seed by seed. Small models leave a core idle if they use two, so one process a core works at this,
and each result is a file: an interrupted comparison goes on where it was.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import torch

from litebert.base.errors import lost_worker
from litebert.base.runtime import cores, keep_freed_memory
from litebert.demo.reviews import LABELS, Sentences, read_sentences
from litebert.finetuning.feature_cache import cached_features
from litebert.finetuning.recipe import Recipe
from litebert.finetuning.runs import (
    MODEL,
    RESULT,
    FeaturedExamples,
    RunResult,
    RunSetup,
    read_result,
    run_seed,
)
from litebert.inference.model_folder import open_tokenizer
from litebert.model.model import Model
from litebert.tasks.classification import Classification
from litebert.tasks.features import Features, take
from litebert.tasks.texts import TextSettings

ALL = 1_000_000  # labels: as many as there are
TASK = TextSettings(
    name="classify", kind="classify", metrics=("accuracy",), labels=tuple(sorted(LABELS.values())),
    max_length=64, pooling="mean",
)  # fmt: skip


def labels_name(labels: int) -> str:
    """A number of labels for people."""
    return "all labels" if labels == ALL else f"{labels:,} labels"


@dataclass(frozen=True)
class Plan:
    """How much is compared."""

    steps: dict[int, int]  # of fine-tuning, by the number of labels
    rates: tuple[float, ...] = (5e-4, 1e-3, 2e-3)
    seeds: int = 5

    def count(self, arms: int) -> int:
        """How many fine-tunings that is."""
        return arms * len(self.steps) * (len(self.rates) + self.seeds - 1)


@dataclass(frozen=True)
class Job:
    """One fine-tuning."""

    arm: str
    labels: int
    rate: float
    seed: int
    steps: int
    kept: bool  # its model

    @property
    def name(self) -> str:
        """Its folder's name."""
        return f"{self.arm}-{self.labels}-{self.rate:g}-{self.seed}".replace(" ", "-")

    @property
    def labels_name(self) -> str:
        """How many labels, for people."""
        return labels_name(self.labels)


@dataclass(frozen=True)
class Cell:
    """One arm with one number of labels: the rate that was best, and accuracies by seed."""

    arm: str
    labels: int
    rate: float
    jobs: list[Job]  # one a seed
    dev: list[float]
    test: list[float]


Results = dict[Job, dict[str, float]]
Progress = Callable[[Job, float], None]


def compare(arms: dict[str, Path], plan: Plan, out: Path, progress: Progress) -> list[Cell]:
    """Fine-tune every arm (a model folder each) with every number of labels.

    Models of the last arm with the most labels are kept.
    """
    last, most = list(arms)[-1], max(plan.steps)
    sizes = sorted(plan.steps.items(), reverse=True)  # what takes longest goes first
    grid = [
        Job(arm, labels, rate, 1, steps, (arm, labels) == (last, most))
        for labels, steps in sizes
        for arm in arms
        for rate in plan.rates
    ]
    results = _work(grid, arms, out, progress)
    best = {
        (job.arm, job.labels): job
        for job in sorted(results, key=lambda job: (results[job]["dev"], -job.rate))
    }
    rest = [
        replace(best[arm, labels], seed=seed)
        for labels, _ in sizes
        for seed in range(2, plan.seeds + 1)
        for arm in arms
    ]
    results |= _work(rest, arms, out, progress)
    return [
        _cell([replace(best[arm, labels], seed=1 + n) for n in range(plan.seeds)], results)
        for labels in sorted(plan.steps)
        for arm in arms
    ]


def _cell(jobs: list[Job], results: Results) -> Cell:
    dev, test = ([results[job][part] for job in jobs] for part in ("dev", "test"))
    return Cell(jobs[0].arm, jobs[0].labels, jobs[0].rate, jobs, dev, test)


def _work(jobs: list[Job], arms: dict[str, Path], out: Path, progress: Progress) -> Results:
    """The results of some jobs: those that are there, and the others by one process a core."""
    results: Results = {}

    def keep(job: Job, result: RunResult) -> None:
        results[job] = {name: scores["accuracy"] for name, scores in result.scores.items()}
        progress(job, results[job]["test"])

    left = [job for job in jobs if not (out / job.name / RESULT).is_file()]
    for job in jobs:
        if job not in left:
            keep(job, read_result(out / job.name))
    if left:
        given = ({name: str(folder) for name, folder in arms.items()}, str(out))
        with ProcessPoolExecutor(
            min(cores(), len(left)), get_context("spawn"), _prepare, given
        ) as pool:
            try:
                for done in as_completed([pool.submit(_run, job) for job in left]):
                    keep(*done.result())
            except BrokenProcessPool:
                raise lost_worker() from None
    return results


# ------------------------------------------------------------------------ in another process

_bench: _Bench | None = None


class _Bench:
    """What all jobs of a process need."""

    def __init__(self, arms: dict[str, str], out: str) -> None:
        self.out, self.task = Path(out), Classification(TASK)
        self.models = {name: Model.load(Path(folder)) for name, folder in arms.items()}
        folder = Path(next(iter(arms.values())))
        self.tokenizer = open_tokenizer(folder)
        self.sentences: Sentences = read_sentences()
        self.train, dev, test = (
            FeaturedExamples(part, cached_features(self.task, part, self.tokenizer, folder))
            for part in (self.sentences.train, self.sentences.dev, self.sentences.test)
        )
        self.dev = {"dev": dev, "test": test}

    def run(self, job: Job) -> RunResult:
        """Fine-tune once."""
        chosen = self.sentences.some(job.labels, job.seed)
        features = Features(take(self.train.features.batch, chosen), 0, 0)
        train = FeaturedExamples([self.sentences.train[i] for i in chosen], features)
        recipe = Recipe(
            max_length=TASK.max_length,
            steps=job.steps,
            learning_rate=job.rate,
            pooling="mean",
            evaluations=1,
            dropout=0.0,
        )
        start = self.models[job.arm]
        setup = RunSetup(start, self.task, recipe, self.tokenizer, train, self.dev)
        result = run_seed(setup, job.seed, self.out / job.name, job.rate)
        assert result is not None, "nobody asks it to stop"
        if not job.kept:
            shutil.rmtree(self.out / job.name / MODEL, ignore_errors=True)
        return result


def _prepare(arms: dict[str, str], out: str) -> None:
    """Begin a process: one thread; Ctrl-C ends it without a word, as its results are files."""
    global _bench
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    torch.set_num_threads(1)
    keep_freed_memory()
    _bench = _Bench(arms, out)


def _run(job: Job) -> tuple[Job, RunResult]:
    assert _bench is not None
    return job, _bench.run(job)

"""`litebert finetune --seeds 20 --on ray`: a seed a task, one device each.

Every task leaves its seed's folder behind, as a run on one machine does, on a file system that all
nodes share; the process that started them then finds all seeds finished. A task that is done twice
finds the result of the first, or goes on from its checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from litebert.base.errors import SettingsError
from litebert.base.ray_tasks import ray_cluster, require_cluster
from litebert.base.remote.urls import as_url
from litebert.finetuning.recipe import Recipe
from litebert.finetuning.runs import RunResult, RunSetup
from litebert.tasks.data import TaskData
from litebert.tasks.readers.text_file import Say

OneSeed = Callable[["SeedTask"], list[RunResult]]


@dataclass(frozen=True)
class SeedTask:
    """What a node must know to run a seed."""

    folder: Path  # of the encoder
    data: TaskData
    recipe: Recipe
    out: Path
    overflow: str
    retry: str
    seed: int


def check_cluster(on: str, out: Path | str) -> None:
    """Seeds meet in a folder, which a URL is not; and a cluster must be there."""
    if url := as_url(out):
        raise SettingsError(f"--on {on}: --out must be a folder that all nodes share, not {url}")
    require_cluster(on)


def run_seeds(on: str, tasks: list[SeedTask], one_seed: OneSeed, setup: RunSetup) -> None:
    """Have every seed run somewhere; what comes of each is told as it comes."""
    say, metric = setup.callbacks.on_message, setup.task.settings.metrics[0]
    with ray_cluster(on) as cluster:
        arguments = [(task,) for task in tasks]
        gpus = 1 if cluster.gpus else 0
        for number, results in cluster.completed(one_seed, arguments, gpus=gpus):
            tell(say, tasks[number].seed, results, metric)


def tell(say: Say, seed: int, results: list[RunResult], metric: str) -> None:
    """A line a seed."""
    last = results[-1]
    say(f"seed {seed}: {metric} {last.value(metric):.4f} after {last.seconds:.0f} s")

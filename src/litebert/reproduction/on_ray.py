"""`litebert reproduce --on ray`: rows of the grid on the nodes of a cluster, one device each.

A row and those that go on from it are one task, which trains and measures them in their folders, on
a file system that all nodes share; the process that started them then finds them finished. A row
that fails is reported while the others go on, as on one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from litebert.base.errors import SettingsError
from litebert.base.ray_tasks import ray_cluster, require_cluster
from litebert.base.remote.urls import as_url
from litebert.reproduction.row import GridRow

Failures = dict[str, str]  # the keys of rows, and why


@dataclass(frozen=True)
class RowsTask:
    """What a node must know to run a row and those that go on from it."""

    rows: list[GridRow]  # in the order in which they go on from one another
    seeds: int
    corpus: Path
    out: Path
    data: Path | None
    scale: str


def check_cluster(on: str, out: Path | str) -> None:
    """Rows meet in a folder, which a URL is not; and a cluster must be there."""
    if url := as_url(out):
        raise SettingsError(f"--on {on}: --out must be a folder that all nodes share, not {url}")
    require_cluster(on)


def run_on(
    on: str, tasks: list[RowsTask], work: Callable[[RowsTask], Failures]
) -> Iterator[tuple[RowsTask, Failures]]:
    """Have every task done somewhere; each with what failed of it, as they come."""
    with ray_cluster(on) as cluster:
        gpus = 1 if cluster.gpus else 0
        for number, failures in cluster.completed(work, [(task,) for task in tasks], gpus=gpus):
            yield tasks[number], failures

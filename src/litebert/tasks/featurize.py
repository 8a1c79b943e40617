"""Features of many examples: in several processes where there is much to do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from litebert.base.processes import ProcessPool, cpu_count
from litebert.tasks.features import Features, join_features
from litebert.tasks.task import Task
from litebert.text.tokenizer import Tokenizer, load_tokenizer

WORTH_A_PROCESS = 20_000  # examples, from which on a second process pays for its start


def make_features(
    task: Task, examples: Sequence[Any], tokenizer: Tokenizer, folder: Path
) -> Features:
    """The features of examples; `folder` is where other processes find the tokenizer."""
    processes = cpu_count()
    if processes == 1 or len(examples) < WORTH_A_PROCESS:
        return task.features(examples, tokenizer)
    size = -(-len(examples) // (2 * processes))
    parts = [list(examples[i : i + size]) for i in range(0, len(examples), size)]
    with ProcessPool(processes) as pool:
        return join_features(pool.map(partial(_features_of, task, folder), parts))


def _features_of(task: Task, folder: Path, examples: list[Any]) -> Features:
    return task.features(examples, load_tokenizer(folder))

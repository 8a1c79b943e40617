"""Features of many examples: in several processes where there is much to do."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from litebert.base.errors import lost_worker
from litebert.base.runtime import cores
from litebert.tasks.features import Features, join_features
from litebert.tasks.task import Task
from litebert.text.tokenizer import Tokenizer, load_tokenizer

WORTH_A_PROCESS = 20_000  # examples, from which on a second process pays for its start


def make_features(
    task: Task, examples: Sequence[Any], tokenizer: Tokenizer, folder: Path
) -> Features:
    """The features of examples; `folder` is where other processes find the tokenizer."""
    processes = cores()
    if processes == 1 or len(examples) < WORTH_A_PROCESS:
        return task.features(examples, tokenizer)
    size = -(-len(examples) // (2 * processes))
    parts = [list(examples[i : i + size]) for i in range(0, len(examples), size)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        try:
            made = pool.map(_part, *zip(*((task, part, folder) for part in parts), strict=True))
            return join_features(list(made))
        except BrokenProcessPool:
            raise lost_worker() from None


def _part(task: Task, examples: list[Any], folder: Path) -> Features:
    return task.features(examples, load_tokenizer(folder))

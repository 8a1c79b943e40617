"""The tasks of first_hour.py: a stranger's labels, few and many, and a test set nobody chose by.

Training examples are a fixed sample of the published training set, of which `litebert finetune`
holds out a tenth by itself; the test is a fixed sample of at most 1,000 examples (100 passages'
questions of SQuAD) of the published dev set.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.demos.reviews import read_sentences
from litebert.tasks.data import HELD_OUT, TaskData, hold_out
from litebert.tasks.published.registry import PUBLISHED
from litebert.tasks.readers.text_file import quiet
from litebert.tasks.registry import KINDS
from litebert.tasks.source import DataSource

TEST = 1_000  # examples, at most
TEST_OF_LONG = 300  # questions and choices, whose sequences are ten times as long


@dataclass(frozen=True)
class BenchmarkTask:
    """A sample of a task: how many examples to learn from (None: all), and what it is for."""

    published: str  # a published task, or "film"
    folder: str  # below DATA
    labels: int | None
    chooses: bool  # whether the rule was found on it; else it only checks the rule
    test: int = TEST
    level: str = "all"


# Half of the data sets choose the rule, the others check it; said before anything was measured.
TASKS: dict[str, BenchmarkTask] = {
    "film-200": BenchmarkTask("film", "", 200, True),
    "film-1000": BenchmarkTask("film", "", 1_000, True),
    "mrpc": BenchmarkTask("mrpc", "glue", None, True),
    "sts-b": BenchmarkTask("sts-b", "glue", None, True),
    "wikiann-200": BenchmarkTask("ner", "ner/WikiANN/en", 200, True),
    "squad-1000": BenchmarkTask("squad-1.1", "squad", 1_000, True, TEST_OF_LONG),
    "sst2-100": BenchmarkTask("sst-2", "glue", 100, False),
    "sst2-200": BenchmarkTask("sst-2", "glue", 200, False),
    "sst2-1000": BenchmarkTask("sst-2", "glue", 1_000, False),
    "sst2-all": BenchmarkTask("sst-2", "glue", None, False),
    "rte": BenchmarkTask("rte", "glue", None, False),
    "wikiann-all": BenchmarkTask("ner", "ner/WikiANN/en", None, False),
    "race-1000": BenchmarkTask("race", "race", 1_000, False, TEST_OF_LONG, "middle"),
}


def load_task(name: str, folder: Path, seed: int) -> TaskData:
    """Its examples; the training ones are others with each seed. Dev sets: dev, then test."""
    wanted = TASKS[name]
    train, test, settings_of = _film() if wanted.published == "film" else _published(wanted, folder)
    train = _sample(train, wanted.labels, seed)
    settings = settings_of(train)
    train, dev = hold_out(KINDS[settings.kind], train, HELD_OUT)
    return TaskData(settings, train, {"dev": dev, "test": _sample(test, wanted.test, 0)})


def _film() -> tuple[list[Any], list[Any], Callable[[list[Any]], Any]]:
    sentences = read_sentences()
    return (
        sentences.train,
        sentences.test,
        lambda train: KINDS["classify"].settings_for(train, Path("film reviews")),
    )


def _published(
    wanted: BenchmarkTask, folder: Path
) -> tuple[list[Any], list[Any], Callable[[list[Any]], Any]]:
    published = PUBLISHED[wanted.published]
    source = DataSource.build(folder / wanted.folder, level=wanted.level, repair=True)
    assert source.data is not None
    train, test = (
        published.read(source.data, split, source, labelled=True, say=quiet)
        for split in ("train", "dev")
    )
    return train, test, published.settings


def _sample(examples: list[Any], count: int | None, seed: int) -> list[Any]:
    if count is None or count >= len(examples):
        return examples
    return random.Random(seed).sample(examples, count)

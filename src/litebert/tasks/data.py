"""The examples of a task by its name: a published one with its folder, or a kind with own files.

open_data("sst-2", DataSource(data="glue"))          GLUE's nine, squad-1.1, squad-2.0, race, ner
open_data("classify", DataSource(train="mine.csv"))  classify, pair, regress, tag, qa, choice
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.base.errors import FormatError, SettingsError, did_you_mean
from litebert.tasks.asked import split_texts
from litebert.tasks.published.registry import PUBLISHED
from litebert.tasks.readers.column_mapping import ColumnMapping
from litebert.tasks.readers.splits import find_split, require_split
from litebert.tasks.readers.text_file import Say, quiet
from litebert.tasks.registry import KINDS, build_task, find_kind
from litebert.tasks.source import DataSource, Value
from litebert.tasks.task import Task, TaskSettings

HELD_OUT = 0.1  # fraction of own examples that become the dev set where none is given
Examples = list[Any]


@dataclass(frozen=True)
class TaskData:
    """What a task is trained and evaluated on. Dev sets by name: MNLI has two."""

    settings: TaskSettings
    train: Examples
    dev: dict[str, Examples]


def task_names() -> list[str]:
    """Everything `--task` understands."""
    return [*(name for name, task in PUBLISHED.items() if task.splits), *KINDS]


def open_data(task: str, source: DataSource, say: Say = quiet) -> TaskData:
    """The examples and settings of a task."""
    if task not in task_names():
        raise SettingsError(f"no task {task!r}; {did_you_mean(task, task_names())}")
    if task in KINDS:
        return _open_own(KINDS[task], source, say)
    _, dev = published_examples(task, source, say)
    train = dev.pop("train")
    data = TaskData(PUBLISHED[task].settings(train), train, dev)
    for examples in dev.values():
        _check_dev(build_task(data.settings), examples, source.data or Path())
    return data


def published_examples(
    task: str, source: DataSource, say: Say
) -> tuple[type[Task], dict[str, Examples]]:
    """The kind of a published task, and its labelled splits, train first."""
    if task not in task_names():
        raise SettingsError(f"no task {task!r}; {did_you_mean(task, task_names())}")
    if source.data is None:
        raise SettingsError(f"--task {task} needs --data FOLDER, where its published files are")
    published = PUBLISHED[task]
    found = {
        split: published.read(source.data, split, source, labelled=True, say=say)
        for split in published.splits
    }
    return find_kind(published.settings(found["train"]).kind), found


def read_split(
    task: Task, source: DataSource, *, split: str = "dev", labelled: bool = True, say: Say = quiet
) -> Examples:
    """Examples for a fine-tuned model: a published split, or a file of the user's own."""
    if source.values is not None:
        examples = _given(task, source.values, source.columns, labelled=labelled, say=say)
        _check_asked(task, examples, Path("texts"), labelled=labelled)
        return examples
    path, published = source.data, PUBLISHED.get(task.settings.name)
    assert path is not None
    if published is not None and (os.path.isdir(path) or published.reads_single_files):
        examples = published.read(path, split, source, labelled=labelled, say=say)
    else:
        path = file_of_split(path, split, say)
        examples = task.read_file(path, source, labelled=labelled, say=say)
    _check_asked(task, examples, path, labelled=labelled)
    return examples


def _given(
    task: Task, values: Sequence[Value], columns: ColumnMapping, *, labelled: bool, say: Say
) -> Examples:
    """Examples that are given instead of a file: what an engine takes, or rows by their columns."""
    rows = [value for value in values if isinstance(value, Mapping)]
    if not values:
        raise SettingsError("no texts are given; there must be at least one")
    if len(rows) == len(values):
        return task.read_rows(rows, columns, labelled=labelled, say=say)
    if rows or labelled:
        why = "some are rows and some are not" if rows else "texts alone have no labels"
        raise SettingsError(f"{why}; give a dict each, with the columns of a table")
    return task.examples_of([_plain(value, several=task.takes_several) for value in values])


def _plain(value: Value, *, several: bool) -> str | tuple[object, ...]:
    if isinstance(value, str):
        return split_texts(value) if several else value
    return tuple(value)


# ------------------------------------------------------------------------------- own files


def file_of_split(path: Path, split: str, say: Say) -> Path:
    """A file as it is; of a folder, the file of a split."""
    if not path.is_dir():
        return path
    found = require_split(path, split)
    say(f"{path}: {found.name} is {split}")
    return found


def own_files(kind: str, source: DataSource, say: Say) -> tuple[Path, Path | None]:
    """The user's files: those named, or of a folder those that are called train and dev."""
    given = source.train or source.data
    if given is None:
        raise SettingsError(
            f"--task {kind} needs --train FILE (.csv, .tsv, .jsonl, .json, .parquet, .conll) or a "
            "folder with files named train and dev"
        )
    train, dev = file_of_split(given, "train", say), source.dev
    if dev is None and given.is_dir() and (found := find_split(given, "dev")):
        say(f"{given}: {found.name} is dev")
        return train, found
    return train, None if dev is None else file_of_split(dev, "dev", say)


def _open_own(kind: type[Task], source: DataSource, say: Say) -> TaskData:
    train, dev_file = own_files(kind.kind, source, say)

    def read(path: Path) -> Examples:
        return kind.read_file(path, source, labelled=True, say=say)

    examples = read(train)
    if not examples:
        raise FormatError(f"{train}: holds no examples")
    if dev_file is None:
        examples, dev = hold_out(kind, examples, HELD_OUT)
        count = len(dev) + len(examples)
        copies = count - len({kind.key_of(example) for example in (*examples, *dev)})
        together = f"; {copies:,} are copies, and stay with theirs" if copies else ""
        say(f"{train}: {len(dev):,} of {count:,} examples are held out as dev{together}")
    else:
        dev = read(dev_file)
        known = {kind.key_of(example) for example in examples}
        if both := sum(kind.key_of(example) in known for example in dev):
            say(
                f"warning: {both:,} of {len(dev):,} dev examples are also in train, so scores on "
                "dev are too good; `litebert inspect` says which"
            )
    settings = kind.settings_for(examples, train)
    _check_dev(kind(settings), dev, dev_file or train)
    return TaskData(settings, examples, {"dev": dev})


def hold_out(
    kind: type[Task], examples: Sequence[Any], fraction: float
) -> tuple[Examples, Examples]:
    """Train and dev, by a fixed shuffle; both have something in them.

    Where an example has one label, labels are as frequent in one as in the other. Copies of a text
    stay together: what was learned by heart is no evidence. An example whose label occurs nowhere
    else is not held out: it could not be learned then.
    """
    count = max(1, round(fraction * len(examples)))
    copies: dict[Hashable, list[int]] = {}
    for i in _in_turn(kind, examples):
        copies.setdefault(kind.key_of(examples[i]), []).append(i)
    if len(copies) < 2:
        raise SettingsError(
            "one example is too few (copies of a text are one): some are held out to evaluate on"
        )
    labels = [kind.labels_of(example) for example in examples]
    left = Counter(label for one in labels for label in one)
    held: set[int] = set()

    def take(places: list[int]) -> None:
        """Hold a text and its copies out, where its labels occur in others, too."""
        own = Counter(label for i in places for label in labels[i])
        if all(left[label] > many for label, many in own.items()):
            left.subtract(own)
            held.update(places)

    for places in copies.values():
        if len(held) + len(places) <= count:
            take(places)
    for places in sorted(copies.values(), key=len):
        if not held:
            take(places)
    if not held:
        raise SettingsError(
            "no label occurs in two different texts; give examples to evaluate on with --dev"
        )
    return (
        [example for i, example in enumerate(examples) if i not in held],
        [example for i, example in enumerate(examples) if i in held],
    )


def _in_turn(kind: type[Task], examples: Sequence[Any]) -> list[int]:
    """Places in a fixed random order in which labels take turns, as often as they occur."""
    order = list(range(len(examples)))
    random.Random(0).shuffle(order)
    labels = [kind.labels_of(example) for example in examples]
    if any(len(some) > 1 for some in labels):  # of words
        return order
    totals, seen, turn = Counter(labels), Counter[tuple[str, ...]](), dict[int, float]()
    for i in order:
        turn[i] = (seen[labels[i]] + 0.5) / totals[labels[i]]
        seen[labels[i]] += 1
    return sorted(order, key=lambda i: turn[i])


# ------------------------------------------------------------- examples that do not fit a model


def _check_dev(task: Task, examples: Examples, path: Path) -> None:
    """Refuse dev examples that training has not prepared for."""
    for example in examples:
        for label in set(task.labels_of(example)).difference(task.settings.labels):
            raise FormatError(
                f"{_place(example, path)}: label {label!r} occurs among the dev examples only, so "
                "it cannot be learned; add training examples of it or remove it"
            )
        _check_example(task, example, path)


def _check_asked(task: Task, examples: Examples, path: Path, *, labelled: bool) -> None:
    """Refuse examples that a fine-tuned model cannot be asked, or not be evaluated on."""
    for example in examples:
        if labelled and not task.is_labelled(example):
            raise FormatError(
                f"{_place(example, path)}: has no label, so nothing can be evaluated on it; "
                "`litebert predict` needs none"
            )
        unknown = set(task.labels_of(example)).difference(task.settings.labels)
        if labelled and unknown:
            raise FormatError(
                f"{_place(example, path)}: label {min(unknown)!r} is none of the model's: "
                f"{', '.join(task.settings.labels[:12])}"
            )
        _check_example(task, example, path)


def _check_example(task: Task, example: Any, path: Path) -> None:
    if problem := task.problem_of(example):
        raise FormatError(f"{_place(example, path)}: {problem}")


def _place(example: Any, path: Path) -> str:
    """Where an example is: its line if that is known, else its file and its id."""
    return example.where or f"{path}, example {example.id}"

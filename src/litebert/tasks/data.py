"""The examples of a task by its name: a published one with its folder, or a kind with own files.

open_data("sst-2", data="glue")                      GLUE's nine, squad-1.1, squad-2.0, race, ner
open_data("classify", train="mine.csv", dev=None)    classify, pair, regress, tag, qa, choice
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.base.errors import FileError, FormatError, SettingsError, did_you_mean
from litebert.tasks.base import TaskSettings
from litebert.tasks.checks import check_asked, check_dev, check_entities, labels_of
from litebert.tasks.examples import Example
from litebert.tasks.files.columns import read_columns
from litebert.tasks.files.glue import GLUE, read_glue, resolve_split
from litebert.tasks.files.own import read_own
from litebert.tasks.files.race import read_race
from litebert.tasks.files.roles import KINDS, Columns
from litebert.tasks.files.squad import read_squad
from litebert.tasks.files.text_file import Say, quiet
from litebert.tasks.scores.entities import are_entities

HELD_OUT = 0.1  # share of own examples that become the dev set where none is given
MOST_LABELS = 1000
METRICS = {
    "classify": ("accuracy", "macro_f1"), "pair": ("accuracy", "macro_f1"),
    "regress": ("pearson", "spearman"), "tag": ("accuracy",), "qa": ("f1", "exact"),
    "choice": ("accuracy",),
}  # fmt: skip
Examples = list[Any]


@dataclass(frozen=True)
class Data:
    """What a task is trained and measured on. Dev sets by name: MNLI has two."""

    settings: TaskSettings
    train: Examples
    dev: dict[str, Examples]


def task_names() -> list[str]:
    """Everything `--task` understands."""
    return [*(name for name in GLUE if name != "ax"), *_PUBLISHED, *KINDS]


def open_data(
    task: str, *, data: Path | None = None, train: Path | None = None, dev: Path | None = None,
    columns: Columns | None = None, level: str = "all", repair: bool = False, say: Say = quiet,
) -> Data:  # fmt: skip
    """The examples and settings of a task."""
    if task in KINDS:
        if train is None:
            raise SettingsError(f"--task {task} needs --train FILE (.csv, .tsv, .jsonl, .parquet)")
        return _own(task, train, dev, columns, repair, say)
    if task not in task_names():
        raise SettingsError(f"no task {task!r}; {did_you_mean(task, task_names())}")
    if data is None:
        raise SettingsError(f"--task {task} needs --data FOLDER, where its published files are")
    if task in GLUE:
        return _glue(task, data, say)
    return _PUBLISHED[task](data, level, repair, say)


def read_split(
    settings: TaskSettings, path: Path, *, split: str = "dev", labelled: bool = True,
    columns: Columns | None = None, repair: bool = False, say: Say = quiet,
) -> Examples:  # fmt: skip
    """Examples for a fine-tuned model: a published split, or a file of the user's own."""
    examples = _read_split(settings, path, split, labelled, columns, repair, say)
    check_asked(settings, examples, path, labelled=labelled)
    return examples


def _read_split(
    settings: TaskSettings, path: Path, split: str, labelled: bool, columns: Columns | None,
    repair: bool, say: Say,
) -> Examples:  # fmt: skip
    if path.is_dir():
        if settings.name in GLUE:
            name, split = resolve_split(settings.name, split)
            return list(read_glue(name, path, split, say))
        if settings.name == "race":
            return list(read_race(path, split, needs_answers=labelled))
        if settings.name.startswith("squad-"):
            path = _find(path, f"{split}-v{settings.name.removeprefix('squad-')}.json")
        elif settings.name == "ner":
            path = _find(path, split)
    if settings.name == "race":
        return list(read_race(path, "dev", needs_answers=labelled))
    if settings.kind == "qa" and _is_squad(path):
        return list(read_squad(path, needs_answers=labelled, repair=repair, say=say))
    table = {".csv", ".tsv", ".jsonl", ".parquet"} & set(path.suffixes)
    if settings.kind == "tag" and not table:
        return list(read_columns(path, needs_tags=labelled, say=say))
    found = read_own(path, settings.kind, columns, needs_labels=labelled, say=say)
    _tell_columns(path, found.guessed, say)
    return list(found.examples)


def _is_squad(path: Path) -> bool:
    return ".json" in path.suffixes and ".jsonl" not in path.suffixes


def _glue(name: str, folder: Path, say: Say) -> Data:
    row = GLUE[name]
    kind = "regress" if not row.labels else "classify" if len(row.texts) == 1 else "pair"
    settings = TaskSettings(name=name, kind=kind, metrics=row.metrics, labels=row.labels)
    splits = [split for split in row.files if split.startswith("dev")]
    dev = {split: list(read_glue(name, folder, split, say)) for split in splits}
    return Data(settings, list(read_glue(name, folder, "train", say)), dev)


def _squad(version: str) -> Callable[[Path, str, bool, Say], Data]:
    def read(folder: Path, level: str, repair: bool, say: Say) -> Data:
        impossible = version == "2.0"
        settings = TaskSettings(
            name=f"squad-{version}", kind="qa", length=384, stride=128, impossible=impossible,
            metrics=("best_f1", "best_exact") if impossible else ("f1", "exact"),
        )  # fmt: skip
        files = [_find(folder, f"{split}-v{version}.json") for split in ("train", "dev")]
        train, dev = (list(read_squad(f, version, repair=repair, say=say)) for f in files)
        return Data(settings, train, {"dev": dev})

    return read


def _race(folder: Path, level: str, repair: bool, say: Say) -> Data:
    train, dev = (list(read_race(folder, split, level)) for split in ("train", "dev"))
    settings = TaskSettings(
        name="race", kind="choice", metrics=("accuracy",), length=512, question_length=128
    )
    return Data(settings, train, {"dev": dev})


def _ner(folder: Path, level: str, repair: bool, say: Say) -> Data:
    files = [_find(folder, split) for split in ("train", "dev")]
    train, dev = (list(read_columns(file, say=say)) for file in files)
    for examples, file in zip((train, dev), files, strict=True):
        check_entities(examples, file)
    settings = TaskSettings(
        name="ner", kind="tag", metrics=("entity_f1", "accuracy"), labels=_tags(train)
    )
    check_dev(settings, dev, files[1])
    return Data(settings, train, {"dev": dev})


_PUBLISHED: dict[str, Callable[[Path, str, bool, Say], Data]] = {
    "squad-1.1": _squad("1.1"), "squad-2.0": _squad("2.0"), "race": _race, "ner": _ner,
}  # fmt: skip


def _find(folder: Path, name: str) -> Path:
    """A published file, plain or compressed; columns may end in .txt, .tsv or .conll."""
    for ending in ("", ".gz", ".xz", ".txt", ".tsv", ".conll"):
        if (folder / (name + ending)).is_file():
            return folder / (name + ending)
    raise FileError(f"{folder}: no file {name} (also looked for .gz, .xz, .txt, .tsv and .conll)")


# ------------------------------------------------------------------------------- own files


def _own(
    kind: str, train: Path, dev: Path | None, columns: Columns | None, repair: bool, say: Say
) -> Data:
    examples = _read_own(kind, train, columns, repair, say)
    if not examples:
        raise FormatError(f"{train}: holds no examples")
    if dev is None:
        examples, held = hold_out(examples, HELD_OUT, kind)
        say(f"{train}: {len(held):,} of {len(held) + len(examples):,} examples are held out as dev")
    else:
        held = _read_own(kind, dev, columns, repair, say)
    settings = _own_settings(kind, train, examples)
    check_dev(settings, held, dev or train)
    return Data(settings, examples, {"dev": held})


def _read_own(kind: str, path: Path, columns: Columns | None, repair: bool, say: Say) -> Examples:
    if kind == "qa" and _is_squad(path):
        return list(read_squad(path, repair=repair, say=say))
    if repair:
        raise SettingsError(f"--repair: {path} is not a SQuAD file, which it is for")
    found = read_own(path, kind, columns, say=say)
    _tell_columns(path, found.guessed, say)
    return list(found.examples)


def _own_settings(kind: Any, train: Path, examples: Examples) -> TaskSettings:
    labels: tuple[str, ...] = ()
    metrics = METRICS[kind]
    more: dict[str, Any] = {}
    if kind in ("classify", "pair"):
        labels = _labels([str(example.label) for example in examples], train)
    if kind == "tag":
        labels = _tags(examples)
        if are_entities(labels):
            metrics = ("entity_f1", "accuracy")
    if kind == "choice":
        more["options"] = len(examples[0].options)
    if kind == "qa":
        more |= {"impossible": any(one.impossible for one in examples), "length": 384}
        more["stride"] = 128
        if more["impossible"]:
            metrics = ("best_f1", "best_exact")
    return TaskSettings(name=kind, kind=kind, metrics=metrics, labels=labels, **more)


def hold_out(
    examples: Sequence[Example], share: float, kind: str = ""
) -> tuple[Examples, Examples]:
    """Train and dev, by a fixed shuffle; both have something in them.

    An example whose label occurs nowhere else is not held out: it could not be learned then.
    """
    order = list(range(len(examples)))
    random.Random(0).shuffle(order)
    count = max(1, round(share * len(examples)))
    if count >= len(examples):
        raise SettingsError("one example is too few: some are held out to measure on")
    held = set(order[:count])
    known = {label for i in order[count:] for label in labels_of(examples[i], kind)}
    held -= {i for i in held if not known.issuperset(labels_of(examples[i], kind))}
    if not held:
        raise SettingsError("every label occurs once; give examples to measure on with --dev")
    return (
        [example for i, example in enumerate(examples) if i not in held],
        [example for i, example in enumerate(examples) if i in held],
    )


def _labels(found: list[str], path: Path) -> tuple[str, ...]:
    """The labels in a fixed order: numbers by size, words by the alphabet."""
    distinct = set(found)
    if len(distinct) < 2:
        raise FormatError(f"{path}: all examples have the label {found[0]!r}; there must be two")
    if len(distinct) > MOST_LABELS:
        raise FormatError(
            f"{path}: {len(distinct):,} different labels; is this the right column "
            "(--column label=NAME), or a number to predict (--task regress)?"
        )
    if all(label.lstrip("-").isdecimal() for label in distinct):
        return tuple(sorted(distinct, key=int))
    return tuple(sorted(distinct))


def _tags(examples: Examples) -> tuple[str, ...]:
    """All tags, the one for nothing first."""
    found = {tag for example in examples for tag in example.tags or ()}
    return tuple(sorted(found, key=lambda tag: (tag != "O", tag)))


def _tell_columns(path: Path, guessed: dict[str, str], say: Say) -> None:
    if guessed:
        listed = ", ".join(f"{role} = {column!r}" for role, column in guessed.items())
        say(f"{path}: columns guessed by their names: {listed} (--column ROLE=NAME to change)")

"""GLUE's files, those of gluebenchmark.com.

Each task (glue_tasks.py) has its own columns, found by the names in the header; only CoLA's train
and dev have no header. Fields end at tabs and quotes are plain characters.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.base.errors import FileError, FormatError, SettingsError, did_you_mean
from litebert.reading.tables import parse_row, quoted_list
from litebert.tasks.classification import Classification, PairClassification
from litebert.tasks.published.glue_submission import (
    submission_file,
    submission_text,
    write_submission,
)
from litebert.tasks.published.glue_tasks import HIGHEST_SCORE, GlueTask, glue_task
from litebert.tasks.published.task import PublishedTask
from litebert.tasks.readers.text_file import Say, quiet, read_lines
from litebert.tasks.regression import Regression, ValuePrediction
from litebert.tasks.source import DataSource
from litebert.tasks.task import Task
from litebert.tasks.texts import TextExample, TextSettings


@dataclass(frozen=True)
class Glue(PublishedTask):
    """One of GLUE's tasks; a model of MNLI is also asked the diagnostic set, as its split `ax`."""

    name: str

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(split for split in glue_task(self.name).files if not split.startswith("test"))

    def settings(self, train: Sequence[TextExample]) -> TextSettings:
        row = glue_task(self.name)
        of_labels = Classification if len(row.texts) == 1 else PairClassification
        kind = of_labels.kind if row.labels else Regression.kind
        return TextSettings(name=self.name, kind=kind, metrics=row.metrics, labels=row.labels)

    def read(
        self, path: Path, split: str, source: DataSource, *, labelled: bool, say: Say
    ) -> list[TextExample]:
        name, split = self._meant(split)
        return read_glue(name, path, split, say)

    def write_submission(
        self, task: Task, predictions: Sequence[Any], path: Path, split: str, say: Say
    ) -> None:
        """The task's part of the zip, which grows task by task."""
        name, split = self._meant(split)
        answers = [
            (one.id, one.value if isinstance(one, ValuePrediction) else one.label)
            for one in predictions
        ]
        text = submission_text(name, answers)
        missing = write_submission(path, {submission_file(name, split): text})
        say(f"{path}: still without {', '.join(missing)}" if missing else f"{path}: complete")

    def _meant(self, split: str) -> tuple[str, str]:
        return ("ax", "test") if (self.name, split) == ("mnli", "ax") else (self.name, split)


def read_glue(name: str, folder: Path | str, split: str, say: Say = quiet) -> list[TextExample]:
    """The examples of one split: train, dev or test; MNLI has dev-mismatched and test-mismatched.

    `folder` holds the files, or the folders of several tasks. `say` is told of skipped rows.
    """
    task = glue_task(name)
    path = find_file(task, Path(folder), split)
    rows = _Rows(task, path, labelled=not split.startswith("test"))
    examples = rows.read()
    if rows.skipped:
        say(
            f"{path}: skipped {rows.skipped:,} of {rows.skipped + len(examples):,} rows, which are "
            "torn or empty in the published file"
        )
    return examples


def find_file(task: GlueTask, folder: Path, split: str) -> Path:
    """The file of a split, in the folder itself or in the task's folder below it."""
    if split not in task.files:
        raise SettingsError(
            f"{task.name} has no split {split!r}; {did_you_mean(split, task.files)}"
        )
    if not os.path.isdir(folder):
        raise FileError(f"{folder}: no such folder")
    file = task.files[split]
    below = (task.name, task.name.lower(), task.name.lower().replace("-", ""))
    for place in (*below, *task.other_folders, ""):
        if os.path.isfile(folder / place / file):
            return folder / place / file
    raise FileError(
        f"{folder}: holds neither {file} nor {task.name}/{file}; name the folder that the files of "
        "gluebenchmark.com were unpacked into"
    )


class _Rows:
    """The rows of one file; what its columns are is looked up once."""

    def __init__(self, task: GlueTask, path: Path, *, labelled: bool) -> None:
        self.task, self.path = task, path
        self.skips = task.skips_broken_rows and labelled
        # A submission needs every row, so broken ones are not skipped there but read as they are.
        self.may_be_empty = task.skips_broken_rows and not labelled
        self.skipped = 0
        lines = read_lines(path)
        if not lines:
            raise FormatError(f"{path}: empty; copy it again")
        unnamed = task.unnamed if labelled else ()
        self.header = list(unnamed) or _split(lines[0])
        self.first_line = 1 if unnamed else 2
        self.lines = lines[self.first_line - 1 :]
        self.texts = [self._place(column) for column in task.texts]
        self.label = self._place(task.label) if labelled else None
        # Only a submission needs the published index; MRPC, SST-2 and CoLA have it in test alone.
        has_id = task.id in self.header or not labelled
        self.id = self._place(task.id) if has_id else None

    def read(self) -> list[TextExample]:
        """All examples; broken rows are counted where they may be skipped."""
        examples = []
        for number, line in enumerate(self.lines):
            fields = _split(line)
            if self.skips and self._is_broken(fields):
                self.skipped += 1
            else:
                where = f"{self.path}, line {number + self.first_line:,}"
                examples.append(self._example(number, fields, where))
        return examples

    def _place(self, column: str) -> int:
        if column not in self.header:
            raise FormatError(
                f"{self.path}, line 1: no column {column!r}, which {self.task.name} has; there are "
                f"{quoted_list(self.header)}"
            )
        return self.header.index(column)

    def _is_broken(self, fields: list[str]) -> bool:
        if len(fields) != len(self.header):
            return True
        return not all(fields[place].strip() for place in self.texts)

    def _example(self, number: int, fields: list[str], where: str) -> TextExample:
        if len(fields) != len(self.header):
            raise FormatError(
                f"{where}: {len(fields)} fields between tabs, expected {len(self.header)} "
                f"({quoted_list(self.header)})"
            )
        texts = [self._text(fields, place, where) for place in self.texts]
        return TextExample(
            id=str(number) if self.id is None else fields[self.id],
            first=texts[0],
            second=texts[1] if len(texts) == 2 else None,
            label=None if self.label is None else _label(self.task, fields[self.label], where),
        )

    def _text(self, fields: list[str], place: int, where: str) -> str:
        # Stripped, because SST-2's train and dev end in a space and its test does not.
        text = fields[place].strip()
        if not text and not self.may_be_empty:
            raise FormatError(f"{where}: the column {self.header[place]!r} is empty")
        return text


def _split(line: str) -> list[str]:
    fields = parse_row(line, "tsv")
    assert fields is not None  # only quotes can be wrong, and TSV has none
    return fields


def _label(task: GlueTask, label: str, where: str) -> str | float:
    if task.labels and label not in task.labels:
        raise FormatError(
            f"{where}: unknown label {quoted_list((label,))}; {task.name} has "
            f"{quoted_list(task.labels)}"
        )
    if task.labels:
        return label
    try:
        score = float(label)
    except ValueError:
        score = math.nan
    if not 0 <= score <= HIGHEST_SCORE:
        raise FormatError(f"{where}: the score {quoted_list((label,))} is no number from 0 to 5")
    return score

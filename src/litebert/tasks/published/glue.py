"""GLUE: the nine tasks and the diagnostic set AX as rows of a table, and the reader of their files.

The files are those of gluebenchmark.com. Each task has its own columns, found by the names in the
header; only CoLA's train and dev have no header. Fields end at tabs and quotes are plain
characters. The second half of a submission is in `glue_submission.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from litebert.base.errors import FileError, FormatError, SettingsError, did_you_mean
from litebert.reading.tables import parse_row, shown
from litebert.tasks.examples import TextExample
from litebert.tasks.files.text_file import Say, quiet, read_lines

HIGHEST_SCORE = 5.0  # of STS-B; the lowest is 0
_FILES = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
_MNLI_LABELS = ("contradiction", "entailment", "neutral")
_ENTAILMENT = ("entailment", "not_entailment")
_BINARY = ("0", "1")
_TWO_SENTENCES = ("sentence1", "sentence2")


@dataclass(frozen=True)
class GlueTask:
    """Where a task's examples are, what its labels are, and how guesses are scored and sent in."""

    name: str  # as published; also its folder
    texts: tuple[str, ...]  # the columns of its one or two texts
    labels: tuple[str, ...]  # in their published order; none: a number from 0 to 5
    submissions: Mapping[str, str]  # split -> file of the submission
    metrics: tuple[str, ...] = ("accuracy",)
    label: str = "label"  # the column of the label in train and dev
    id: str = "index"  # the column that a submission names an example by
    files: Mapping[str, str] = field(default_factory=lambda: _FILES)  # split -> file
    other_folders: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()  # the columns of train and dev, if these have no header
    skips_broken_rows: bool = False


GLUE: dict[str, GlueTask] = {
    "cola": GlueTask(
        "CoLA",
        texts=("sentence",),
        labels=_BINARY,
        submissions={"test": "CoLA.tsv"},
        metrics=("matthews",),
        unnamed=("source", "label", "original_mark", "sentence"),
    ),
    "sst-2": GlueTask(
        "SST-2", texts=("sentence",), labels=_BINARY, submissions={"test": "SST-2.tsv"}
    ),
    "mrpc": GlueTask(
        "MRPC",
        texts=("#1 String", "#2 String"),
        labels=_BINARY,
        submissions={"test": "MRPC.tsv"},
        metrics=("f1", "accuracy"),
        label="Quality",
    ),
    "sts-b": GlueTask(
        "STS-B",
        texts=_TWO_SENTENCES,
        labels=(),
        submissions={"test": "STS-B.tsv"},
        metrics=("pearson", "spearman"),
        label="score",
    ),
    "qqp": GlueTask(
        "QQP",
        texts=("question1", "question2"),
        labels=_BINARY,
        submissions={"test": "QQP.tsv"},
        metrics=("f1", "accuracy"),
        label="is_duplicate",
        id="id",
        # A few published rows are torn by line ends inside a question; Google's code drops them.
        skips_broken_rows=True,
    ),
    "mnli": GlueTask(
        "MNLI",
        texts=_TWO_SENTENCES,
        labels=_MNLI_LABELS,
        submissions={"test": "MNLI-m.tsv", "test-mismatched": "MNLI-mm.tsv"},
        label="gold_label",
        files={
            "train": "train.tsv",
            "dev": "dev_matched.tsv",
            "dev-mismatched": "dev_mismatched.tsv",
            "test": "test_matched.tsv",
            "test-mismatched": "test_mismatched.tsv",
        },
    ),
    "qnli": GlueTask(
        "QNLI",
        texts=("question", "sentence"),
        labels=_ENTAILMENT,
        submissions={"test": "QNLI.tsv"},
    ),
    "rte": GlueTask(
        "RTE", texts=_TWO_SENTENCES, labels=_ENTAILMENT, submissions={"test": "RTE.tsv"}
    ),
    "wnli": GlueTask(
        "WNLI", texts=_TWO_SENTENCES, labels=_BINARY, submissions={"test": "WNLI.tsv"}
    ),
    "ax": GlueTask(  # nothing to learn from: a model of MNLI is asked
        "AX",
        texts=_TWO_SENTENCES,
        labels=_MNLI_LABELS,
        submissions={"test": "AX.tsv"},
        metrics=("matthews",),
        files={"test": "diagnostic.tsv"},
        other_folders=("diagnostic", "MNLI"),
    ),
}


def glue_task(name: str) -> GlueTask:
    """The row of a task."""
    if name.lower() not in GLUE:
        raise SettingsError(f"no GLUE task {name!r}; {did_you_mean(name.lower(), GLUE)}")
    return GLUE[name.lower()]


def resolve_split(name: str, split: str) -> tuple[str, str]:
    """The task and split whose files are meant: MNLI's `ax` is the diagnostic set's test split."""
    return ("ax", "test") if (name, split) == ("mnli", "ax") else (name, split)


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
    if not folder.is_dir():
        raise FileError(f"{folder}: no such folder")
    file = task.files[split]
    below = (task.name, task.name.lower(), task.name.lower().replace("-", ""))
    for place in (*below, *task.other_folders, ""):
        if (folder / place / file).is_file():
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
                f"{shown(self.header)}"
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
                f"({shown(self.header)})"
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
            f"{where}: unknown label {shown((label,))}; {task.name} has {shown(task.labels)}"
        )
    if task.labels:
        return label
    try:
        score = float(label)
    except ValueError:
        score = math.nan
    if not 0 <= score <= HIGHEST_SCORE:
        raise FormatError(f"{where}: the score {shown((label,))} is no number from 0 to 5")
    return score

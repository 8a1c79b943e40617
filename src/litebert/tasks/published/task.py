"""The contract of a published task, and the search for its files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from litebert.base.errors import FileError
from litebert.tasks.readers.splits import split_names
from litebert.tasks.readers.text_file import Say
from litebert.tasks.source import DataSource
from litebert.tasks.task import Task, TaskSettings


class PublishedTask(Protocol):
    """A task with files of its own. A method with a body is what most of them do."""

    reads_single_files: ClassVar[bool] = False  # a file alone has its format, not the kind's

    @property
    def splits(self) -> tuple[str, ...]:
        """Those with labels: train and what is evaluated on; none of a set that is only asked."""
        return ("train", "dev")

    def settings(self, train: Sequence[Any]) -> TaskSettings:
        """The settings of its kind, once the training examples are known."""
        ...

    def read(
        self, path: Path, split: str, source: DataSource, *, labelled: bool, say: Say
    ) -> list[Any]:
        """The examples of a split; `path` is the folder that its files were unpacked into."""
        ...

    def write_submission(
        self, task: Task, predictions: Sequence[Any], path: Path, split: str, say: Say
    ) -> None:
        """Predictions for a split in the official format."""
        task.write_submission(path, predictions)


def find_file(folder: Path, name: str) -> Path:
    """A published file, plain or compressed; columns may end in .txt, .tsv or .conll.

    A split may have another of its names: valid.txt is a dev set.
    """
    endings = ("", ".gz", ".xz", ".txt", ".tsv", ".conll", ".bio", ".iob", ".iob2")
    for stem in split_names(name):
        for ending in endings:
            if os.path.isfile(folder / (stem + ending)):
                return folder / (stem + ending)
    raise FileError(
        f"{folder}: no file {' or '.join(split_names(name))} (also looked for "
        f"{', '.join(endings[1:])})"
    )

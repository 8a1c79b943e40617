"""A user's own table: written, read as a kind of task, complained about."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from litebert.base.errors import LitebertError
from litebert.tasks.readers.column_mapping import ColumnMapping, GivenColumns
from litebert.tasks.readers.text_file import Say, quiet
from litebert.tasks.registry import find_kind


@dataclass(frozen=True)
class Found:
    """The examples of a table, the columns they came from, and those that nobody named."""

    examples: list[Any]
    columns: dict[str, str]
    guessed: dict[str, str]


def read_own(
    path: Path, kind: str, columns: GivenColumns | None = None, *, needs_labels: bool = True,
    say: Say = quiet,
) -> Found:  # fmt: skip
    given = ColumnMapping.build(columns)
    examples, found = find_kind(kind).read_table(path, given, labelled=needs_labels, say=say)
    return Found(examples, found.shown(), found.without(*given.columns).shown())


def save(folder: Path, content: str | list[dict[str, Any]], name: str = "mine.csv") -> Path:
    path = folder / name
    if name.endswith(".parquet"):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(content), path)
    elif isinstance(content, str):
        path.write_bytes(content.encode())
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in content))
    return path


def rows(folder: Path, kind: str, *content: dict[str, Any], **options: Any) -> list[Any]:
    """Examples out of JSON lines."""
    return read_own(save(folder, list(content), "mine.jsonl"), kind, **options).examples


def complaint(path: Path, kind: str, **options: Any) -> str:
    with pytest.raises(LitebertError) as error:
        read_own(path, kind, **options)
    assert "\n" not in str(error.value)
    return str(error.value)

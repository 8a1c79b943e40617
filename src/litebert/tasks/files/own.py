"""The user's own files: a table of examples for any kind of task.

classify  a text and its label              tag     words and their tags
pair      two texts and their label         qa      a question, a passage, an answer in it
regress   a text or two, and a number       choice  options of which one is the answer
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from litebert.base.errors import FormatError
from litebert.tasks.examples import Example, TaggedExample, TextExample
from litebert.tasks.files.json_content import kind_name, parse_json
from litebert.tasks.files.own_choices import read_choices
from litebert.tasks.files.own_questions import read_questions
from litebert.tasks.files.roles import KINDS, Columns, choose
from litebert.tasks.files.rows import Row, Table, name_of, read_table
from litebert.tasks.files.text_file import Say, quiet

__all__ = ["KINDS", "Columns", "OwnFile", "read_own"]

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)
_BRACKETED = re.compile(r"\[[\"'\d].*\]", re.DOTALL)


@dataclass(frozen=True)
class OwnFile:
    """The examples of a file, and the column that each role was read from."""

    examples: list[Example]
    columns: Columns
    guessed: dict[str, str]  # role -> column, for those that nobody named; to be said aloud


def read_own(
    path: Path | str,
    kind: str,
    columns: Columns | None = None,
    *,
    needs_labels: bool = True,
    say: Say = quiet,
) -> OwnFile:
    """The examples of a .csv, .tsv, .jsonl or .parquet file.

    Columns that are not given are guessed where it is obvious. Without `needs_labels` rows may come
    without labels, tags or answers. `say` is told of choices that were made for some rows.
    """
    given = columns or Columns()
    table = read_table(path)
    kind, chosen = choose(str(path), kind, table.columns, given, needs_labels=needs_labels)
    ids = _ids(table, chosen.id, bool(given.id), say)
    if ids is None:
        chosen = chosen.model_copy(update={"id": ""})
        ids = [str(number) for number in range(len(table.rows))]
    examples = _READERS[kind](table, ids, chosen, needs_labels, say)
    told = given.chosen()
    guessed = {role: name for role, name in chosen.chosen().items() if role not in told}
    return OwnFile(examples, chosen, guessed)


def _ids(table: Table, column: str, told: bool, say: Say) -> list[str] | None:
    """The ids of all rows, if there are any and they are unique; else rows are to be counted."""
    if not column:
        return None
    seen: dict[str, str] = {}
    for row in table.rows:
        id = row.name(column)
        if id is not None and id not in seen:
            seen[id] = row.where
            continue
        problem = "is empty" if id is None else f"{id!r} occurs twice (before: {seen[id]})"
        message = f"{row.where}: the id in {column!r} {problem}"
        if told:
            raise FormatError(f"{message}; make it unique, or name another column")
        say(f"{message}; rows are counted from 0 instead")
        return None
    return list(seen)


def _read_texts(
    label_of: Callable[[Row, str, bool], str | float | None],
    table: Table,
    ids: list[str],
    columns: Columns,
    needs_labels: bool,
    say: Say,
) -> list[Example]:
    first = columns.text or columns.text_a
    return [
        TextExample(
            id=id,
            first=row.text(first),
            second=row.text(columns.text_b) if columns.text_b else None,
            label=label_of(row, columns.label, needs_labels),
            where=row.where,
        )
        for id, row in zip(ids, table.rows, strict=True)
    ]


def _label(row: Row, column: str, needed: bool) -> str | None:
    label = row.name(column) if column else None
    if label is None and needed:
        raise FormatError(f"{row.where}: {column!r} is empty; every row needs its label")
    return label


def _score(row: Row, column: str, needed: bool) -> float | None:
    label = _label(row, column, needed)
    if label is None:
        return None
    score = float(label) if _NUMBER.fullmatch(label) else math.inf
    if not math.isfinite(score):
        raise FormatError(f"{row.where}: {column!r} is {label!r}, expected a number")
    return score


def _read_tagged(
    table: Table, ids: list[str], columns: Columns, needs_labels: bool, say: Say
) -> list[Example]:
    return [
        _tagged(id, row, columns, needs_labels) for id, row in zip(ids, table.rows, strict=True)
    ]


def _tagged(id: str, row: Row, columns: Columns, needs_tags: bool) -> TaggedExample:
    words = _names(row, columns.words)
    tags = _names(row, columns.tags) if columns.tags else None
    if not words:
        raise FormatError(f"{row.where}: {columns.words!r} is empty")
    if not tags and not needs_tags:
        return TaggedExample(id, words, where=row.where)
    if len(words) != len(tags or ()):
        raise FormatError(
            f"{row.where}: {len(words)} words in {columns.words!r}, {len(tags or ())} tags in "
            f"{columns.tags!r}; every word needs one"
        )
    return TaggedExample(id, words, tags, row.where)


def _names(row: Row, column: str) -> tuple[str, ...]:
    """Words or tags: a list, a list written as JSON, or text with spaces between them."""
    value: Any = row.values.get(column)
    where = f"{row.where}: {column!r}"
    if isinstance(value, str):
        value = _listed(value, where)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise FormatError(f"{where} is neither a list nor text but {kind_name(value)}")
    names = tuple(name_of(one, f"{where}, number {n}") for n, one in enumerate(value, 1))
    for number, name in enumerate(names, 1):
        if not name.strip():
            raise FormatError(f"{where}, number {number}: empty")
    return names


def _listed(text: str, where: str) -> list[Any]:
    text = text.strip()
    if not _BRACKETED.fullmatch(text):
        return text.split()
    if not text.startswith("['"):
        with suppress(FormatError):
            return parse_json(text, where, numbers_as_text=True)
    raise FormatError(
        f"{where} looks like a list that Python has printed; write a list of JSON, or put spaces "
        "between the words"
    )


_Reader = Callable[[Table, list[str], Columns, bool, Say], list[Example]]
_READERS: dict[str, _Reader] = {
    "classify": partial(_read_texts, _label),
    "pair": partial(_read_texts, _label),
    "regress": partial(_read_texts, _score),
    "regress pair": partial(_read_texts, _score),
    "tag": _read_tagged,
    "qa": read_questions,
    "choice": read_choices,
}

"""Sentences with tags: an example, and how it is read from a row of a table."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from litebert.base.errors import FormatError
from litebert.tasks.readers.json_content import kind_name, parse_json
from litebert.tasks.readers.rows import Row, name_of

_BRACKETED = re.compile(r"\[[\"'\d].*\]", re.DOTALL)


@dataclass(frozen=True)
class TaggedExample:
    """Words, each with a tag."""

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    where: str = field(default="", compare=False)
    offsets: tuple[tuple[int, int], ...] | None = None  # of the words in a plain text


def tagged(row: Row, labelled: bool) -> TaggedExample:
    """The example of a row."""
    words, tags = _names(row, "words"), _names(row, "tags")
    if not words:
        raise FormatError(f"{row.place('words')} is empty")
    if not tags and not labelled:
        return TaggedExample(row.id, words, where=row.where)
    if len(words) != len(tags):
        raise FormatError(
            f"{row.where}: {len(words)} words in {row.columns['words']!r}, {len(tags)} tags in "
            f"{row.columns['tags']!r}; every word needs one"
        )
    return TaggedExample(row.id, words, tags, row.where)


def _names(row: Row, role: str) -> tuple[str, ...]:
    """Words or tags: a list, a list written as JSON, or text with spaces between them."""
    value, where = row.get(role), row.place(role)
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

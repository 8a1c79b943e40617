"""Tagged words in columns, as the CoNLL shared tasks write them.

EU      NNP  B-NP  B-ORG        a word a line, first; its tag last
rejects VBZ  B-VP  O
                                a blank line between sentences
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from litebert.base.errors import FormatError
from litebert.tasks.readers.text_file import Say, quiet, read_lines

DOCUMENT_START = "-DOCSTART-"
_SPACES = re.compile(" +")
_LANGUAGE = re.compile(r"((?:[a-z]{2,3}|simple)(?:-[a-z]+)*:).")  # WikiANN's, of Wikipedia's names

Row = tuple[str, ...]


class Sentence(NamedTuple):
    """Words, and their tags where the file has them; `where` is its first line, for messages."""

    where: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None


def read_conll(path: Path | str, *, needs_tags: bool = True, say: Say = quiet) -> list[Sentence]:
    """The sentences of a file; without `needs_tags` it may hold words alone.

    Columns end at tabs, or at spaces if the first row has no tab. Lines of `-DOCSTART-` are
    dropped, and so is a language before every word (WikiANN's `en:`), of which `say` is told.
    """
    found = list(_sentences(path))
    sentences = [rows for _, rows in found]
    if not sentences:
        raise FormatError(f"{path}: no sentence in it")
    tagged = len(sentences[0][0]) > 1
    if needs_tags and not tagged:
        raise FormatError(
            f"{path}: one column only; there must be a word first and its tag last in a line"
        )
    prefix = _prefix(sentences)
    if prefix:
        say(f"{path}: removed {prefix!r} from the start of every word")
    return [
        Sentence(
            where=f"{path}, line {line:,}",
            words=tuple(row[0].removeprefix(prefix) for row in rows),
            tags=tuple(row[-1] for row in rows) if tagged else None,
        )
        for line, rows in found
    ]


def _sentences(path: Path | str) -> Iterator[tuple[int, list[Row]]]:
    """Each sentence with the line that it begins in."""
    first, rows = 0, list[Row]()
    for line, row in _rows(path):
        if row:
            first = first if rows else line
            rows.append(row)
        elif rows:
            yield first, rows
            rows = []
    if rows:
        yield first, rows


def _rows(path: Path | str) -> Iterator[tuple[int, Row]]:
    """The rows of a file with their lines; an empty one ends a sentence."""
    first: Row = ()
    tabs = False
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            yield number, ()
            continue
        tabs = "\t" in line if not first else tabs
        row = tuple(line.split("\t") if tabs else _SPACES.split(line.strip(" ")))
        if row[0] == DOCUMENT_START:
            yield number, ()
            continue
        first = first or row
        _check(row, first, f"{path}, line {number:,}")
        yield number, row


def _check(row: Row, first: Row, where: str) -> None:
    if len(row) != len(first):
        raise FormatError(
            f"{where}: {len(row)} columns, the first row has {len(first)}; every line needs as many"
        )
    if not row[0].strip() or not row[-1].strip():
        raise FormatError(f"{where}: the {'tag' if row[0].strip() else 'word'} is empty")


def _prefix(sentences: list[list[Row]]) -> str:
    """The language in front of every word, if there is one."""
    found = _LANGUAGE.match(sentences[0][0][0])
    if not found:
        return ""
    prefix = found[1]
    everywhere = all(
        row[0].startswith(prefix) and len(row[0]) > len(prefix)
        for rows in sentences
        for row in rows
    )
    return prefix if everywhere else ""

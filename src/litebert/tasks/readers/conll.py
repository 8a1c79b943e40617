"""Tagged words in columns, as the CoNLL shared tasks write them.

EU      NNP  B-NP  B-ORG        a word a line, first; its tag last
rejects VBZ  B-VP  O
                                a blank line between sentences

Or other columns, by their numbers: CoNLL-U has words in 1 and parts of speech in 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from litebert.base.errors import FormatError
from litebert.tasks.readers.text_file import Say, quiet, read_lines

DOCUMENT_START = "-DOCSTART-"
WORDS, TAGS = 0, -1  # the columns, where nobody says which
_SPACES = re.compile(" +")
_TAG = re.compile(r"O|[BIESLUM]-\S+|[^a-z]+")  # as in the last column of a line that is no prose
_LANGUAGE = re.compile(r"((?:[a-z]{2,3}|simple)(?:-[a-z]+)*:).")  # WikiANN's, of Wikipedia's names

Row = tuple[str, ...]


class Sentence(NamedTuple):
    """Words, and their tags where the file has them; `where` is its first line, for messages."""

    where: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None


def read_conll(
    path: Path | str, *, needs_tags: bool = True, columns: tuple[int, int] = (WORDS, TAGS),
    say: Say = quiet,
) -> list[Sentence]:  # fmt: skip
    """The sentences of a file; without `needs_tags` it may hold words alone.

    Columns end at tabs, or at spaces if the first row has no tab. Lines of `-DOCSTART-` are
    dropped, and so are comments and a language before every word (WikiANN's `en:`), of which `say`
    is told.
    """
    found = list(_sentences(path, say))
    sentences = [rows for _, rows in found]
    if not sentences:
        raise FormatError(f"{path}: no sentence in it")
    width = len(sentences[0][0])
    tagged = width > 1
    if needs_tags and not tagged:
        raise FormatError(
            f"{path}: one column only; there must be a word first and its tag last in a line"
        )
    words, tags = columns if tagged else (WORDS, TAGS)
    if not all(-width <= place < width for place in (words, tags)):
        raise FormatError(f"{path}: {width} columns, numbered from 0; there is no {max(columns)}")
    prefix = _prefix(sentences, words)
    if prefix:
        say(f"{path}: removed {prefix!r} from the start of every word")
    return [
        Sentence(
            where=f"{path}, line {line:,}",
            words=tuple(row[words].removeprefix(prefix) for row in rows),
            tags=tuple(row[tags] for row in rows) if tagged else None,
        )
        for line, rows in found
    ]


def are_columns(lines: Sequence[str]) -> bool:
    """Whether lines are words in columns, rather than a sentence each.

    They are if they have tabs, or a single word each, or as many fields and a tag as the last.
    """
    rows = [line.split() for line in lines if line.strip() and not line.startswith(DOCUMENT_START)]
    if any("\t" in line for line in lines[:1]) or all(len(row) == 1 for row in rows):
        return True
    return len({len(row) for row in rows}) == 1 and all(_TAG.fullmatch(row[-1]) for row in rows)


def _sentences(path: Path | str, say: Say) -> Iterator[tuple[int, list[Row]]]:
    """Each sentence with the line that it begins in."""
    first, rows = 0, list[Row]()
    for line, row in _rows(path, say):
        if row:
            first = first if rows else line
            rows.append(row)
        elif rows:
            yield first, rows
            rows = []
    if rows:
        yield first, rows


def _rows(path: Path | str, say: Say) -> Iterator[tuple[int, Row]]:
    """The rows of a file with their lines; an empty one ends a sentence."""
    lines = read_lines(path)
    words = (line for line in lines if line.strip() and not line.startswith(("#", DOCUMENT_START)))
    first = next(words, next((line for line in lines if line.strip()), ""))
    tabs = "\t" in first
    width, comments, inside = len(_split(first, tabs)), 0, False
    for number, line in enumerate(lines, 1):
        row = _split(line, tabs) if line.strip() else ()
        if row and row[0] == DOCUMENT_START:
            row = ()
        elif line.startswith("#") and not inside and (len(row) != width or " = " in line):
            comments += 1
            continue
        inside = bool(row)
        if row:
            _check(row, width, f"{path}, line {number:,}")
        yield number, row
    if comments:
        say(f"{path}: {comments:,} lines of comments are left out")


def _split(line: str, tabs: bool) -> Row:
    return tuple(line.split("\t") if tabs else _SPACES.split(line.strip(" ")))


def _check(row: Row, width: int, where: str) -> None:
    if len(row) != width:
        raise FormatError(
            f"{where}: {len(row)} columns, the first row has {width}; every line needs as many"
        )
    if not row[0].strip() or not row[-1].strip():
        raise FormatError(f"{where}: the {'tag' if row[0].strip() else 'word'} is empty")


def _prefix(sentences: list[list[Row]], words: int) -> str:
    """The language in front of every word, if there is one."""
    found = _LANGUAGE.match(sentences[0][0][words])
    if not found:
        return ""
    prefix = found[1]
    everywhere = all(
        row[words].startswith(prefix) and len(row[words]) > len(prefix)
        for rows in sentences
        for row in rows
    )
    return prefix if everywhere else ""

"""Options and the right one among them, out of the user's table.

The right one may be told by its text, by a letter (A is the first) or by a number from 0 or from 1;
all rows of a file tell it in the same way, so that all of them together decide which way it is.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from litebert.base.errors import FormatError
from litebert.reading.tables import shown
from litebert.tasks.examples import ChoiceExample, Example
from litebert.tasks.files.json_content import kind_name, parse_json
from litebert.tasks.files.roles import Columns
from litebert.tasks.files.rows import Row, Table
from litebert.tasks.files.text_file import Say

TEXT, LETTER = "its text", "its letter"
FROM_0, FROM_1 = "its number from 0", "its number from 1"
NO_WAY = "text, letter or number"

Options = tuple[str, ...]


def read_choices(
    table: Table, ids: list[str], columns: Columns, needs_answers: bool, say: Say
) -> list[Example]:
    """A choice for each row; `say` is told how the right option is told."""
    if not columns.passage and not columns.question:
        raise FormatError(
            f"{table.path}: neither a question nor a passage; there are {shown(table.columns)}; "
            "say which with `--column question=NAME`"
        )
    options = [_options(row, columns.options) for row in table.rows]
    for row, one in zip(table.rows, options, strict=True):
        if len(one) != len(options[0]):
            raise FormatError(f"{row.where}: {len(one)} options, the first row {len(options[0])}")
    answers = _answers(table, options, columns.answer, needs_answers, say)
    return [
        ChoiceExample(
            id=id,
            passage=row.text(columns.passage) if columns.passage else "",
            question=row.text(columns.question) if columns.question else "",
            options=one,
            answer=answer,
            where=row.where,
        )
        for id, row, one, answer in zip(ids, table.rows, options, answers, strict=True)
    ]


def _options(row: Row, columns: Sequence[str]) -> Options:
    if len(columns) > 1:
        return tuple(row.text(column) for column in columns)
    return _option_list(row.values.get(columns[0]), f"{row.where}: {columns[0]!r}")


def _option_list(value: Any, where: str) -> Options:
    if type(value) is str and value.lstrip().startswith("["):
        value = parse_json(value, where, numbers_as_text=True)
    if not isinstance(value, list):
        raise FormatError(f"{where} is not a list of options but {kind_name(value)}")
    if len(value) < 2:
        raise FormatError(f"{where}: {len(value)} options; there must be two or more")
    for number, option in enumerate(value, 1):
        if not isinstance(option, str) or not option.strip():
            raise FormatError(f"{where}: option {number} is empty or not text")
    return tuple(str(option).strip() for option in value)


def _answers(
    table: Table, options: list[Options], column: str, needed: bool, say: Say
) -> list[int | None]:
    told = [row.name(column) if column else None for row in table.rows]
    for row, answer in zip(table.rows, told, strict=True):
        if answer is None and needed:
            raise FormatError(f"{row.where}: {column!r} is empty; every row needs its answer")
    answers: list[int | None] = [None] * len(told)
    answered = [number for number, answer in enumerate(told) if answer is not None]
    if not answered:
        return answers
    way = _way(table.path, [(told[number] or "", options[number]) for number in answered])
    for number in answered:
        answers[number] = _place(way, told[number] or "", options[number])
        if answers[number] is None:
            raise FormatError(
                f"{table.rows[number].where}: {column!r} is {shown((told[number] or '',))}, which "
                f"is none of the {len(options[number])} options by {way}"
            )
    say(f"{table.path}: {column!r} tells the right option by {way}")
    return answers


def _place(way: str, answer: str, options: Options) -> int | None:
    """The option that an answer means if it is told in this way."""
    answer, place = answer.strip(), -1
    if way == TEXT:
        return options.index(answer) if options.count(answer) == 1 else None
    if way == LETTER and len(answer) == 1:
        place = string.ascii_uppercase.find(answer.upper())
    if way in (FROM_0, FROM_1) and answer.isascii() and answer.isdigit() and len(answer) < 4:
        place = int(answer) - (way == FROM_1)
    return place if 0 <= place < len(options) else None


def _way(path: str, rows: list[tuple[str, Options]]) -> str:
    """The one way that fits all rows; if none does, the one that fits most, for the message."""
    meant = {way: [_place(way, *row) for row in rows] for way in (TEXT, LETTER, FROM_0, FROM_1)}
    fitting = [way for way, places in meant.items() if None not in places]
    if len({tuple(meant[way]) for way in fitting}) > 1:
        raise FormatError(
            f"{path}: the right options could be told by {' or by '.join(fitting)}; "
            "write letters (A for the first) instead"
        )
    misses = {way: places.count(None) for way, places in meant.items()}
    best = min(misses, key=lambda way: misses[way])
    return best if misses[best] < len(rows) else NO_WAY

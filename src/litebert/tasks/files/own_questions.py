"""Questions and their answers out of the user's table.

An answer is text, a list of texts, or what Hugging Face's `squad` holds (an object of two lists,
`text` and `answer_start`), with or without its place; an empty list says that there is no answer.
"""

from __future__ import annotations

from typing import Any

from litebert.base.errors import FormatError
from litebert.reading.tables import shown
from litebert.tasks.examples import Answer, Example, QuestionExample
from litebert.tasks.files.json_content import NumberText, kind_name
from litebert.tasks.files.roles import Columns
from litebert.tasks.files.rows import Row, Table
from litebert.tasks.files.text_file import Say

_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def read_questions(
    table: Table, ids: list[str], columns: Columns, needs_answers: bool, say: Say
) -> list[Example]:
    """A question for each row; `say` is told where an answer was found in several places."""
    several: list[str] = []
    examples: list[Example] = [
        _question(id, row, columns, needs_answers, several)
        for id, row in zip(ids, table.rows, strict=True)
    ]
    if several:
        say(
            f"{several[0]} is in its passage several times ({len(several):,} such in this file); "
            "the first place is taken: give answer_start to choose another"
        )
    return examples


def _question(
    id: str, row: Row, columns: Columns, needs_answers: bool, several: list[str]
) -> QuestionExample:
    question = row.text(columns.question)
    row.text(columns.passage)  # a passage stays as it is, because of the places of its answers
    passage = row.values[columns.passage]
    value = row.values.get(columns.answer) if columns.answer else None
    found = [
        _place(text, start, passage, row.where, several)
        for text, start in _answers(value, row, columns)
    ]
    impossible = _impossible(row, columns.impossible)
    if impossible is None and (found or _is_empty_list(value)):
        impossible = not found
    if impossible and found:
        raise FormatError(f"{row.where}: marked as impossible to answer, and has an answer")
    if needs_answers and not found and not impossible:
        raise FormatError(
            f"{row.where}: {columns.answer!r} is empty; where there is no answer, say so in a "
            "column 'is_impossible'"
        )
    return QuestionExample(id, question, passage, tuple(found), impossible)


def _impossible(row: Row, column: str) -> bool | None:
    mark = row.name(column) if column else None
    if mark is None:
        return None
    if mark.lower() not in _TRUTH:
        raise FormatError(f"{row.where}: {column!r} is {shown((mark,))}, expected true or false")
    return _TRUTH[mark.lower()]


def _is_empty_list(value: Any) -> bool:
    texts = value.get("text") if isinstance(value, dict) else value
    return isinstance(texts, list) and not texts


def _answers(value: Any, row: Row, columns: Columns) -> list[tuple[str, int | None]]:
    """Texts and places, whatever shape they come in."""
    starts = row.values.get(columns.answer_start) if columns.answer_start else None
    if isinstance(value, dict):
        value, starts = value.get("text"), value.get("answer_start")
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        starts = [one.get("answer_start") for one in value]
        value = [one.get("text") for one in value]
    if value is None or (isinstance(value, str) and not value.strip()):
        return []
    texts = value if isinstance(value, list) else [value]
    starts = starts if isinstance(starts, list) else [starts] * len(texts)
    if len(starts) != len(texts):
        raise FormatError(f"{row.where}: {len(texts)} answers and {len(starts)} places of answers")
    return [_pair(text, start, row.where) for text, start in zip(texts, starts, strict=True)]


def _pair(text: Any, start: Any, where: str) -> tuple[str, int | None]:
    if not isinstance(text, str) or isinstance(text, NumberText):
        raise FormatError(f"{where}: an answer is not text but {kind_name(text)}")
    if not text.strip():
        raise FormatError(f"{where}: an answer is empty")
    if start is None or start == "":
        return text, None
    digits = str(start).strip()
    if isinstance(start, bool) or not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise FormatError(f"{where}: the place of an answer is {start!r}, expected a whole number")
    return text, int(digits)


def _place(text: str, start: int | None, passage: str, where: str, several: list[str]) -> Answer:
    if start is not None:
        if passage.startswith(text, start):
            return Answer(text, start)
        raise FormatError(
            f"{where}: the answer {shown((text,))} is not at character {start:,} of its passage; "
            "correct the place, or leave it out to have the answer looked for"
        )
    text = text if text in passage else text.strip()
    place = passage.find(text)
    if place < 0:
        raise FormatError(f"{where}: the answer {shown((text,))} is not in its passage")
    if passage.find(text, place + 1) >= 0:
        several.append(f"{where}: the answer {shown((text,))}")
    return Answer(text, place)

"""Questions about passages, out of SQuAD's JSON or a user's table, and SQuAD's predictions.

    data: [{title, paragraphs: [{context, qas: [{id, question, answers: [{text, answer_start}]}]}]}]

SQuAD 2.0 adds `is_impossible`; its `plausible_answers` are wrong answers and are not read. In a
table an answer is text, a list of texts, or what Hugging Face's `squad` holds (an object of two
lists, `text` and `answer_start`), with or without its place; an empty list says that there is none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from litebert.base.errors import FormatError, SettingsError, did_you_mean
from litebert.base.files import json_text, write_atomic
from litebert.reading.tables import quoted_list
from litebert.tasks.metrics.squad import normalize_answer
from litebert.tasks.readers.column_mapping import ID, Role, role
from litebert.tasks.readers.json_content import (
    NumberText,
    as_kind,
    kind_name,
    parse_object,
    required,
    text_field,
)
from litebert.tasks.readers.rows import Row, Table
from litebert.tasks.readers.text_file import Say, quiet, read_text

_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s)|$)", re.DOTALL)
VERSIONS = ("1.1", "2.0")
PREDICTIONS = "predictions.json"
NULL_ODDS = "null_odds.json"
ROLES: tuple[Role, ...] = (
    role("question", "question query"),
    role("passage", "context passage paragraph article"),
    ID,
    role("answer_start", "answer_start", "never"),
    role("impossible", "is_impossible impossible", "never"),
    role("answer", "answer answers", "labelled"),
)
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True)
class Answer:
    """A part of a passage: passage[start : start + len(text)] == text."""

    text: str
    start: int


@dataclass(frozen=True)
class QuestionExample:
    """A question about a passage. No answers and `impossible`: the passage does not tell."""

    id: str
    question: str
    passage: str
    answers: tuple[Answer, ...] = ()
    impossible: bool | None = None  # None where it is not known
    where: str = field(default="", compare=False)


def gold_answers(examples: Iterable[QuestionExample]) -> dict[str, tuple[str, ...]]:
    """The texts of all answers, by question."""
    return {example.id: tuple(answer.text for answer in example.answers) for example in examples}


# ----------------------------------------------------------------------------------- SQuAD's JSON


def read_squad(
    path: Path | str,
    version: str | None = None,
    *,
    needs_answers: bool = True,
    repair: bool = False,
    say: Say = quiet,
) -> list[QuestionExample]:
    """The questions of a file, plain or compressed, with every answer checked to be in its place.

    `version` refuses a file of the other one. With `repair` an answer that is not at its offset,
    but elsewhere in its paragraph, is moved to the nearest place; `say` is told how many. Without
    `needs_answers` a question may come without answers, to be predicted.
    """
    content = parse_object(read_text(path), str(path))
    reader = _Reader(_version(content, version, str(path)), needs_answers)
    examples = []
    for where, passage, question in _questions(content, str(path)):
        examples.append(reader.example(where, passage, question))
    if reader.moved and not repair:
        raise FormatError(
            f"{reader.moved[0]} is not at its offset, but elsewhere in its paragraph "
            f"({len(reader.moved):,} such in this file); `--repair` moves them to the nearest place"
        )
    if reader.moved:
        say(
            f"{path}: moved {len(reader.moved):,} answers to the nearest place where they are found"
        )
    return examples


def is_squad(path: Path | str) -> bool:
    """Whether a JSON file has SQuAD's articles, or is a table of questions."""
    text = read_text(path)
    return '"paragraphs"' in text or not ('"question"' in text or text.lstrip().startswith("["))


def _version(content: dict[str, Any], wanted: str | None, path: str) -> str | None:
    """The version to hold the questions to: the one asked for, or the one the file claims."""
    if wanted is not None and wanted not in VERSIONS:
        raise SettingsError(f"no SQuAD version {wanted!r}; {did_you_mean(wanted, VERSIONS)}")
    claimed = str(content.get("version")).removeprefix("v")
    if wanted is not None and claimed in VERSIONS and claimed != wanted:
        raise FormatError(f"{path}: holds SQuAD {claimed}, {wanted} was asked for")
    return wanted or (claimed if claimed in VERSIONS else None)


def _questions(content: dict[str, Any], path: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every question with its passage and the place to name it by: file and article."""
    for number, article in enumerate(required(content, "data", list, path), 1):
        where = f"{path}, article {number:,}"
        article = as_kind(article, dict, where)
        if isinstance(title := article.get("title"), str):
            where = f"{path}, article {quoted_list((title,))}"
        paragraphs = required(article, "paragraphs", list, where)
        for place, paragraph in enumerate(paragraphs, 1):
            in_article = f"{where}, paragraph {place:,}"
            paragraph = as_kind(paragraph, dict, in_article)
            passage = text_field(paragraph, "context", in_article)
            for question in required(paragraph, "qas", list, in_article):
                yield in_article, passage, as_kind(question, dict, f"{in_article}, a question")


@dataclass
class _Reader:
    """Makes examples, and remembers the ids and the answers out of place."""

    version: str | None
    needs_answers: bool
    ids: set[str] = field(default_factory=set)
    moved: list[str] = field(default_factory=list)

    def example(self, where: str, passage: str, question: dict[str, Any]) -> QuestionExample:
        """One question; `where` is the place of its paragraph."""
        id = text_field(question, "id", f"{where}, a question")
        where = f"{where}, question {quoted_list((id,))}"
        if id in self.ids:
            raise FormatError(f"{where}: the id occurs twice in this file; make it unique")
        self.ids.add(id)
        answers = self._answers(question, passage, where)
        return QuestionExample(
            id=id,
            question=text_field(question, "question", where).strip(),
            passage=passage,
            answers=answers,
            impossible=self._impossible(question, answers, where),
            where=where,
        )

    def _answers(self, question: dict[str, Any], passage: str, where: str) -> tuple[Answer, ...]:
        if "answers" not in question and not self.needs_answers:
            return ()
        answers = required(question, "answers", list, where)
        return tuple(self._answer(one, passage, where) for one in answers)

    def _answer(self, content: Any, passage: str, where: str) -> Answer:
        content = as_kind(content, dict, f"{where}, an answer")
        text = text_field(content, "text", f"{where}, an answer")
        start = required(content, "answer_start", int, f"{where}, an answer")
        if start >= 0 and passage.startswith(text, start):
            return Answer(text, start)
        place = nearest(text, passage, start)
        if place is None:
            raise FormatError(
                f"{where}: the answer {quoted_list((text,))} is nowhere in its paragraph; "
                "correct its white space or its letters"
            )
        self.moved.append(f"{where}: the answer {quoted_list((text,))}")
        return Answer(text, place)

    def _impossible(
        self, question: dict[str, Any], answers: tuple[Answer, ...], where: str
    ) -> bool | None:
        if "is_impossible" in question:
            impossible = required(question, "is_impossible", bool, where)
        elif answers:
            impossible = False
        elif self.needs_answers:
            raise FormatError(f"{where}: no answer, and not marked by 'is_impossible'")
        else:
            return None
        if impossible and self.version == "1.1":
            raise FormatError(f"{where}: impossible to answer, as only SQuAD 2.0 has it")
        if impossible and answers:
            raise FormatError(f"{where}: marked as impossible to answer, and has an answer")
        if not impossible and not answers and self.needs_answers:
            raise FormatError(f"{where}: marked as possible to answer, and has no answer")
        return impossible


def nearest(text: str, passage: str, start: int) -> int | None:
    """The place of a text in a passage that is nearest to `start`; the earlier of two."""
    start = max(0, min(start, len(passage)))
    before = passage.rfind(text, 0, start + len(text))
    after = passage.find(text, start)
    if before < 0 or after < 0:
        return max(before, after) if max(before, after) >= 0 else None
    return before if start - before <= after - start else after


def write_predictions(
    folder: Path | str, answers: Mapping[str, str], null_odds: Mapping[str, float] | None = None
) -> None:
    """Write what the official scorers read: predictions.json, and null_odds.json for SQuAD 2.0.

    Both go from question id to a value: the text of the answer, empty for none; and how much more
    likely no answer is than the best one.
    """
    odds = dict(null_odds or {})
    assert all(math.isfinite(value) for value in odds.values())
    Path(folder).mkdir(exist_ok=True)
    write_atomic(Path(folder) / PREDICTIONS, json_text(dict(answers)).encode())
    if null_odds is not None:
        write_atomic(Path(folder) / NULL_ODDS, json_text(odds).encode())


# ------------------------------------------------------------------------------- cells of a table


def questions_of(table: Table, *, needs_answers: bool, say: Say) -> list[QuestionExample]:
    """A question for each row; `say` is told where an answer was found in several places."""
    several: list[str] = []
    examples = [_question(row, needs_answers, several) for row in table.rows]
    if several:
        say(
            f"{several[0]} is in its passage several times ({len(several):,} such in this file); "
            "the first place is taken: give answer_start to choose another"
        )
    return examples


def _question(row: Row, needs_answers: bool, several: list[str]) -> QuestionExample:
    question = row.text("question")
    row.text("passage")  # a passage stays as it is, because of the places of its answers
    passage, value = row.get("passage"), row.get("answer")
    found = [
        _place(text, start, passage, row.where, several) for text, start in _answers(value, row)
    ]
    impossible = _impossible(row)
    if impossible is None and (found or _is_empty_list(value)):
        impossible = not found
    if impossible and found:
        raise FormatError(f"{row.where}: marked as impossible to answer, and has an answer")
    if needs_answers and not found and not impossible:
        raise FormatError(
            f"{row.place('answer')} is empty; where there is no answer, say so in a "
            "column 'is_impossible'"
        )
    return QuestionExample(row.id, question, passage, tuple(found), impossible, row.where)


def _impossible(row: Row) -> bool | None:
    mark = row.name("impossible")
    if mark is None:
        return None
    if mark.lower() not in _TRUTH:
        raise FormatError(
            f"{row.place('impossible')} is {quoted_list((mark,))}, expected true or false"
        )
    return _TRUTH[mark.lower()]


def _is_empty_list(value: Any) -> bool:
    texts = value.get("text") if isinstance(value, dict) else value
    return isinstance(texts, list) and not texts


def _answers(value: Any, row: Row) -> list[tuple[str, int | None]]:
    """Texts and places, whatever shape they come in."""
    starts = row.get("answer_start")
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
            f"{where}: the answer {quoted_list((text,))} is not at character {start:,} of its "
            "passage; correct the place, or leave it out to have the answer looked for"
        )
    text = text if text in passage else text.strip()
    place = passage.find(text)
    if place < 0:
        raise FormatError(f"{where}: the answer {quoted_list((text,))} is not in its passage")
    if passage.find(text, place + 1) >= 0:
        several.append(f"{where}: the answer {quoted_list((text,))}")
    return Answer(text, place)


def nearest_sentence(question: str, passage: str) -> tuple[int, str]:
    """The sentence of a passage that shares most words with a question, and where it begins."""
    asked = set(normalize_answer(question).split())
    sentences = [(found.start(), found[0].strip()) for found in _SENTENCE.finditer(passage)]

    def shared(sentence: tuple[int, str]) -> int:
        return len(asked.intersection(normalize_answer(sentence[1]).split()))

    return max(sentences, key=shared, default=(0, ""))

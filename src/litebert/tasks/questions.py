"""SQuAD 1.1 and 2.0: the published JSON as questions, and the files that its scorers read.

    data: [{title, paragraphs: [{context, qas: [{id, question, answers: [{text, answer_start}]}]}]}]

SQuAD 2.0 adds `is_impossible`; its `plausible_answers` are wrong answers and are not read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from litebert.base.errors import FormatError, SettingsError, did_you_mean
from litebert.base.files import as_text, write_whole
from litebert.reading.tables import shown
from litebert.tasks.examples import Answer, QuestionExample
from litebert.tasks.files.json_content import as_kind, parse_object, required, text_field
from litebert.tasks.files.text_file import Say, quiet, read_text

VERSIONS = ("1.1", "2.0")
PREDICTIONS = "predictions.json"
NULL_ODDS = "null_odds.json"


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
    write_whole(Path(folder) / PREDICTIONS, as_text(dict(answers)).encode())
    if null_odds is not None:
        write_whole(Path(folder) / NULL_ODDS, as_text(odds).encode())


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
            where = f"{path}, article {shown((title,))}"
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
        where = f"{where}, question {shown((id,))}"
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
                f"{where}: the answer {shown((text,))} is nowhere in its paragraph; "
                "correct its white space or its letters"
            )
        self.moved.append(f"{where}: the answer {shown((text,))}")
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

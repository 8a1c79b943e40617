"""RACE: reading comprehension with four options, from examinations for middle and high schools.

Read are the published folders (train/middle/*.txt, one JSON object a file) and JSON lines
(train_middle.jsonl, also compressed). An object is an article with its questions; an example is
one question.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from litebert.base.errors import FileError, FormatError, SettingsError, did_you_mean
from litebert.base.files import write_atomic
from litebert.reading.decoders import DECODERS
from litebert.reading.tables import quoted_list
from litebert.tasks.multiple_choice import (
    ChoiceExample,
    ChoicePrediction,
    ChoiceSettings,
    MultipleChoice,
)
from litebert.tasks.published.task import PublishedTask
from litebert.tasks.readers.json_content import as_kind, parse_object, required, text_field
from litebert.tasks.readers.text_file import Say, read_lines, read_text
from litebert.tasks.source import DataSource
from litebert.tasks.task import Task

SPLITS = ("train", "dev", "test")
LEVELS = ("middle", "high")
LETTERS = "ABCD"
OPTIONS = len(LETTERS)


class Race(PublishedTask):
    """RACE, middle and high together or one of them."""

    reads_single_files = True

    def settings(self, train: Sequence[ChoiceExample]) -> ChoiceSettings:
        return ChoiceSettings(
            name="race", kind=MultipleChoice.kind, metrics=("accuracy",), max_length=512,
            question_length=128, options=OPTIONS,
        )  # fmt: skip

    def read(
        self, path: Path, split: str, source: DataSource, *, labelled: bool, say: Say
    ) -> list[ChoiceExample]:
        split = split if os.path.isdir(path) else "dev"  # of a file its name does not matter
        return read_race(path, split, source.level, needs_answers=labelled)

    def write_submission(
        self, task: Task, predictions: Sequence[ChoicePrediction], path: Path, split: str, say: Say
    ) -> None:
        write_answers(path, predictions)


def read_race(
    path: Path | str, split: str = "train", level: str = "all", *, needs_answers: bool = True
) -> list[ChoiceExample]:
    """The questions of a split and a level (middle, high or all), middle school first.

    `path` is a folder, or one file of JSON lines, which is then the split, whatever its name.
    """
    for value, known in ((split, SPLITS), (level, (*LEVELS, "all"))):
        if value not in known:
            raise SettingsError(f"RACE has no {value!r}; {did_you_mean(value, known)}")
    levels = LEVELS if level == "all" else (level,)
    path = Path(path)
    if os.path.isdir(path):
        found = [(one, file) for one in levels for file in _files(path, split, one)]
    else:
        found = [(None, path)]
    examples: list[ChoiceExample] = []
    seen: set[str] = set()
    for folder_level, file in found:
        for where, article in _articles(file):
            id = text_field(article, "id", where)
            if id in seen:
                raise FormatError(
                    f"{where}: the id {quoted_list((id,))} occurs twice; make it unique"
                )
            seen.add(id)
            examples += _examples(article, where, folder_level, needs_answers)
    if level == "all":
        return examples
    return [example for example in examples if _is_of(example, level, path)]


def write_answers(path: Path, predictions: Sequence[ChoicePrediction]) -> None:
    """As RACE has answers, a line an article: `{"id": "high1.txt", "answers": ["A", …]}`.

    Predictions are in the files' order; the id of an example is that of its article and a number.
    """
    articles: dict[str, list[str]] = {}
    for one in predictions:
        articles.setdefault(one.id.rpartition("-")[0], []).append(LETTERS[one.choice])
    lines = [json.dumps({"id": id, "answers": letters}) for id, letters in articles.items()]
    write_atomic(path, ("\n".join(lines) + "\n").encode())


def _is_of(example: ChoiceExample, level: str, path: Path) -> bool:
    if example.level is None:
        raise FormatError(
            f"{path}: the id {quoted_list((example.id,))} does not tell its level (as "
            "'middle1.txt' does); read all levels, or one file for each"
        )
    return example.level == level


def _files(folder: Path, split: str, level: str) -> list[Path]:
    """The files of a split and a level, in an order of their own: 2.txt before 10.txt."""
    name = f"{split}_{level}.jsonl"
    for place in (folder, folder / "RACE"):
        published = (place / split / level).glob("*.txt")
        if files := sorted(published, key=lambda path: (len(path.name), path.name)):
            return files
        for suffix in ("", *DECODERS):
            if os.path.isfile(place / (name + suffix)):
                return [place / (name + suffix)]
    raise FileError(
        f"{folder}: holds neither {split}/{level}/*.txt nor {name}; name the folder that RACE "
        "was unpacked into"
    )


def _articles(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The articles of a file, each with the place to name it by."""
    if path.suffix == ".txt":
        yield str(path), parse_object(read_text(path), str(path))
        return
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            where = f"{path}, line {number:,}"
            yield where, parse_object(line, where)


def _examples(
    content: dict[str, Any], where: str, level: str | None, needs_answers: bool
) -> Iterator[ChoiceExample]:
    """An example for each question of an article, with ids counted from 0."""
    id, passage = text_field(content, "id", where), text_field(content, "article", where)
    level = level or next((one for one in LEVELS if id.startswith(one)), None)
    questions = required(content, "questions", list, where)
    options = required(content, "options", list, where)
    answers: list[Any] = [None] * len(questions)
    if needs_answers or "answers" in content:
        answers = required(content, "answers", list, where)
    if not len(questions) == len(options) == len(answers):
        raise FormatError(
            f"{where}: {len(questions)} questions, {len(options)} lists of options and "
            f"{len(answers)} answers; there must be as many of each"
        )
    for number, (question, four, answer) in enumerate(
        zip(questions, options, answers, strict=True)
    ):
        here = f"{where}, question {number + 1}"
        place = None if answer is None else _answer(answer, here)
        text, texts = _text(question, here), _options(four, here)
        yield ChoiceExample(f"{id}-{number}", passage, text, texts, place, level, here)


def _text(value: Any, where: str) -> str:
    text = as_kind(value, str, where).strip()
    if not text:
        raise FormatError(f"{where}: empty")
    return text


def _options(value: Any, where: str) -> tuple[str, ...]:
    options = as_kind(value, list, f"{where}, options")
    if len(options) != OPTIONS:
        raise FormatError(f"{where}: {len(options)} options, RACE has {OPTIONS}")
    return tuple(
        _text(one, f"{where}, option {letter}")
        for letter, one in zip(LETTERS, options, strict=True)
    )


def _answer(value: Any, where: str) -> int:
    letter = as_kind(value, str, f"{where}, answer")
    if letter not in tuple(LETTERS):
        raise FormatError(f"{where}: the answer {quoted_list((letter,))} is not one of A, B, C, D")
    return LETTERS.index(letter)

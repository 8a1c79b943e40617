"""The four kinds of example that all tasks are made of. Labels are None where they are not known.

Readers (files/) make them out of files; tasks turn them
into features. An `id` is what a submission calls the example.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class TextExample:
    """One text or a pair of texts, with a label (classification) or a number (regression)."""

    id: str
    first: str
    second: str | None = None
    label: str | float | None = None
    where: str = field(default="", compare=False)  # file and line, for messages


@dataclass(frozen=True)
class TaggedExample:
    """Words, each with a tag."""

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    where: str = field(default="", compare=False)  # file and line, for messages


@dataclass(frozen=True)
class Answer:
    """A piece of a passage: passage[start : start + len(text)] == text."""

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
    where: str = field(default="", compare=False)  # file and line, for messages


@dataclass(frozen=True)
class ChoiceExample:
    """A question about a passage with options to choose from."""

    id: str
    passage: str
    question: str
    options: tuple[str, ...]
    answer: int | None = None
    level: str | None = None  # RACE: middle or high
    where: str = field(default="", compare=False)  # file and line, for messages


Example = TextExample | TaggedExample | QuestionExample | ChoiceExample

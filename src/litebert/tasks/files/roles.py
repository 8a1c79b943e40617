"""Which column of the user's table plays which role: as told, or guessed where it is obvious.

A guess is made by name alone. Where two columns could be meant, nothing is guessed.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from typing import Any

from pydantic import field_validator

from litebert.base.config import Settings
from litebert.base.errors import FormatError, SettingsError, did_you_mean
from litebert.reading.tables import shown


class Columns(Settings):
    """The column of each role; empty: there is none, or it is to be guessed."""

    id: str = ""  # names an example in what is written; without it rows are counted from 0
    text: str = ""
    text_a: str = ""
    text_b: str = ""
    label: str = ""
    words: str = ""
    tags: str = ""
    question: str = ""
    passage: str = ""
    answer: str = ""
    answer_start: str = ""
    impossible: str = ""
    options: tuple[str, ...] = ()  # one column with lists, or one column for each option

    @field_validator("options", mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        """A command line gives one word: a,b,c."""
        return tuple(value.split(",")) if isinstance(value, str) else value

    def chosen(self) -> dict[str, str]:
        """Role -> column, for the roles that are played; to be said aloud."""
        roles = {role: getattr(self, role) for role in type(self).model_fields}
        roles["options"] = ", ".join(self.options)
        return {role: column for role, column in roles.items() if column}


KINDS = ("classify", "pair", "regress", "tag", "qa", "choice")

# Kind of task -> the roles it must have, those it may have, and those that labelled rows must have.
_ROLES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "classify": (("text",), ("id",), ("label",)),
    "pair": (("text_a", "text_b"), ("id",), ("label",)),
    "regress": (("text",), ("id",), ("label",)),
    "regress pair": (("text_a", "text_b"), ("id",), ("label",)),
    "tag": (("words",), ("id",), ("tags",)),
    "qa": (("question", "passage"), ("id", "answer_start", "impossible"), ("answer",)),
    "choice": (("options",), ("id", "passage", "question"), ("answer",)),
}

_LABELS = ("label", "class", "category", "target", "sentiment", "score", "rating", "gold_label")
_NAMES: dict[str, tuple[str, ...]] = {
    "id": ("id", "index", "idx", "guid", "qid", "example_id"),
    "text": ("text", "sentence", "review", "comment", "tweet", "content", "message"),
    "label": _LABELS,
    "words": ("words", "tokens"),
    "tags": ("tags", "ner_tags", "labels"),
    "question": ("question", "query"),
    "passage": ("context", "passage", "paragraph", "article"),
    "answer": ("answer", "answers"),
    "answer_start": ("answer_start",),
    "impossible": ("is_impossible", "impossible"),
    "options": ("options", "choices", "endings"),
}
_CHOICE_ANSWERS = ("answer", "label", "answer_key", "answerkey", "correct", "correct_answer")
_PAIRS = (
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("sentence1", "sentence2"),
    ("sentence_a", "sentence_b"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
)
_OPTION = re.compile(r"(?:option|choice|ending)_?([a-j]|\d)")  # not the s of options


def choose(
    path: str, kind: str, columns: Iterable[str], given: Columns, *, needs_labels: bool
) -> tuple[str, Columns]:
    """The column of every role of a kind, and the kind ("regress" may turn out to be of pairs)."""
    return _Chooser(path, kind, tuple(columns), given, needs_labels).choose()


class _Chooser:
    def __init__(
        self, path: str, kind: str, columns: tuple[str, ...], given: Columns, needs_labels: bool
    ) -> None:
        if kind not in KINDS:
            raise SettingsError(f"no kind of task {kind!r}; {did_you_mean(kind, KINDS)}")
        self.path, self.columns, self.given = path, columns, given
        self.plain = {column: _plain(column) for column in columns}
        self.needs_labels = needs_labels
        self.kind = f"{kind} pair" if kind == "regress" and self._is_pair() else kind

    def choose(self) -> tuple[str, Columns]:
        must, may, labels = _ROLES[self.kind]
        self._check_given(must + may + labels)
        found: dict[str, str | tuple[str, ...]] = {}
        if must == ("text_a", "text_b"):
            found["text_a"], found["text_b"] = self._pair()
        elif must == ("options",):
            found["options"] = self._options()
        else:
            found |= {role: self._one(role, needed=True) for role in must}
        found |= {role: self._one(role, needed=False) for role in may}
        found |= {role: self._one(role, needed=self.needs_labels) for role in labels}
        return self.kind, Columns.model_validate(found)

    def _is_pair(self) -> bool:
        if self.given.text:
            return False
        return bool(self.given.text_a or self.given.text_b or self._pairs_here())

    def _check_given(self, roles: tuple[str, ...]) -> None:
        for role, column in self.given.chosen().items():
            if role not in roles:
                raise SettingsError(
                    f"columns: {role} = {column!r} has no meaning for {self.kind!r}; "
                    f"its roles are {', '.join(roles)}"
                )
        named = [getattr(self.given, role) for role in roles if role != "options"]
        for column in (*named, *self.given.options):
            if column and column not in self.columns:
                raise FormatError(
                    f"{self.path}: no column {column!r}; {did_you_mean(column, self.columns)}"
                )

    def _one(self, role: str, *, needed: bool) -> str:
        """The column of a role; none if it cannot be guessed and is not needed."""
        if told := getattr(self.given, role):
            return told
        names = _CHOICE_ANSWERS if self.kind == "choice" and role == "answer" else _NAMES[role]
        fitting = [column for column, plain in self.plain.items() if plain in names]
        if len(fitting) == 1:
            return fitting[0]
        if needed:
            raise FormatError(self._unclear(role, fitting))
        return ""

    def _unclear(self, role: str, fitting: list[str]) -> str:
        if fitting:
            what = f"several columns could be the {role}: {shown(fitting)}"
        else:
            what = f"no column is obviously the {role}; there are {shown(self.columns)}"
        return f"{self.path}: {what}; say which with `--column {role}=NAME`"

    def _pair(self) -> tuple[str, str]:
        told = self.given.text_a, self.given.text_b
        if all(told):
            return told
        if any(told):
            raise SettingsError("columns: text_a and text_b go together; name both")
        pairs = self._pairs_here()
        if len(pairs) != 1:
            fitting = [column for pair in pairs for column in pair]
            raise FormatError(self._unclear("text_a", fitting).replace("NAME", "NAME text_b=NAME"))
        return pairs[0]

    def _pairs_here(self) -> list[tuple[str, str]]:
        by_name = {plain: column for column, plain in self.plain.items()}
        return [(by_name[a], by_name[b]) for a, b in _PAIRS if a in by_name and b in by_name]

    def _options(self) -> tuple[str, ...]:
        """One column of lists, or columns such as option_a, option_b in their order."""
        if self.given.options:
            return self.given.options
        lists = [column for column, plain in self.plain.items() if plain in _NAMES["options"]]
        marked = {
            column: found[1]
            for column, plain in self.plain.items()
            if (found := _OPTION.fullmatch(plain))
        }
        if len(lists) + bool(marked) != 1:
            raise FormatError(self._unclear("options", [*lists, *marked]))
        columns = lists or sorted(marked, key=lambda column: marked[column])
        if marked and not _is_a_row([marked[column] for column in columns]):
            raise FormatError(self._unclear("options", columns))
        return tuple(columns)


def _is_a_row(marks: list[str]) -> bool:
    """Whether the marks of options follow each other: a b c, 0 1 2, or 1 2 3."""
    rows = (string.ascii_lowercase, string.digits, string.digits[1:])
    return len(marks) > 1 and any(marks == list(row[: len(marks)]) for row in rows)


def _plain(column: str) -> str:
    return column.strip().lower().replace(" ", "_").replace("-", "_")

"""Examples that do not fit: each check says in one sentence where, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from litebert.base.errors import FormatError, SettingsError
from litebert.tasks.base import TaskSettings
from litebert.tasks.scores.entities import split_tag


def labels_of(example: Any, kind: str) -> tuple[str, ...]:
    """What an example is labelled with; nothing where that is a number, a span or an option."""
    if kind in ("classify", "pair"):
        return () if example.label is None else (str(example.label),)
    return example.tags or () if kind == "tag" else ()


def check_dev(settings: TaskSettings, examples: Sequence[Any], path: Path) -> None:
    """Refuse dev examples that training has not prepared for."""
    for example, label in _unseen(settings, examples):
        raise FormatError(
            f"{place(example, path)}: label {label!r} occurs among the dev examples only, so it "
            "cannot be learned; add training examples of it or remove it"
        )
    _check_options(settings, examples, path)


def check_asked(
    settings: TaskSettings, examples: Sequence[Any], path: Path, *, labelled: bool
) -> None:
    """Refuse examples that a fine-tuned model cannot be asked, or not be measured on."""
    if labelled:
        _check_labelled(settings, examples, path)
        for example, label in _unseen(settings, examples):
            raise FormatError(
                f"{place(example, path)}: label {label!r} is none of the model's: "
                f"{', '.join(settings.labels[:12])}"
            )
    _check_options(settings, examples, path)


def check_entities(examples: Sequence[Any], path: Path) -> None:
    """Refuse tags that are not of entities."""
    for example in examples:
        for tag in example.tags or ():
            try:
                split_tag(tag)
            except SettingsError as error:
                raise FormatError(f"{place(example, path)}: {error}") from None


def place(example: Any, path: Path) -> str:
    """Where an example is: its line if that is known, else its file and its id."""
    return example.where or f"{path}, example {example.id}"


def _unseen(settings: TaskSettings, examples: Sequence[Any]) -> Iterator[tuple[Any, str]]:
    known = set(settings.labels)
    return (
        (example, label)
        for example in examples
        for label in labels_of(example, settings.kind)
        if label not in known
    )


def _check_labelled(settings: TaskSettings, examples: Sequence[Any], path: Path) -> None:
    missing = {
        "tag": lambda one: one.tags is None,
        "choice": lambda one: one.answer is None,
        "qa": lambda one: not one.answers and not one.impossible,
    }.get(settings.kind, lambda one: one.label is None)
    for example in examples:
        if missing(example):
            raise FormatError(
                f"{place(example, path)}: has no label, so nothing can be measured on it; "
                "`litebert predict` needs none"
            )


def _check_options(settings: TaskSettings, examples: Sequence[Any], path: Path) -> None:
    if settings.kind != "choice":
        return
    for example in examples:
        if len(example.options) != settings.options:
            raise FormatError(
                f"{place(example, path)}: {len(example.options)} options; the model chooses among "
                f"{settings.options}"
            )

"""What a Python program hands to a model, checked: texts, pairs, fields by their names.

A list is many inputs, anything else is one. `where` says which one, for messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from litebert.base.errors import InputError, did_you_mean

# Letters and digits, joined by marks inside a word; other marks stand by themselves.
_WORD = re.compile(r"\w+(?:[-'\u2019.,&@/]\w+)*|[^\w\s]")


BETWEEN_TEXTS = "|||"  # of several texts that are given as one


def is_many(inputs: object) -> bool:
    """Whether a program asks for many answers, or for one."""
    return isinstance(inputs, list)


def places(inputs: Sequence[Any]) -> list[str]:
    """What to call each of some inputs."""
    if len(inputs) == 1:
        return ["the input"]
    return [f"input {number:,} of {len(inputs):,}" for number in range(1, len(inputs) + 1)]


def split_texts(text: str) -> str | tuple[str, ...]:
    """The texts of an example that a command line gives as one."""
    parts = tuple(part.strip() for part in text.split(BETWEEN_TEXTS))
    return parts if len(parts) > 1 else text


def text_of(value: Any, where: str) -> str:
    """A text with something in it."""
    if not isinstance(value, str):
        raise InputError(f"{where} is not a text but {type(value).__name__}: {value!r:.60}")
    if not value.strip():
        raise InputError(f"{where} is empty; give a text with a word in it")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: character {error.start:,} is half of a surrogate pair, not text; "
            "decode it again with errors='replace'"
        ) from None
    return value


def pair_of(value: Any, where: str) -> tuple[str, str] | None:
    """Two texts: a tuple, or {"text_a": ..., "text_b": ...}; None if it is no pair at all."""
    if isinstance(value, Mapping) and {"text_a", "text_b"} & set(value):
        value = tuple(fields_of(value, ("text_a", "text_b"), (), where).values())
    if not isinstance(value, tuple):
        return None
    if len(value) != 2:
        raise InputError(f"{where} has {len(value)} texts; a pair has two")
    return text_of(value[0], f"{where}, first text"), text_of(value[1], f"{where}, second text")


def fields_of(
    value: Any, needed: Sequence[str], others: Sequence[str], where: str
) -> dict[str, Any]:
    """The values of a dictionary by name: all that are needed, and no others than known."""
    known = [*needed, *others]
    if not isinstance(value, Mapping):
        shape = ", ".join(f'"{name}": ...' for name in known)
        raise InputError(f"{where}: expected {{{shape}}}, not {type(value).__name__}")
    for name in value:
        if name not in known:
            raise InputError(f"{where}: no field {name!r}; {did_you_mean(str(name), known)}")
    for name in needed:
        if name not in value:
            raise InputError(f"{where}: the field {name!r} is missing")
    return {name: value[name] for name in known if name in value}


def split_words(text: str) -> list[str]:
    """The words of a sentence as taggers know them: punctuation around a word is a word."""
    return _WORD.findall(text)


def words_of(value: Any, where: str) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...] | None]:
    """The words of a sentence; of a plain text ({"text": ...} too), also their places in it."""
    if isinstance(value, Mapping):
        fields = fields_of(value, (), ("words", "text"), where)
        if len(fields) != 1:
            raise InputError(f'{where}: give either "text" or "words"')
        value = fields.popitem()[1]
    if isinstance(value, str):
        found = list(_WORD.finditer(text_of(value, where)))
        return tuple(word[0] for word in found), tuple(word.span() for word in found)
    if not isinstance(value, list | tuple) or not value:
        raise InputError(f"{where}: expected a text, or words, not {value!r:.60}")
    return tuple(text_of(word, f"{where}, word {n:,}") for n, word in enumerate(value, 1)), None

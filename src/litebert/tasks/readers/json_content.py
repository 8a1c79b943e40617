"""JSON that somebody else wrote: parsed and asked for its fields, with a sentence for any surprise.

`where` is the place that a message names: a file, and what is known within it.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from litebert.base.errors import FormatError

T = TypeVar("T")
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_KINDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


class NumberText(str):
    """A number as it was written, for labels, which are names: 1.50 stays 1.50."""


def parse_json(text: str, where: str, *, numbers_as_text: bool = False) -> Any:
    """The value that a JSON text holds."""
    number = NumberText if numbers_as_text else None
    try:
        content = json.loads(text, parse_int=number, parse_float=number)
        if _HALF_PAIR.search(text):  # half a surrogate pair, which JSON can write and UTF-8 cannot
            json.dumps(content, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise FormatError(
            f"{where}: not JSON ({error.msg} at {_place(error)}); "
            "the file may be cut short: copy it again"
        ) from None
    except UnicodeEncodeError:
        raise FormatError(
            f"{where}: holds half a surrogate pair, which is no character; remove it"
        ) from None
    except (ValueError, RecursionError):
        raise FormatError(
            f"{where}: not JSON of any sane size (a number too long, or too deep)"
        ) from None
    return content


def _place(error: json.JSONDecodeError) -> str:
    if error.lineno == 1:
        return f"character {error.pos:,}"
    return f"line {error.lineno:,}, character {error.colno - 1:,}"


def parse_object(text: str, where: str, *, numbers_as_text: bool = False) -> dict[str, Any]:
    """The object that a JSON text holds."""
    return as_kind(parse_json(text, where, numbers_as_text=numbers_as_text), dict, where)


def required(content: dict[str, Any], key: str, kind: type[T], where: str) -> T:
    """A value of an object, which must be there and of the right kind."""
    if key not in content:
        raise FormatError(f"{where}: the key {key!r} is missing")
    return as_kind(content[key], kind, f"{where}, {key!r}")


def text_field(content: dict[str, Any], key: str, where: str) -> str:
    """A text of an object, which must not be empty."""
    text = required(content, key, str, where)
    if not text.strip():
        raise FormatError(f"{where}: {key!r} is empty")
    return text


def as_kind(value: Any, kind: type[T], where: str) -> T:
    """A value, if it is of the right kind; true is not a number here."""
    if type(value) is not kind:
        raise FormatError(f"{where}: expected {_KINDS[kind]}, found {kind_name(value)}")
    return value


def kind_name(value: Any) -> str:
    """What a value is, for a message."""
    return "a number" if isinstance(value, NumberText) else _KINDS.get(type(value), "a value")

"""Rows of CSV and TSV tables.

CSV is RFC 4180 to the letter: a field in quotes may hold commas, line ends and doubled quotes; a
quote anywhere else is a mistake, because nobody could then say where a record ends. TSV has no
quoting: a tab ends a field, a newline ends a record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, AnyStr

from litebert.base.errors import FormatError
from litebert.reading.signatures import BOM

# Possessive, because a hostile field of millions of quotes must not pile up ways to go back.
_FIELD = re.compile(r'(?:"([^"]*+(?:""[^"]*+)*+)"|([^",]*+))(,|\Z)')


def parse_header(name: str, record: bytes, format: str, field: str) -> tuple[str, ...]:
    """The names of a table's columns, of which one must be the wanted field."""
    try:
        line = record.removeprefix(BOM).decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{name}, line 1 (byte {error.start}): not valid UTF-8; convert the file to UTF-8"
        ) from None
    columns = parse_row(line, format)
    if columns is None:
        raise FormatError(
            f"{name}, line 1: the header has a quote inside a field, or one left open"
        )
    return check_columns(name, columns, field)


def check_columns(name: str, columns: list[str], field: str) -> tuple[str, ...]:
    """The columns of a table, if the wanted one is there, once."""
    if columns.count(field) == 1:
        return tuple(columns)
    if field in columns:
        raise FormatError(f"{name}: two columns are named {field!r}; rename one of them")
    raise FormatError(
        f"{name}: no column {field!r}; there are {quoted_list(columns)} (choose with --field)"
    )


def quoted_list(names: Iterable[str]) -> str:
    """Names for a message, which stays one sentence however many and long they are."""
    listed = [repr(name if len(name) <= 40 else name[:37] + "...") for name in names]
    more = f" and {len(listed) - 12:,} more" if len(listed) > 12 else ""
    return (", ".join(listed[:12]) or "none") + more


def csv_records(text: AnyStr) -> Iterator[tuple[int, AnyStr]]:
    """CSV records and the lines before each: lines, joined while the number of quotes is odd."""
    newline: Any
    quote: Any
    newline, quote = (b"\n", b'"') if isinstance(text, bytes) else ("\n", '"')
    lines: list[Any] = []
    first, quoted = 0, False
    for number, line in enumerate(text.split(newline), 1):
        lines.append(line)
        quoted ^= line.count(quote) % 2 == 1
        if not quoted:
            yield first, newline.join(lines)
            lines.clear()
            first = number
    if lines:
        yield first, newline.join(lines)


def parse_row(record: str, format: str) -> list[str] | None:
    """The fields of a record without its line end; None if its quotes are wrong."""
    if format == "tsv":
        return record.split("\t")
    if '"' not in record:
        return record.split(",")
    fields, place = [], 0
    while found := _FIELD.match(record, place):
        quoted, plain, comma = found.groups()
        fields.append(plain if quoted is None else quoted.replace('""', '"'))
        if not comma:
            return fields
        place = found.end()
    return None

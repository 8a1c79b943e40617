"""Rows of CSV and TSV tables.

CSV is RFC 4180 to the letter: a field in quotes may hold commas, line ends and doubled quotes; a
quote anywhere else is a mistake, because nobody could then say where a record ends. Spreadsheets of
many countries write semicolons for the commas. TSV has no quoting: a tab ends a field, a newline
ends a record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, AnyStr

from litebert.base.errors import FormatError
from litebert.reading.signatures import BOM

LONGEST_NAME = 40  # characters of a column's name, where one must guess what is a name
# Possessive, because a hostile field of millions of quotes must not pile up ways to go back.
_FIELD = {
    comma: re.compile(rf'(?:"([^"]*+(?:""[^"]*+)*+)"|([^"{comma}]*+))({comma}|\Z)')
    for comma in ",;"
}
_QUOTED = re.compile(r'"[^"]*+"')
_SEEN = 20  # records that tell what stands between fields


@dataclass(frozen=True)
class Header:
    """A table's columns, and what stands between fields."""

    columns: tuple[str, ...] = ()
    comma: str = ","
    is_named: bool = False  # the first record is their names, and no data


NO_HEADER = Header()


def parse_header(
    name: str, record: bytes, format: str, field: str, following: bytes = b"",
    comma: str | None = None,
) -> Header:  # fmt: skip
    """The columns of a table by its first record, and what follows it as far as it was read.

    One must be the wanted field, by its name or its number from 0. If it is told by a number and
    the first record does not look like names (a number in it, or more than 40 characters), there is
    no header. Columns that are told by number are called by their numbers. `comma` is what stands
    between fields, where the file said so.
    """
    try:
        line = record.removeprefix(BOM).decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{name}, line 1 (byte {error.start}): not valid UTF-8; convert the file to UTF-8"
        ) from None
    records = [line]
    if field.isdigit():  # else a header names the field, and tells what stands between fields
        rest = [one for _, one in csv_records(following.decode(errors="ignore"))]
        records += rest[:-1] or rest  # the last one may be cut
    comma = comma or (find_comma(records) if format == "csv" else ",")
    columns = parse_row(line, format, comma)
    if columns is None:
        raise FormatError(
            f"{name}, line 1: the header has a quote inside a field, or one left open"
        )
    if field in columns or not field.isdigit():
        return Header(check_columns(name, columns, field), comma, is_named=True)
    numbers = [str(place) for place in range(len(columns))]
    check_columns(name, numbers, field)
    headed = all(len(one) <= LONGEST_NAME and not _is_number(one) for one in columns)
    return Header(tuple(numbers), comma, is_named=headed)


def _is_number(text: str) -> bool:
    return text.strip().lstrip("+-").replace(".", "", 1).isdecimal()


def check_columns(name: str, columns: list[str], field: str) -> tuple[str, ...]:
    """The columns of a table, if the wanted one is there, once."""
    if columns.count(field) == 1:
        return tuple(columns)
    if field in columns:
        raise FormatError(f"{name}: two columns are named {field!r}; rename one of them")
    raise FormatError(
        f"{name}: no column {field!r}; there are {quoted_list(columns)} (choose with --field NAME, "
        "or --field NUMBER from 0, as where the first line is no header)"
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


def told_comma(line: str) -> str | None:
    """What the line `sep=;` says that spreadsheets write for each other, where a file begins so."""
    return line[4] if line.lower() in ("sep=;", "sep=,") else None


def find_comma(records: Iterable[str]) -> str:
    """What stands between the fields of CSV records: a comma, or a semicolon.

    A semicolon, if the first record has some and half of the others just as many, and commas are
    not as regular.
    """
    first, *others = [_QUOTED.sub("", record) for record in islice(records, _SEEN)]

    def regular(mark: str) -> bool:
        alike = sum(other.count(mark) == first.count(mark) for other in others)
        return mark in first and 2 * alike >= len(others)

    return ";" if regular(";") and not regular(",") else ","


def parse_row(record: str, format: str, comma: str = ",") -> list[str] | None:
    """The fields of a record without its line end; None if its quotes are wrong."""
    if format == "tsv":
        return record.split("\t")
    if '"' not in record:
        return record.split(comma)
    fields, place = [], 0
    while found := _FIELD[comma].match(record, place):
        quoted, plain, end = found.groups()
        fields.append(plain if quoted is None else quoted.replace('""', '"'))
        if not end:
            return fields
        place = found.end()
    return None

"""Rows of the user's tables, every row with its line and its id.

CSV and TSV with or without a header, JSON lines or a list of objects or texts, Parquet, and plain
text, a text a line. A value is text, or whatever JSON and Parquet hold; numbers of JSON stay as
they are written.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from litebert.base.errors import FileError, FormatError
from litebert.reading.parquet import open_parquet
from litebert.reading.streams import STDIN, compression
from litebert.reading.tables import csv_records, find_comma, parse_row, told_comma
from litebert.tasks.readers.column_mapping import ColumnMapping
from litebert.tasks.readers.formats import format_of_name, format_of_text
from litebert.tasks.readers.headers import Known, has_header
from litebert.tasks.readers.json_content import as_kind, kind_name, parse_json, parse_object
from litebert.tasks.readers.text_file import Say, largest_content, quiet, read_text

ROWS_AT_ONCE = 64  # of Parquet
TEXT = "text"  # the one column of plain text
LIST_KEY = "data"  # of an object that holds the list of rows


@dataclass(frozen=True)
class Row:
    """One record: where it is, for messages, its values by column, and the columns of roles."""

    where: str
    values: dict[str, Any]
    columns: ColumnMapping = field(default_factory=ColumnMapping)
    id: str = ""  # what an example is called in predictions

    def get(self, role: str) -> Any:
        """What is in the column of a role; None where it is empty, or none plays it."""
        return self.values.get(self.columns[role]) if role in self.columns.columns else None

    def texts(self, role: str) -> tuple[str, ...]:
        """The texts of a role's columns, none of them empty; white space around is dropped."""
        return tuple(self._text(column) for column in self.columns.columns[role])

    def text(self, role: str) -> str:
        return self.texts(role)[0]

    def _text(self, column: str) -> str:
        value = self.values.get(column)
        if value is None or (type(value) is str and not value.strip()):
            raise FormatError(f"{self.where}: {column!r} is empty")
        if type(value) is not str:
            raise FormatError(f"{self.where}: {column!r} is not text but {kind_name(value)}")
        return value.strip()

    def name(self, role: str) -> str | None:
        """A label, an answer or an id exactly as it is written, also a number; None if empty."""
        value = self.get(role)
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        return name_of(value, self.place(role))

    def label(self, role: str, *, needed: bool) -> str | None:
        """The same of what is to be learned, which may have to be there."""
        label = self.name(role)
        if label is None and needed:
            raise FormatError(f"{self.place(role)} is empty; every row needs its {role}")
        return None if label is None else label.strip()

    def place(self, role: str) -> str:
        """Row and column, for messages."""
        return f"{self.where}: {self.columns[role]!r}"


@dataclass(frozen=True)
class Table:
    """The rows of a file and the columns that they have, in the order of first sight."""

    path: str
    columns: tuple[str, ...]
    rows: list[Row]
    headerless: bool = False  # a CSV or TSV whose columns are called by their numbers
    is_plain: bool = False  # a text a line, in one column


def name_of(value: Any, where: str) -> str:
    """A value that names something, as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise FormatError(f"{where} is neither text nor a number but {kind_name(value)}")


def read_table(
    path: Path | str, known: Known = lambda names: [], given: ColumnMapping | None = None,
    say: Say = quiet,
) -> Table:  # fmt: skip
    """All rows of a file, or of standard input (`-`).

    The format is told by the name, before any .gz, .xz or .zst, or else by the content. `known` and
    `given` (columns) help to tell whether a table has a header.
    """
    name = str(path)
    if name != STDIN and not os.path.isfile(name):
        kind = "a folder; name one file" if os.path.isdir(name) else "no such file"
        raise FileError(f"{name}: {kind}")
    format = format_of_name(name)
    if format == "parquet":
        table = _parquet(name)
    else:
        table = _parse(name, format, read_text(name), known, given or ColumnMapping(), say)
    if not table.rows:
        raise FormatError(f"{name}: no rows in it")
    return table


def _parse(
    path: str, format: str | None, text: str, known: Known, given: ColumnMapping, say: Say
) -> Table:
    if format is None or (format == "text" and format_of_text(text) == "tsv"):
        format = format_of_text(text)
        say(f"{path}: read as {'a text a line' if format == 'text' else format.upper()}")
    match format:
        case "csv" | "tsv":
            return _separated(path, format, text, known, given, say)
        case "json":
            return _json(path, text)
        case "text":
            return _plain(path, text, say)
        case _:
            raise FormatError(
                f"{path}: columns of words, as `--task tag` reads them; other tasks read .csv, "
                ".tsv, .jsonl, .json, .parquet and .txt"
            )


def map_rows(table: Table, columns: ColumnMapping, say: Say, *, id_told: bool) -> Table:
    """A table whose rows know the columns of roles, and their ids.

    Ids are those of the id's column if they are unique, as one that was told must be; else rows are
    counted.
    """
    rows = [replace(row, columns=columns) for row in table.rows]
    seen: dict[str, str] = {}
    for row in rows if "id" in columns.columns else ():
        id = row.name("id")
        if id is not None and id not in seen:
            seen[id] = row.where
            continue
        problem = "is empty" if id is None else f"{id!r} occurs twice (before: {seen[id]})"
        message = f"{row.where}: the id in {columns['id']!r} {problem}"
        if id_told:
            raise FormatError(f"{message}; make it unique, or name another column")
        say(f"{message}; rows are counted from 0 instead")
        return map_rows(table, columns.without("id"), say, id_told=False)
    ids = seen or map(str, range(len(rows)))
    return replace(table, rows=[replace(row, id=id) for row, id in zip(rows, ids, strict=True)])


def _plain(path: str, text: str, say: Say) -> Table:
    lines = text.split("\n")
    rows = [
        Row(f"{path}, line {number:,}", {TEXT: line.removesuffix("\r")})
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    if blank := len(lines) - len(rows) - (not lines[-1]):
        say(f"{path}: {blank:,} blank lines are left out")
    return Table(path, (TEXT,), rows, is_plain=True)


def _separated(
    path: str, format: str, text: str, known: Known, given: ColumnMapping, say: Say
) -> Table:
    lines = csv_records(text) if format == "csv" else enumerate(text.split("\n"))
    found = [(before, line.removesuffix("\r")) for before, line in lines if line.strip(" \r")]
    if not found:
        return Table(path, (), [])
    comma = told_comma(found[0][1]) if format == "csv" else None
    if comma is not None:  # a line that spreadsheets write for each other
        found = found[1:]
    if not found:
        return Table(path, (), [])
    comma = comma or find_comma(line for _, line in found)
    if format == "csv" and comma != ",":
        say(f"{path}: semicolons stand between its fields")
    places = [f"{path}, line {before + 1:,}" for before, _ in found]
    records = [
        _fields(line, format, comma, where) for (_, line), where in zip(found, places, strict=True)
    ]
    headed = has_header(records, known, given)
    names = [name.strip() for name in records[0]] if headed else _numbers(records[0])
    _refuse_twins(names, places[0])
    if not headed:
        say(f"{path}: no header, so the first line is data and columns have numbers from 0")
    first = "header" if headed else "first line"
    rows = [
        _row(where, fields, names, first)
        for where, fields in list(zip(places, records, strict=True))[int(headed) :]
    ]
    return Table(path, tuple(names), rows, headerless=not headed)


def _numbers(fields: Sequence[str]) -> list[str]:
    return [str(place) for place in range(len(fields))]


def _row(where: str, fields: list[str], names: list[str], first: str) -> Row:
    if len(fields) != len(names):
        raise FormatError(f"{where}: {len(fields)} fields, the {first} has {len(names)}")
    return Row(where, dict(zip(names, fields, strict=True)))


def _fields(record: str, format: str, comma: str, where: str) -> list[str]:
    fields = parse_row(record, format, comma)
    if fields is None and record.count('"') % 2:
        raise FormatError(f"{where}: a quote is left open; double a quote that is part of a field")
    if fields is None:
        raise FormatError(
            f"{where}: a quote out of place; put the field in quotes and double those inside"
        )
    return fields


def _refuse_twins(names: list[str], where: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise FormatError(f"{where}: {count} columns are named {name!r}; rename all but one")


def _json(path: str, text: str) -> Table:
    """A JSON object or text a line; or one list of these, perhaps as an object's "data"."""
    if (items := _listed(path, text)) is not None:
        places = [f"{path}, item {number:,}" for number in range(1, len(items) + 1)]
        texts = bool(items) and all(type(one) is str for one in items)  # texts and nothing else
        rows = [
            Row(where, {TEXT: one} if texts else as_kind(one, dict, where))
            for where, one in zip(places, items, strict=True)
        ]
    else:
        rows = [
            _json_row(line.strip(), f"{path}, line {number:,}")
            for number, line in enumerate(text.split("\n"), 1)
            if line.strip()
        ]
    return Table(path, tuple(dict.fromkeys(key for row in rows for key in row.values)), rows)


def _json_row(line: str, where: str) -> Row:
    if line.startswith('"'):
        return Row(where, {TEXT: as_kind(parse_json(line, where), str, where)})
    return Row(where, parse_object(line, where, numbers_as_text=True))


def _listed(path: str, text: str) -> list[Any] | None:
    """The list that a JSON text holds; None if it is rather an object a line."""
    start = text.lstrip()
    if not start.startswith("["):
        line = start.partition("\n")[0].rstrip()
        try:
            first = json.loads(line)
        except (ValueError, RecursionError):
            first = None
        holds_list = isinstance(first, dict) and isinstance(first.get(LIST_KEY), list)
        if not holds_list and (first is not None or line.endswith("}")):
            return None
    content = parse_json(text, path, numbers_as_text=True)
    if isinstance(content, dict) and LIST_KEY in content:
        content = content[LIST_KEY]
    return as_kind(content, list, path)


def _parquet(path: str) -> Table:
    if compression(path):
        raise FormatError(f"{path}: a Parquet file is compressed inside; decompress it first")
    with open_parquet(path) as file:
        names = file.schema_arrow.names
        _refuse_twins(names, path)
        records = _parquet_records(path, file)
    rows = [Row(f"{path}, row {number:,}", record) for number, record in enumerate(records, 1)]
    return Table(path, tuple(names), rows)


def _parquet_records(path: str, file: Any) -> list[dict[str, Any]]:
    """The rows, read a few at a time: one value may be stored once and meant a million times."""
    most, rows = largest_content(path)
    records: list[dict[str, Any]] = []
    size, too_many = 0, file.metadata.num_rows > rows
    for batch in file.iter_batches(ROWS_AT_ONCE) if not too_many else ():
        size += batch.nbytes
        too_many = size > most or len(records) + len(batch) > rows
        if too_many:
            break
        records += batch.to_pylist()
    if too_many:
        raise FormatError(f"{path}: more than {most:,} bytes or {rows:,} rows in it; split it")
    return records

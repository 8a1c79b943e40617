"""Rows of the user's tables: CSV, TSV, JSON lines and Parquet, every row with its line and its id.

A value is text, or whatever JSON and Parquet hold; numbers of JSON stay as they are written.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from litebert.base.errors import FileError, FormatError
from litebert.reading.parquet import open_parquet
from litebert.reading.sources import find_sources
from litebert.reading.tables import parse_row, quoted_list
from litebert.tasks.readers.column_mapping import ColumnMapping
from litebert.tasks.readers.json_content import kind_name, parse_object
from litebert.tasks.readers.text_file import Say, largest_content, read_lines, read_text

ROWS_AT_ONCE = 64  # of Parquet
TABLES = {".csv", ".tsv", ".jsonl", ".parquet"}


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
        return label

    def place(self, role: str) -> str:
        """Row and column, for messages."""
        return f"{self.where}: {self.columns[role]!r}"


@dataclass(frozen=True)
class Table:
    """The rows of a file and the columns that they have, in the order of first sight."""

    path: str
    columns: tuple[str, ...]
    rows: list[Row]


def name_of(value: Any, where: str) -> str:
    """A value that names something, as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise FormatError(f"{where} is neither text nor a number but {kind_name(value)}")


def is_table(path: Path) -> bool:
    """Whether a file's name is that of a table, perhaps compressed."""
    return not TABLES.isdisjoint(path.suffixes)


def read_table(path: Path | str) -> Table:
    """All rows of a file; its format is told by its name, before any .gz, .xz or .zst."""
    name = str(path)
    if not os.path.isfile(name):
        kind = "a folder; name one file" if os.path.isdir(name) else "no such file"
        raise FileError(f"{name}: {kind}")
    format = find_sources([name], "auto")[0].format
    match format:
        case "csv" | "tsv":
            table = _separated(name, format)
        case "jsonl":
            table = _json_lines(name)
        case "parquet":
            table = _parquet(name)
        case _:
            raise FormatError(f"{name}: not a table; read are .csv, .tsv, .jsonl and .parquet")
    if not table.rows:
        raise FormatError(f"{name}: no rows in it")
    return table


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


def _separated(path: str, format: str) -> Table:
    records = (
        _quoted_records(read_text(path)) if format == "csv" else enumerate(read_lines(path), 1)
    )
    header: list[str] | None = None
    rows: list[Row] = []
    for line, record in records:
        if not record.strip(" "):
            continue
        where = f"{path}, line {line:,}"
        fields = _fields(record, format, where)
        if header is None:
            header = _header(fields, where)
            continue
        if len(fields) != len(header):
            raise FormatError(f"{where}: {len(fields)} fields, the header has {len(header)}")
        rows.append(Row(where, dict(zip(header, fields, strict=True))))
    return Table(path, tuple(header or ()), rows)


def _quoted_records(text: str) -> Iterator[tuple[int, str]]:
    """CSV records with their first lines: lines, joined while the number of quotes is odd."""
    lines: list[str] = []
    inside = False
    start = 1
    for number, line in enumerate(text.split("\n"), 1):
        start = start if lines else number
        lines.append(line)
        inside ^= line.count('"') % 2 == 1
        if not inside:
            yield start, "\n".join(lines).removesuffix("\r")
            lines.clear()
    if lines:
        yield start, "\n".join(lines)


def _fields(record: str, format: str, where: str) -> list[str]:
    fields = parse_row(record, format)
    if fields is None and record.count('"') % 2:
        raise FormatError(f"{where}: a quote is left open; double a quote that is part of a field")
    if fields is None:
        raise FormatError(
            f"{where}: a quote out of place; put the field in quotes and double those inside"
        )
    return fields


def _header(fields: list[str], where: str) -> list[str]:
    names = [name.strip() for name in fields]
    _refuse_twins(names, where)
    if len(names) == 1 and ";" in names[0]:
        raise FormatError(
            f"{where}: one column {quoted_list(names)}, it seems with semicolons between its "
            "fields; save the file with commas, or with tabs as .tsv"
        )
    return names


def _refuse_twins(names: list[str], where: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise FormatError(f"{where}: {count} columns are named {name!r}; rename all but one")


def _json_lines(path: str) -> Table:
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            where = f"{path}, line {number:,}"
            rows.append(Row(where, parse_object(line, where, numbers_as_text=True)))
    return Table(path, tuple(dict.fromkeys(key for row in rows for key in row.values)), rows)


def _parquet(path: str) -> Table:
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

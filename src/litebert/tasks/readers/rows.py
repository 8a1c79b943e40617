"""Rows of the user's tables: CSV, TSV, JSON lines and Parquet, every row with its line and its id.

A value is text, or whatever JSON and Parquet hold; numbers of JSON stay as they are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from litebert.base.errors import FileError, FormatError
from litebert.reading.parquet import open_parquet
from litebert.reading.sources import find_sources
from litebert.reading.tables import parse_row, quoted_list
from litebert.tasks.readers.json_content import kind_name, parse_object
from litebert.tasks.readers.text_file import LARGEST_FILE, Say, read_lines, read_text

TABLES = {".csv", ".tsv", ".jsonl", ".parquet"}


@dataclass(frozen=True)
class Row:
    """One record: where it is, for messages, and its values by column."""

    where: str
    values: dict[str, Any]
    id: str = ""  # what an example is called in predictions

    def get(self, column: str) -> Any:
        """What a column holds; None where it is empty, or there is no such column ("")."""
        return self.values.get(column) if column else None

    def text(self, column: str) -> str:
        """The text of a column, which must not be empty; white space around it is dropped."""
        value = self.values.get(column)
        if value is None or (type(value) is str and not value.strip()):
            raise FormatError(f"{self.where}: {column!r} is empty")
        if type(value) is not str:
            raise FormatError(f"{self.where}: {column!r} is not text but {kind_name(value)}")
        return value.strip()

    def name(self, column: str) -> str | None:
        """A label, an answer or an id exactly as it is written, also a number; None if empty."""
        value = self.get(column)
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        return name_of(value, f"{self.where}: {column!r}")

    def label(self, column: str, *, needed: bool, what: str = "label") -> str | None:
        """The same of a column that says what to learn, which may have to be there."""
        label = self.name(column)
        if label is None and needed:
            raise FormatError(f"{self.where}: {column!r} is empty; every row needs its {what}")
        return label


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
    if not Path(name).is_file():
        kind = "a folder; name one file" if Path(name).is_dir() else "no such file"
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


def with_ids(table: Table, column: str, say: Say, *, told: bool) -> tuple[Table, bool]:
    """A table whose rows have ids: those of a column, if they are unique, else rows are counted.

    Says whether the column is used; one that was `told` must be.
    """
    seen: dict[str, str] = {}
    for row in table.rows if column else ():
        id = row.name(column)
        if id is not None and id not in seen:
            seen[id] = row.where
            continue
        problem = "is empty" if id is None else f"{id!r} occurs twice (before: {seen[id]})"
        message = f"{row.where}: the id in {column!r} {problem}"
        if told:
            raise FormatError(f"{message}; make it unique, or name another column")
        say(f"{message}; rows are counted from 0 instead")
        seen = {}
        break
    ids = seen or [str(number) for number in range(len(table.rows))]
    rows = [replace(row, id=id) for id, row in zip(ids, table.rows, strict=True)]
    return replace(table, rows=rows), bool(seen)


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
        _refuse_too_large(path, file.metadata)
        records = file.read().to_pylist()
    rows = [Row(f"{path}, row {number:,}", record) for number, record in enumerate(records, 1)]
    return Table(path, tuple(names), rows)


def _refuse_too_large(path: str, metadata: Any) -> None:
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    if sum(group.total_byte_size for group in groups) > LARGEST_FILE:
        raise FormatError(f"{path}: more than {LARGEST_FILE:,} bytes in its columns; split it")

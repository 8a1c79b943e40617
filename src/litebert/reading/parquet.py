"""Text columns of Parquet files, by row groups: cut from the metadata alone, read in batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from litebert.base.errors import FileError, FormatError, MissingExtraError
from litebert.base.remote.urls import as_url
from litebert.reading.streams import is_file, open_file
from litebert.reading.tables import check_columns

_ROWS_AT_ONCE = 256  # documents may be long
_BUFFER = 2**20


@dataclass(frozen=True)
class RowGroups:
    """Neighbouring row groups of a file; a chunk of text."""

    groups: tuple[int, ...]
    first_row: int
    consumed: int  # bytes of the file up to their end


@dataclass(frozen=True)
class BadCell:
    """A value that should be text and is not even UTF-8."""

    problem: str


def split_row_groups(name: str, field: str, chunk_bytes: int) -> Iterator[RowGroups]:
    """All row groups in order, neighbours together while their text is within `chunk_bytes`."""
    with open_parquet(name) as file:
        _check_column(name, file, field)
        groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    together: list[int] = []
    size = row = first_row = consumed = 0
    for number, group in enumerate(groups):
        text, stored = _text_size(group, field), _stored_size(group)
        if together and size + text > chunk_bytes:
            yield RowGroups(tuple(together), first_row, consumed)
            together, size, first_row = [], 0, row
        together.append(number)
        size, row, consumed = size + text, row + group.num_rows, consumed + stored
    if together:
        yield RowGroups(tuple(together), first_row, consumed)


def read_cells(name: str, field: str, groups: tuple[int, ...]) -> Iterator[Any]:
    """The values of a column in some row groups, in order."""
    with open_parquet(name) as file:
        _check_column(name, file, field)
        for batch in file.iter_batches(_ROWS_AT_ONCE, list(groups), columns=[field]):
            column = batch.column(0)
            try:
                yield from column.to_pylist()
            except UnicodeDecodeError:
                yield from map(_cell, column)


def _cell(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        return BadCell(f"{error.reason} at byte {error.start} of the text")


@contextmanager
def open_parquet(name: str) -> Iterator[Any]:
    """An open Parquet file; what goes wrong inside is said in one sentence."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "reading Parquet files") from None
    if not is_file(name):
        raise FileError(f"{name}: no such file")
    try:
        # A small buffer and no prefetching: a row group may be larger than memory.
        with ExitStack() as held:
            raw = held.enter_context(open_file(name)) if as_url(name) else name
            file = pyarrow.parquet.ParquetFile(raw, buffer_size=_BUFFER, pre_buffer=False)
            yield held.enter_context(file)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise FileError(f"{name}: not readable as Parquet ({reason}); copy it again") from None


def _check_column(name: str, file: Any, field: str) -> None:
    import pyarrow.types as types

    check_columns(name, file.schema_arrow.names, field)
    kind = file.schema_arrow.field(field).type
    inner = kind
    if types.is_list(inner) or types.is_large_list(inner):
        inner = inner.value_type
    if types.is_dictionary(inner):
        inner = inner.value_type
    if not (types.is_string(inner) or types.is_large_string(inner)):
        raise FormatError(f"{name}: column {field!r} holds {kind}, not text; choose with --field")


def _text_size(group: Any, field: str) -> int:
    """Bytes of a row group's text, uncompressed; a list's column is named below the field."""
    chunks = (group.column(i) for i in range(group.num_columns))
    return sum(
        chunk.total_uncompressed_size
        for chunk in chunks
        if chunk.path_in_schema.partition(".")[0] == field
    )


def _stored_size(group: Any) -> int:
    return sum(group.column(i).total_compressed_size for i in range(group.num_columns))

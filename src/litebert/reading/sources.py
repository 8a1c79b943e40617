"""Where raw text comes from, and how it is cut into units of work.

`find_sources` turns the user's arguments into a numbered list of sources; `cut_units` cuts a source
into units of about 16 MiB, between documents. Both are pure functions of what they are given, so
that any number of workers, parts and restarts sees the same units. Cutting is cheap: what a unit
says is left to `records.read_documents`, usually in another process.

With `on_error = "skip"` a bad record, or what follows the damage in a broken archive, is counted
and left out. What makes a whole source useless always stops: a file that is missing, binary or not
what its name says, a table without the wanted column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from litebert.base.config import Settings
from litebert.base.errors import FormatError, SettingsError
from litebert.reading import hub
from litebert.reading.cutting import (
    BlankLine,
    Boundary,
    EndOfFile,
    LineEnd,
    UnquotedLineEnd,
    cut_spans,
    first_record,
)
from litebert.reading.listing import list_inputs
from litebert.reading.parquet import cut_row_groups
from litebert.reading.signatures import not_text
from litebert.reading.streams import PIECE, Stream, is_plain_file, open_stream
from litebert.reading.tables import parse_header

UNIT_BYTES = 16 * 2**20
_HEAD = 4096


class ReadSettings(Settings):
    """How raw text is to be understood."""

    format: Literal["auto", "sentences", "paragraphs", "file", "jsonl", "csv", "tsv", "parquet"] = (
        "auto"  # auto: by each file's name
    )
    field: str = "text"  # the key of a JSONL record, the column of a table
    on_error: Literal["stop", "skip"] = "stop"


@dataclass(frozen=True)
class Source:
    """A file, standard input, or a dataset."""

    number: int  # its place in the list of sources
    name: str  # as the user knows it
    format: str  # never "auto"
    size: int | None  # bytes on disk, where known


@dataclass(frozen=True)
class Unit:
    """A piece of work: some whole documents of a source, as bytes or as the place to read them."""

    source: Source
    number: int  # within its source
    first_line: int  # from 1, of the decompressed text; 0: not known (a row's number for Parquet)
    first_byte: int  # of the decompressed text
    end_byte: int
    text: bytes | None  # None: read it from the file
    consumed: int  # bytes of the file on disk up to the end of this unit, to show progress
    columns: tuple[str, ...] = ()  # of a CSV or TSV table
    row_groups: tuple[int, ...] = ()  # of a Parquet file
    overlong: bool = False  # the last record goes on past the end, beyond the limit
    damage: str = ""  # why the last record is incomplete: the archive is damaged


_BOUNDARIES: dict[str, type[Boundary]] = {
    "sentences": BlankLine,
    "paragraphs": BlankLine,
    "file": EndOfFile,
    "jsonl": LineEnd,
    "tsv": LineEnd,
    "csv": UnquotedLineEnd,
}


def find_sources(inputs: Sequence[str], settings: ReadSettings) -> list[Source]:
    """The sources behind files, folders, globs, `-` and `hf:` names, numbered in order.

    The order is the user's, and within a folder or glob that of the relative paths, so it does not
    depend on the machine. Folders give the files whose extension is known (and fits the format, if
    one is set), hidden ones left out; what is named directly or by a glob is always taken.
    """
    found = list_inputs(inputs, settings.format)
    return [Source(number, *one) for number, one in enumerate(found)]


def check_source(source: Source, settings: ReadSettings) -> None:
    """Open a file, look at its first bytes and header, and raise if it can give no text.

    `cut_units` does this too, but perhaps hours later. Standard input and datasets are not checked.
    """
    if source.format == "parquet":
        next(cut_row_groups(source.name, settings.field, UNIT_BYTES), None)
    elif source.size is not None:
        with open_stream(source.name) as stream:
            _start(source, settings, stream)


def cut_units(
    source: Source, settings: ReadSettings, unit_bytes: int = UNIT_BYTES
) -> Iterator[Unit]:
    """The units of a source, in order; a pure function of its content and `unit_bytes`."""
    if unit_bytes < 1:
        raise SettingsError(f"unit_bytes = {unit_bytes}: must be at least 1")
    if source.format == "parquet":
        yield from _parquet_units(source, settings, unit_bytes)
        return
    with _open(source, settings) as stream:
        columns, lines = _start(source, settings, stream)
        boundary = _BOUNDARIES[source.format]()
        keep = not is_plain_file(source.name)
        for number, span in enumerate(cut_spans(stream, boundary, unit_bytes, keep=keep)):
            yield Unit(
                source=source,
                number=number,
                first_line=1 + lines + span.newlines if keep else 0,
                first_byte=span.start,
                end_byte=span.stop,
                text=span.text,
                consumed=stream.consumed,
                columns=columns,
                overlong=span.overlong,
                damage=span.damage,
            )


def _parquet_units(source: Source, settings: ReadSettings, unit_bytes: int) -> Iterator[Unit]:
    for number, rows in enumerate(cut_row_groups(source.name, settings.field, unit_bytes)):
        yield Unit(
            source=source,
            number=number,
            first_line=rows.first_row + 1,
            first_byte=0,
            end_byte=0,
            text=None,
            consumed=rows.consumed,
            row_groups=rows.groups,
        )


def _open(source: Source, settings: ReadSettings) -> Stream:
    if source.name.startswith(hub.PREFIX):
        return Stream(source.name, None, hub.json_lines(source.name, settings.field))
    return open_stream(source.name)


def _start(source: Source, settings: ReadSettings, stream: Stream) -> tuple[tuple[str, ...], int]:
    """Check the first bytes, and go past the header of a table: its columns, and its lines."""
    if problem := not_text(stream.peek(_HEAD)):
        raise FormatError(f"{source.name}: {problem}")
    if source.format not in ("csv", "tsv") or stream.at_end():
        return (), 0
    record = first_record(stream, _BOUNDARIES[source.format]())
    if record is None:
        raise FormatError(
            f"{source.name}, line 1: the header is longer than {PIECE // 2**20} MiB; "
            "the first line must name the columns"
        )
    columns = parse_header(source.name, record, source.format, settings.field)
    return columns, record.count(b"\n")

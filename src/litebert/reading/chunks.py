"""Sources split into chunks of about 16 MiB, between documents.

`split_chunks` is a pure function of a source's content and `chunk_bytes`, so that any number of
workers, parts and restarts sees the same chunks. Splitting is cheap: what a chunk says is left to
`records.read_documents`, usually in another process.

With `on_error = "skip"` a bad record, or what follows the damage in a broken archive, is counted
and left out. What makes a whole source useless always stops: a file that is missing, binary or not
what its name says, a table without the wanted column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from litebert.base.errors import FormatError, SettingsError
from litebert.base.settings import Settings
from litebert.reading import hub
from litebert.reading.boundaries import (
    BlankLine,
    Boundary,
    EndTag,
    LineEnd,
    UnquotedLineEnd,
    first_record,
    split_spans,
)
from litebert.reading.decoders import BUFFER_BYTES
from litebert.reading.json_list import json_items
from litebert.reading.parquet import split_row_groups
from litebert.reading.signatures import BOM, not_text
from litebert.reading.sources import Source
from litebert.reading.streams import Stream, is_plain_file, open_stream
from litebert.reading.tables import NO_HEADER, Header, parse_header, told_comma

CHUNK_BYTES = 16 * 2**20
_HEAD = 4096


class ReadSettings(Settings):
    """How raw text is to be understood."""

    format: Literal[
        "auto",
        "sentences",
        "paragraphs",
        "file",
        "jsonl",
        "json",
        "csv",
        "tsv",
        "parquet",
        "wikiextractor",
    ] = Field(
        default="auto", description="format of the inputs; auto: by each file's name and beginning"
    )
    field: str = Field(
        default="text", description="the key or column that holds the text; a column also by number"
    )
    strip_markup: bool = Field(default=False, description="take wiki and HTML markup out")
    on_error: Literal["stop", "skip"] = Field(
        default="stop", description="stop at the first bad record, or skip and count them"
    )


@dataclass(frozen=True)
class Chunk:
    """Some whole documents of a source, as bytes or as the place to read them."""

    source: Source
    number: int  # within its source
    consumed: int  # bytes of the file on disk up to its end, to show progress
    first_line: int  # from 1, of the decompressed text; 0: not known (a row's number for Parquet)
    first_byte: int = 0  # of the decompressed text
    end_byte: int = 0
    text: bytes | None = None  # None: read it from the file
    header: Header = NO_HEADER  # of a CSV or TSV table
    row_groups: tuple[int, ...] = ()  # of a Parquet file
    overlong: bool = False  # the last record goes on past the end, beyond the limit
    damage: str = ""  # why the last record is incomplete: the archive is damaged


_BOUNDARIES: dict[str, type[Boundary]] = {
    "sentences": BlankLine,
    "paragraphs": BlankLine,
    "file": Boundary,
    "jsonl": LineEnd,
    "tsv": LineEnd,
    "csv": UnquotedLineEnd,
    "json": LineEnd,  # as json_items gives it
    "wikiextractor": EndTag,
}


def check_source(source: Source, settings: ReadSettings) -> None:
    """Open a file, look at its first bytes and header, and raise if it can give no text.

    `split_chunks` does this too, but perhaps hours later. Standard input and datasets are not
    checked.
    """
    if source.format == "parquet":
        next(split_row_groups(source.name, settings.field, CHUNK_BYTES), None)
    elif source.size is not None:
        with open_stream(source.name) as stream:
            _start(source, settings, stream)


def split_chunks(
    source: Source, settings: ReadSettings, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Chunk]:
    """The chunks of a source, in order; a pure function of its content and `chunk_bytes`."""
    if chunk_bytes < 1:
        raise SettingsError(f"chunk_bytes = {chunk_bytes}: must be at least 1")
    if source.format == "parquet":
        yield from _parquet_chunks(source, settings, chunk_bytes)
        return
    with _open(source, settings) as stream:
        header, lines = _start(source, settings, stream)
        boundary = _BOUNDARIES[source.format]()
        keep = source.format == "json" or not is_plain_file(source.name)
        for number, span in enumerate(split_spans(stream, boundary, chunk_bytes, keep=keep)):
            yield Chunk(
                source=source,
                number=number,
                first_line=1 + lines + span.newlines if keep else 0,
                first_byte=span.start,
                end_byte=span.stop,
                text=span.text,
                consumed=stream.consumed,
                header=header,
                overlong=span.overlong,
                damage=span.damage,
            )


def _parquet_chunks(source: Source, settings: ReadSettings, chunk_bytes: int) -> Iterator[Chunk]:
    for number, rows in enumerate(split_row_groups(source.name, settings.field, chunk_bytes)):
        yield Chunk(source, number, rows.consumed, rows.first_row + 1, row_groups=rows.groups)


def _open(source: Source, settings: ReadSettings) -> Stream:
    if source.name.startswith(hub.PREFIX):
        return Stream(source.name, None, hub.json_lines(source.name, settings.field))
    stream = open_stream(source.name)
    return Stream(source.name, None, json_items(stream)) if source.format == "json" else stream


def _start(source: Source, settings: ReadSettings, stream: Stream) -> tuple[Header, int]:
    """Check the first bytes, and go past the header of a table, which has some lines."""
    if problem := not_text(stream.peek(_HEAD)):
        raise FormatError(f"{source.name}: {problem}")
    if source.format not in ("csv", "tsv") or stream.at_end():
        return NO_HEADER, 0
    record, comma, skipped = _first_record(stream, source), None, 0
    if record is not None and source.format == "csv":
        comma = told_comma(record.removeprefix(BOM).decode(errors="replace").rstrip("\r\n"))
        if comma is not None and not stream.at_end():
            record, skipped = _first_record(stream, source), 1
    if record is None:
        raise FormatError(
            f"{source.name}, line 1: the header is longer than {BUFFER_BYTES // 2**20} MiB; "
            "the first line must name the columns"
        )
    following = stream.peek(_HEAD)
    header = parse_header(source.name, record, source.format, settings.field, following, comma)
    if not header.is_named:
        stream.put_back(record)
    return header, skipped + (record.count(b"\n") if header.is_named else 0)


def _first_record(stream: Stream, source: Source) -> bytes | None:
    return first_record(stream, _BOUNDARIES[source.format]())

"""From a chunk's bytes to its documents.

This runs in worker processes. Every record is decoded and parsed on its own, so that one bad record
costs one record: it stops the run with its place in the file, or is counted and left out, as
`on_error` says. Documents without any text are left out and counted, and are never an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from litebert.base.errors import FileError, FormatError
from litebert.reading import boundaries
from litebert.reading.chunks import Chunk, ReadSettings
from litebert.reading.decoders import BUFFER_BYTES
from litebert.reading.parquet import read_cells
from litebert.reading.parsing import (
    BadRecord,
    Document,
    decode,
    document_of,
    parser,
    too_long,
    without_markup,
)
from litebert.reading.signatures import BOM
from litebert.reading.streams import open_file
from litebert.reading.tables import csv_records

__all__ = ["Document", "Skipped", "read_documents"]

EMPTY = "empty document"
DAMAGED = "damaged archive"
_BLANK_LINES = re.compile(rb"\n(?:[ \t\r\f\v]*\n)+")
_END_TAG = re.compile(rb"</doc>\r?\n?")
_CHEAP_TO_COUNT = 256 * 2**20  # bytes before a chunk that are read again for a line number


@dataclass
class Skipped:
    """What was left out: how often for each reason, and the first message of each."""

    counts: dict[str, int] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, count: int = 1) -> None:
        self.counts[reason] = self.counts.get(reason, 0) + count

    def merge(self, other: Skipped) -> None:
        for reason, count in other.counts.items():
            self.add(reason, count)
        self.messages = {**other.messages, **self.messages}


def read_documents(chunk: Chunk, settings: ReadSettings, skipped: Skipped) -> Iterator[Document]:
    """The documents of a chunk, in order; what is left out is added to `skipped`."""
    if chunk.source.format == "parquet":
        yield from _parquet_documents(chunk, settings, skipped)
        return
    chunk, text = _load(chunk)
    parse = parser(chunk.source.format, settings.field, chunk.header)
    strips = settings.strip_markup or chunk.source.format == "wikiextractor"
    for start, record in _complete_records(chunk, text):
        try:
            if len(record) > boundaries.LARGEST_RECORD:
                raise too_long(chunk.source.format)
            document = parse(decode(record))
            document = without_markup(document) if strips else document
        except BadRecord as bad:
            place = partial(_place, chunk, text, start + bad.at, settings)
            _refuse(bad, place, settings, skipped)
            continue
        if document is not None:
            yield document
        elif record.strip():  # a blank line is nothing; a record without text is something
            skipped.add(EMPTY)
    _refuse_incomplete(chunk, text, settings, skipped)


def _parquet_documents(
    chunk: Chunk, settings: ReadSettings, skipped: Skipped
) -> Iterator[Document]:
    cells = read_cells(chunk.source.name, settings.field, chunk.row_groups)
    for row, cell in enumerate(cells, chunk.first_line):
        try:
            document = document_of(cell, settings.field)
            document = without_markup(document) if settings.strip_markup else document
        except BadRecord as bad:
            _refuse(bad, lambda row=row: f"{chunk.source.name}, row {row:,}", settings, skipped)
            continue
        if document is not None:
            yield document
        else:
            skipped.add(EMPTY)


def _load(chunk: Chunk) -> tuple[Chunk, bytes]:
    """The bytes of a chunk, without a mark of UTF-8 at the start of the file."""
    text = _read_range(chunk) if chunk.text is None else chunk.text
    if chunk.first_byte == 0 and text.startswith(BOM):
        return replace(chunk, first_byte=len(BOM)), text.removeprefix(BOM)
    return chunk, text


def _read_range(chunk: Chunk) -> bytes:
    name, size = chunk.source.name, chunk.end_byte - chunk.first_byte
    with open_file(name) as file:
        try:
            file.seek(chunk.first_byte)
            text = file.read(size)
        except OSError as error:
            raise FileError(f"{name}: cannot be read ({error})") from None
    if len(text) != size:
        raise FileError(f"{name}: became shorter while it was read; start again when it is whole")
    return text


def _complete_records(chunk: Chunk, text: bytes) -> Iterator[tuple[int, bytes]]:
    """Records with their places in the text, the last one left out if it was cut off."""
    records = _split(text, chunk.source.format)
    if not (chunk.overlong or chunk.damage):
        yield from records
        return
    before: tuple[int, bytes] | None = None
    for record in records:
        if before is not None:
            yield before
        before = record


def _split(text: bytes, format: str) -> Iterator[tuple[int, bytes]]:
    if format == "file":
        yield 0, text
    elif format in ("sentences", "paragraphs"):
        start = 0
        for blank in _BLANK_LINES.finditer(text):
            yield start, text[start : blank.start()]
            start = blank.end()
        yield start, text[start:]
    elif format == "wikiextractor":
        start = 0
        for closed in _END_TAG.finditer(text):
            yield start, text[start : closed.start()]
            start = closed.end()
        yield start, text[start:]
    else:
        start = 0
        quoted = format == "csv" and b'"' in text
        for record in (row for _, row in csv_records(text)) if quoted else text.split(b"\n"):
            yield start, record
            start += len(record) + 1


def _refuse(
    bad: BadRecord, place: Callable[[], str], settings: ReadSettings, skipped: Skipped
) -> None:
    """Stop at a bad record, or count it; only the first of a kind is worth a message."""
    if settings.on_error == "stop":
        hint = "; to leave such records out, pass --on-error skip"
        raise FormatError(f"{place()}: {bad.reason}{bad.detail}{hint}")
    skipped.add(bad.reason)
    if bad.reason not in skipped.messages:
        skipped.messages[bad.reason] = f"{place()}: {bad.reason}{bad.detail}"


def _refuse_incomplete(chunk: Chunk, text: bytes, settings: ReadSettings, skipped: Skipped) -> None:
    """The same for a last record that was cut off."""
    if chunk.overlong:
        *_, (start, _record) = _split(text, chunk.source.format)
        _refuse(
            too_long(chunk.source.format),
            partial(_place, chunk, text, start, settings),
            settings,
            skipped,
        )
    if chunk.damage and settings.on_error == "stop":
        raise FileError(chunk.damage)
    if chunk.damage:
        skipped.add(DAMAGED)
        skipped.messages.setdefault(DAMAGED, chunk.damage)


def _place(chunk: Chunk, text: bytes, start: int, settings: ReadSettings) -> str:
    """Where a byte of the text is, for people: file, line and byte of the decompressed file."""
    byte = f"byte {chunk.first_byte + start:,}"
    if chunk.first_line or settings.on_error == "stop" or chunk.first_byte <= _CHEAP_TO_COUNT:
        line = (chunk.first_line or _lines_before(chunk) + 1) + text.count(b"\n", 0, start)
        return f"{chunk.source.name}, line {line:,} ({byte})"
    return f"{chunk.source.name}, {byte}"


def _lines_before(chunk: Chunk) -> int:
    """Newlines of a plain file before a chunk, counted only when a message needs them."""
    lines, left = 0, chunk.first_byte
    with open_file(chunk.source.name) as file:
        while left > 0 and (piece := file.read(min(BUFFER_BYTES, left))):
            lines += piece.count(b"\n")
            left -= len(piece)
    return lines

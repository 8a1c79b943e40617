"""From a unit's bytes to its documents.

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
from litebert.reading import cutting
from litebert.reading.parquet import read_cells
from litebert.reading.parsing import BadRecord, Document, decode, document_of, parser, too_long
from litebert.reading.signatures import BOM
from litebert.reading.sources import ReadSettings, Unit
from litebert.reading.streams import PIECE, open_file

__all__ = ["Document", "Skipped", "read_documents"]

EMPTY = "empty document"
DAMAGED = "damaged archive"
_BLANK_LINES = re.compile(rb"\n(?:[ \t\r\f\v]*\n)+")
_CHEAP_TO_COUNT = 256 * 2**20  # bytes before a unit that are read again for a line number


@dataclass
class Skipped:
    """What was left out: how often for each reason, and the first message of each."""

    counts: dict[str, int] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, count: int = 1) -> None:
        """Count something left out."""
        self.counts[reason] = self.counts.get(reason, 0) + count

    def merge(self, other: Skipped) -> None:
        """Add what a later unit left out."""
        for reason, count in other.counts.items():
            self.add(reason, count)
        self.messages = {**other.messages, **self.messages}


def read_documents(unit: Unit, settings: ReadSettings, skipped: Skipped) -> Iterator[Document]:
    """The documents of a unit, in order; what is left out is added to `skipped`."""
    if unit.source.format == "parquet":
        yield from _parquet_documents(unit, settings, skipped)
        return
    unit, text = _load(unit)
    parse = parser(unit.source.format, settings.field, unit.columns)
    for start, record in _complete_records(unit, text):
        try:
            if len(record) > cutting.LARGEST_RECORD:
                raise too_long(unit.source.format)
            document = parse(decode(record))
        except BadRecord as bad:
            place = partial(_place, unit, text, start + bad.at, settings)
            _refuse(bad, place, settings, skipped)
            continue
        if document is not None:
            yield document
        elif record.strip():  # a blank line is nothing; a record without text is something
            skipped.add(EMPTY)
    _refuse_incomplete(unit, text, settings, skipped)


def _parquet_documents(unit: Unit, settings: ReadSettings, skipped: Skipped) -> Iterator[Document]:
    cells = read_cells(unit.source.name, settings.field, unit.row_groups)
    for row, cell in enumerate(cells, unit.first_line):
        try:
            document = document_of(cell, settings.field)
        except BadRecord as bad:
            _refuse(bad, lambda row=row: f"{unit.source.name}, row {row:,}", settings, skipped)
            continue
        if document is not None:
            yield document
        else:
            skipped.add(EMPTY)


def _load(unit: Unit) -> tuple[Unit, bytes]:
    """The bytes of a unit, without a mark of UTF-8 at the start of the file."""
    text = _read_range(unit) if unit.text is None else unit.text
    if unit.first_byte == 0 and text.startswith(BOM):
        return replace(unit, first_byte=len(BOM)), text.removeprefix(BOM)
    return unit, text


def _read_range(unit: Unit) -> bytes:
    name, size = unit.source.name, unit.end_byte - unit.first_byte
    with open_file(name) as file:
        try:
            file.seek(unit.first_byte)
            text = file.read(size)
        except OSError as error:
            raise FileError(f"{name}: cannot be read ({error})") from None
    if len(text) != size:
        raise FileError(f"{name}: became shorter while it was read; start again when it is whole")
    return text


def _complete_records(unit: Unit, text: bytes) -> Iterator[tuple[int, bytes]]:
    """Records with their places in the text, the last one left out if it was cut off."""
    records = _split(text, unit.source.format)
    if not (unit.overlong or unit.damage):
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
    else:
        start = 0
        for record in _rows(text) if format == "csv" and b'"' in text else text.split(b"\n"):
            yield start, record
            start += len(record) + 1


def _rows(text: bytes) -> Iterator[bytes]:
    """CSV records: lines, joined while the number of quotes is odd."""
    lines: list[bytes] = []
    inside = False
    for line in text.split(b"\n"):
        lines.append(line)
        inside ^= line.count(b'"') % 2 == 1
        if not inside:
            yield line if len(lines) == 1 else b"\n".join(lines)
            lines.clear()
    if lines:
        yield b"\n".join(lines)


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


def _refuse_incomplete(unit: Unit, text: bytes, settings: ReadSettings, skipped: Skipped) -> None:
    """The same for a last record that was cut off."""
    if unit.overlong:
        *_, (start, _record) = _split(text, unit.source.format)
        _refuse(
            too_long(unit.source.format),
            partial(_place, unit, text, start, settings),
            settings,
            skipped,
        )
    if unit.damage and settings.on_error == "stop":
        raise FileError(unit.damage)
    if unit.damage:
        skipped.add(DAMAGED)
        skipped.messages.setdefault(DAMAGED, unit.damage)


def _place(unit: Unit, text: bytes, start: int, settings: ReadSettings) -> str:
    """Where a byte of the text is, for people: file, line and byte of the decompressed file."""
    byte = f"byte {unit.first_byte + start:,}"
    if unit.first_line or settings.on_error == "stop" or unit.first_byte <= _CHEAP_TO_COUNT:
        line = (unit.first_line or _lines_before(unit) + 1) + text.count(b"\n", 0, start)
        return f"{unit.source.name}, line {line:,} ({byte})"
    return f"{unit.source.name}, {byte}"


def _lines_before(unit: Unit) -> int:
    """Newlines of a plain file before a unit, counted only when a message needs them."""
    lines, left = 0, unit.first_byte
    with open_file(unit.source.name) as file:
        while left > 0 and (piece := file.read(min(PIECE, left))):
            lines += piece.count(b"\n")
            left -= len(piece)
    return lines

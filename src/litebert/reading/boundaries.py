"""Where documents end, and a stream of bytes split there into spans of about the same size.

The rule: from the start of a span go to the next multiple of `chunk_bytes`, then on to the first
document boundary. It depends on nothing but content and `chunk_bytes`, so that a file and its
compressed copy are cut alike, and so that a plain file is cut by looking only at those places.
CSV is the exception: whether a line end is inside quotes depends on everything before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from litebert.reading.decoders import BUFFER_BYTES
from litebert.reading.streams import DamagedError, Stream

LARGEST_RECORD = 64 * 2**20
_SCAN = 2**16  # a boundary is usually near


class Boundary:
    """Where documents end in one format: by default nowhere, the whole file is one document.

    It remembers across pieces what it needs to know.
    """

    needs_all = False  # whether bytes before the place of search matter

    def pass_over(self, piece: bytes) -> None:
        """Take note of bytes in which no boundary is wanted; the search starts after them."""

    def find(self, piece: bytes) -> int:
        """The end of the first boundary in this piece; 0 if it has none."""
        return 0


class LineEnd(Boundary):
    """Every line is a record: JSONL, TSV."""

    def find(self, piece: bytes) -> int:
        return piece.find(b"\n") + 1


class BlankLine(Boundary):
    """A line of nothing but white space ends a document."""

    _blank = re.compile(rb"\n[ \t\r\f\v]*\n")
    _rest_of_blank = re.compile(rb"[ \t\r\f\v]*\n")

    def __init__(self) -> None:
        self._open = False  # the last piece ended in what may become a blank line

    def pass_over(self, piece: bytes) -> None:
        self._open = False  # a line that starts before the place of search does not count

    def find(self, piece: bytes) -> int:
        found = self._rest_of_blank.match(piece) if self._open else None
        found = found or self._blank.search(piece)
        if found:
            self._open = False
            return found.end()
        newline = piece.rfind(b"\n")
        self._open = not piece[newline + 1 :].strip() and (newline >= 0 or self._open)
        return 0


class EndTag(Boundary):
    """A line that closes a document: WikiExtractor's </doc>."""

    _tag = b"</doc>\n"

    def __init__(self) -> None:
        self._tail = b""  # of the last piece, which may end within the tag

    def pass_over(self, piece: bytes) -> None:
        self._tail = b""

    def find(self, piece: bytes) -> int:
        joined = self._tail + piece
        end = joined.find(self._tag)
        if end >= 0:
            place, self._tail = end + len(self._tag) - len(self._tail), b""
            return place
        self._tail = joined[-len(self._tag) + 1 :]
        return 0


class UnquotedLineEnd(Boundary):
    """A newline after an even number of quotes: CSV as RFC 4180 has it."""

    needs_all = True

    def __init__(self) -> None:
        self._inside = False

    def pass_over(self, piece: bytes) -> None:
        self._inside ^= piece.count(b'"') % 2 == 1

    def find(self, piece: bytes) -> int:
        start = 0
        while newline := piece.find(b"\n", start) + 1:
            self._inside ^= piece.count(b'"', start, newline) % 2 == 1
            start = newline
            if not self._inside:
                return newline
        self._inside ^= piece.count(b'"', start) % 2 == 1
        return 0


@dataclass(frozen=True)
class ByteSpan:
    """Bytes [start, stop) of a stream; `text` holds them when they were asked for."""

    start: int
    stop: int
    text: bytes | None
    newlines: int  # before `start`; counted only when bytes are asked for
    overlong: bool = False  # the last record goes on past `stop`, beyond the limit
    damage: str = ""  # the last record is incomplete, because the archive is damaged


class _Keeper:
    """The bytes passed since the start of a span, and the newlines passed since the beginning."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self.newlines = 0
        self._pieces: list[bytes] = []

    def add(self, piece: bytes) -> None:
        if self.wanted:
            self._pieces.append(piece)
            self.newlines += piece.count(b"\n")

    def take(self, most: int | None = None) -> bytes | None:
        """All bytes since the last call, or the first of them."""
        if not self.wanted:
            return None
        while most is not None and sum(map(len, self._pieces[:-1])) > most:
            self._pieces.pop()
        text = b"".join(self._pieces)
        self._pieces.clear()
        return text[:most]


def split_spans(
    stream: Stream, boundary: Boundary, chunk_bytes: int, *, keep: bool
) -> Iterator[ByteSpan]:
    """All spans from the stream's place to its end; `keep` says whether to return their bytes."""
    keeper = _Keeper(keep)
    while True:
        start, newlines = stream.here, keeper.newlines
        target = (start // chunk_bytes + 1) * chunk_bytes
        try:
            _go_to(stream, boundary, target, keeper)
            found = _go_to_boundary(stream, boundary, LARGEST_RECORD, keeper)
            ended = not found and stream.at_end()
        except DamagedError as error:
            yield ByteSpan(start, stream.here, keeper.take(), newlines, damage=str(error))
            return
        if ended and stream.here == start:
            return
        if found or ended:
            yield ByteSpan(start, stream.here, keeper.take(), newlines)
            continue
        # A little of a record that is too long is enough to show where it starts.
        stop = min(target + BUFFER_BYTES, stream.here)
        yield ByteSpan(start, stop, keeper.take(stop - start), newlines, overlong=True)
        if type(boundary) is Boundary:
            return
        _pass_record(stream, boundary, keeper)


def first_record(stream: Stream, boundary: Boundary) -> bytes | None:
    """The first record of a stream (a table's header) with its line end; None if too long."""
    keeper = _Keeper(True)
    if _go_to_boundary(stream, boundary, BUFFER_BYTES, keeper) or stream.at_end():
        return keeper.take()
    return None


def _go_to(stream: Stream, boundary: Boundary, target: int, keeper: _Keeper) -> None:
    if not keeper.wanted and not boundary.needs_all:
        boundary.pass_over(b"")
        stream.skip(target - stream.here)
        return
    while stream.here < target and (piece := stream.read(target - stream.here)):
        boundary.pass_over(piece)
        keeper.add(piece)


def _go_to_boundary(stream: Stream, boundary: Boundary, most: int, keeper: _Keeper) -> bool:
    limit = stream.here + most
    while stream.here < limit and (piece := stream.read(min(_SCAN, limit - stream.here))):
        end = boundary.find(piece)
        if end:
            stream.unread(len(piece) - end)
        keeper.add(piece[:end] if end else piece)
        if end:
            return True
    return False


def _pass_record(stream: Stream, boundary: Boundary, keeper: _Keeper) -> None:
    """To the end of a record of any length; damage is left for the next read to meet again."""
    try:
        while not _go_to_boundary(stream, boundary, BUFFER_BYTES, keeper) and not stream.at_end():
            keeper.take()
        keeper.take()
    except DamagedError:
        keeper.take()

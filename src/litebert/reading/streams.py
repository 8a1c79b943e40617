"""Opening what holds text: a file, plain or compressed, here or behind a URL, a pipe, as bytes.

Everything is read in pieces of at most 1 MiB, so a decompression bomb or an endless line costs time
and never memory. A stream can be read, looked into, and stepped back by what was just read; a plain
file can also be skipped through without reading it, which is what makes cutting a corpus cheap.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

from litebert.base.errors import FileError, FormatError
from litebert.base.remote.objects import object_at, open_object
from litebert.base.remote.urls import as_url
from litebert.reading.decoders import BUFFER_BYTES, DECODERS, decompress, is_damage
from litebert.reading.signatures import looks_like

STDIN = "-"
_KINDS = {".gz": "gzip data", ".xz": "xz data", ".zst": "zstd data"}


class DamagedError(FileError):
    """Compressed data that ends early or cannot be decompressed further."""


class Stream:
    """Bytes in order: a piece at a time, with a place (`here`) counted in decompressed bytes."""

    def __init__(self, name: str, raw: BinaryIO | None, pieces: Iterator[bytes]) -> None:
        self.name = name
        self.here = 0
        self._raw, self._pieces = raw, pieces
        self._piece, self._place = b"", 0
        self._consumed = 0
        self._failure: DamagedError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._raw is not None:
            self._raw.close()

    @property
    def consumed(self) -> int:
        """Bytes of the file itself used so far; smaller than `here` when it is compressed."""
        return self._consumed

    def read(self, most: int) -> bytes:
        """The next bytes, at most `most` and at most a piece; none at the end."""
        if self._place == len(self._piece):
            self._fill()
        read = self._piece[self._place : self._place + most]
        self._place += len(read)
        self.here += len(read)
        return read

    def unread(self, count: int) -> None:
        """Step back by at most what the last `read` gave."""
        self._place -= count
        self.here -= count

    def put_back(self, data: bytes) -> None:
        """Step back by bytes that were read, however many."""
        self._piece, self._place = data + self._piece[self._place :], 0
        self.here -= len(data)

    def skip(self, count: int) -> None:
        goal = self.here + count
        while self.here < goal and self.read(goal - self.here):
            pass

    def at_end(self) -> bool:
        following = len(self.read(1))
        self.unread(following)
        return not following

    def peek(self, most: int) -> bytes:
        """The next bytes without moving; none where the data is damaged (`read` will say so)."""
        with suppress(DamagedError):
            read = self.read(most)
            self.unread(len(read))
            return read
        return b""

    def _fill(self) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            self._piece, self._place = next(self._pieces, b""), 0
        except OSError as error:
            raise FileError(f"{self.name}: cannot be read ({error})") from None
        except Exception as error:
            if not is_damage(error):
                raise
            self._failure = DamagedError(
                f"{self.name}: damaged or cut short, nothing readable after byte {self.here:,} of "
                f"its decompressed text ({error}); make or copy the file again"
            )
            raise self._failure from None
        if self._raw is not None and self._raw.seekable():
            self._consumed = self._raw.tell()
        else:
            self._consumed += len(self._piece)


class FileStream(Stream):
    """A plain file, which can be skipped through without reading."""

    def __init__(self, name: str, raw: BinaryIO) -> None:
        super().__init__(name, raw, iter(()))
        self._file = raw
        self._size = raw.seek(0, os.SEEK_END)
        raw.seek(0)

    @property
    def consumed(self) -> int:
        return self.here

    def read(self, most: int) -> bytes:
        try:
            read = self._file.read(min(most, BUFFER_BYTES))
        except OSError as error:
            raise FileError(f"{self.name}: cannot be read ({error})") from None
        self.here += len(read)
        return read

    def unread(self, count: int) -> None:
        self.skip(-count)

    def put_back(self, data: bytes) -> None:
        self.skip(-len(data))

    def skip(self, count: int) -> None:
        self.here = self._file.seek(min(self.here + count, self._size))


def compression(name: str) -> str:
    """The compression a file's name declares: .gz, .xz, .zst or none."""
    suffix = Path(name).suffix.lower()
    return suffix if suffix in DECODERS else ""


def is_plain_file(name: str) -> bool:
    """Whether parts of a file can be read on their own: neither compressed, nor a pipe."""
    return name != STDIN and not compression(name) and is_file(name)


def is_file(name: str) -> bool:
    """Whether a name is that of a file, here or behind a URL, and not of a pipe or a folder."""
    return as_url(name) is not None or os.path.isfile(name)


def file_size(name: str) -> int | None:
    """The bytes of a file; None where they are not known, as of a pipe."""
    if url := as_url(name):
        found = object_at(url)
        return None if found is None else found.size
    return os.stat(name).st_size if os.path.isfile(name) else None


def file_version(name: str) -> int:
    """A number that changes when a file is written again: of one here, its time."""
    if url := as_url(name):
        found = object_at(url)
        return 0 if found is None else found.version
    return os.stat(name).st_mtime_ns


def open_stream(name: str) -> Stream:
    """The decompressed bytes of a file, of a pipe, or of standard input (`-`)."""
    if name == STDIN:
        return Stream(name, None, _pieces(sys.stdin.buffer))
    raw = open_file(name)
    if is_plain_file(name):
        return FileStream(name, raw)
    suffix = compression(name)
    if not suffix:
        return Stream(name, raw, _pieces(raw))
    try:
        _check_signature(name, raw, suffix)
        return Stream(name, raw, decompress(raw, DECODERS[suffix]()))
    except BaseException:
        raw.close()
        raise


def open_file(name: str) -> BinaryIO:
    """A file opened for reading, here or behind a URL, with an error that names it."""
    if url := as_url(name):
        return open_object(url)
    try:
        return open(name, "rb")
    except FileNotFoundError:
        raise FileError(f"{name}: no such file") from None
    except OSError as error:
        raise FileError(f"{name}: cannot be opened ({error})") from None


def _pieces(raw: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: raw.read(BUFFER_BYTES), b"")


def _check_signature(name: str, raw: BinaryIO, suffix: str) -> None:
    """A name is a promise: .gz must hold gzip data. An empty file is empty text."""
    if not raw.seekable():
        return
    head = raw.read(64)
    raw.seek(0)
    kind = looks_like(head)
    if head and kind != _KINDS[suffix] and kind != "zstd's skippable data":
        raise FormatError(
            f"{name}: named {suffix}, but it looks like {kind or 'uncompressed data'}; "
            "rename it or make it again"
        )

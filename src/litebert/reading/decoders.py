"""Decompressing .gz, .xz and .zst in pieces of at most 1 MiB, several members in a row included.

The three libraries differ in who keeps input that is not used up yet; a decoder hides that.
"""

from __future__ import annotations

import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Protocol

from litebert.base.errors import MissingExtraError

BUFFER_BYTES = 2**20
_INPUT = BUFFER_BYTES // 4
_LARGEST_XZ_MEMORY = 256 * 2**20  # xz -9 needs 65 MiB; a hostile file may ask for gigabytes
_LARGEST_ZSTD_WINDOW = 27  # as a power of two: what the zstd command itself accepts by default
_ZSTD_INPUT = 2048  # zstandard returns all it can, and a block of 4 bytes may give 128 KiB


class Decoder(Protocol):
    """One compressed member: give it input, or none when it is not hungry, and take a piece."""

    hungry: bool
    finished: bool
    rest: bytes

    def decode(self, data: bytes) -> bytes:
        """Some of the content; more may wait until it is hungry again."""
        ...


class _Gzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self.hungry, self.finished, self.rest = True, False, b""

    def decode(self, data: bytes) -> bytes:
        out = self._inner.decompress(self.rest + data if self.rest else data, BUFFER_BYTES)
        self.finished = self._inner.eof
        self.rest = self._inner.unused_data if self.finished else self._inner.unconsumed_tail
        self.hungry = not self.rest
        return out


class _Bounded:
    """Decoders of the standard library that keep their own input: xz, and zstd from 3.14 on."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.hungry, self.finished, self.rest = True, False, b""

    def decode(self, data: bytes) -> bytes:
        out = self._inner.decompress(data, BUFFER_BYTES)
        self.finished, self.rest = self._inner.eof, self._inner.unused_data
        self.hungry = not self.finished and self._inner.needs_input
        return out


class _Zstandard:
    """The zstandard package, fed in mouthfuls because it always returns all its output."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._data, self._place = b"", 0
        self.hungry, self.finished, self.rest = True, False, b""

    def decode(self, data: bytes) -> bytes:
        if data:
            self._data, self._place = data, 0
        mouthful = self._data[self._place : self._place + _ZSTD_INPUT]
        self._place += len(mouthful)
        out = self._inner.decompress(mouthful)
        self.finished = self._inner.eof
        self.hungry = not self.finished and self._place == len(self._data)
        if self.finished:
            self.rest = self._inner.unused_data + self._data[self._place :]
        return out


def _xz_decoders() -> Callable[[], Decoder]:
    return lambda: _Bounded(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_LARGEST_XZ_MEMORY))


def _zstd_decoders() -> Callable[[], Decoder]:
    if sys.version_info >= (3, 14):
        from compression import zstd  # pyright: ignore[reportMissingImports]

        window = {zstd.DecompressionParameter.window_log_max: _LARGEST_ZSTD_WINDOW}
        return lambda: _Bounded(zstd.ZstdDecompressor(options=window))
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("zstandard", "zstd", "reading .zst files") from None
    frames = zstandard.ZstdDecompressor(max_window_size=2**_LARGEST_ZSTD_WINDOW)
    return lambda: _Zstandard(frames.decompressobj())


DECODERS: dict[str, Callable[[], Callable[[], Decoder]]] = {
    ".gz": lambda: _Gzip,
    ".xz": _xz_decoders,
    ".zst": _zstd_decoders,
}


def decompress(raw: BinaryIO, start: Callable[[], Decoder]) -> Iterator[bytes]:
    """The content of all members of a compressed file, one after another, in bounded pieces."""
    decoder: Decoder | None = None
    data = raw.read(_INPUT)
    while data or (decoder is not None and not decoder.hungry):
        decoder = decoder or start()
        if piece := decoder.decode(data):
            yield piece
        data = b""
        if decoder.finished:
            data, decoder = decoder.rest.lstrip(b"\0"), None  # padding with zeros is allowed
        if not data and (decoder is None or decoder.hungry):
            data = raw.read(_INPUT)
            if decoder is None:
                data = data.lstrip(b"\0")
    if decoder is not None:
        raise EOFError("the data ends in the middle")


def is_damage(error: Exception) -> bool:
    """Whether an error means bad compressed data; zstd's comes from one of two packages."""
    return isinstance(error, zlib.error | lzma.LZMAError | EOFError) or (
        type(error).__name__ == "ZstdError"
    )

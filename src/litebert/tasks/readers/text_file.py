"""A file of labelled examples, whole in memory: its text, or its lines.

Labelled data is small beside raw text, and an error in it must name its line, so nothing is cut
into pieces here. A line ends at \\n and nowhere else: published sentences hold U+0085 and U+2028.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from litebert.base.errors import FormatError
from litebert.base.files import check_regular
from litebert.reading.decoders import BUFFER_BYTES
from litebert.reading.signatures import BOM, not_text
from litebert.reading.streams import STDIN, Stream, compression, open_stream

LARGEST_FILE = 2**31  # decompressed; SQuAD and RACE are well below a tenth of it
# What compressed data may become: text shrinks to a tenth, a bomb to a thousandth of its size.
FREE_BYTES, LARGEST_RATIO = 16 * 2**20, 50
FREE_MARKS = 200_000  # lines, lists and objects of a compressed file, and one more for each byte
_HEAD = 4096

Say = Callable[[str], None]


def quiet(message: str) -> None:
    """Say nothing: what readers do with remarks that nobody asked for."""


def read_text(path: Path | str) -> str:
    """The text of a file, plain or compressed (.gz, .xz, .zst), or of standard input (`-`).

    Marks of UTF-8 are dropped, at its start and, where files were joined, at the start of a line.
    """
    content = _read_bytes(str(path)).removeprefix(BOM).replace(b"\n" + BOM, b"\n")
    if problem := not_text(content[:_HEAD]):
        raise FormatError(f"{path}: {problem}")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"{path}, line {line:,}: not valid UTF-8 (0x{content[error.start]:02x}); "
            "convert the file to UTF-8"
        ) from None


def read_lines(path: Path | str) -> list[str]:
    """The lines of a file without their ends, \\n or \\r\\n; blank lines at its end are dropped."""
    lines = [line.removesuffix("\r") for line in read_text(path).split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _read_bytes(name: str) -> bytes:
    if name == STDIN:
        return _standard_input(sys.stdin.buffer)
    check_regular(Path(name))
    with open_stream(name) as stream:
        return _whole(stream, *largest_content(name))


@lru_cache(maxsize=1)
def _standard_input(raw: BinaryIO) -> bytes:
    """All of standard input, which gives its bytes once; a reader may look at them twice."""
    return _whole(open_stream(STDIN), LARGEST_FILE, LARGEST_FILE)


def _whole(stream: Stream, most: int, marks: int) -> bytes:
    """All bytes: so many at most, and of a compressed file so many lines, lists and objects."""
    pieces, size = [], 0
    while piece := stream.read(BUFFER_BYTES):
        size += len(piece)
        marks -= sum(map(piece.count, (b"\n", b"[", b"{"))) if compression(stream.name) else 0
        if size > most or marks < 0:
            raise FormatError(
                f"{stream.name}: more than {most:,} bytes of text, or too many lines for its size, "
                "for a file of labelled examples; split it, or decompress it if it is sound"
            )
        pieces.append(piece)
    return b"".join(pieces)


def largest_content(name: str) -> tuple[int, int]:
    """Bytes and records that a file may hold: for a compressed one by its size, lest it is a bomb.

    A record of Python's takes a kilobyte however small it is in the file.
    """
    if not compression(name) and not name.endswith(".parquet"):
        return LARGEST_FILE, LARGEST_FILE
    size = Path(name).stat().st_size
    return min(LARGEST_FILE, max(FREE_BYTES, LARGEST_RATIO * size)), FREE_MARKS + size

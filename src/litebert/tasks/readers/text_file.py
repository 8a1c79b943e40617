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
from litebert.reading.decoders import BUFFER_BYTES
from litebert.reading.signatures import BOM, not_text
from litebert.reading.streams import STDIN, Stream, open_stream

LARGEST_FILE = 2**31  # decompressed; SQuAD and RACE are well below a tenth of it
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
    with open_stream(name) as stream:
        return _whole(stream)


@lru_cache(maxsize=1)
def _standard_input(raw: BinaryIO) -> bytes:
    """All of standard input, which gives its bytes once; a reader may look at them twice."""
    return _whole(open_stream(STDIN))


def _whole(stream: Stream) -> bytes:
    pieces, size = [], 0
    while piece := stream.read(BUFFER_BYTES):
        size += len(piece)
        if size > LARGEST_FILE:
            raise FormatError(
                f"{stream.name}: more than {LARGEST_FILE:,} bytes of text, too many for a file of "
                "labelled examples; split it"
            )
        pieces.append(piece)
    return b"".join(pieces)

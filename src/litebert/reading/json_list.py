"""A list of JSON objects or texts as JSON lines: `[{"text": …}, …]`, also as an object's "data".

Items are found one after another, so that a list of any size is read in bounded memory, and a line
number in a message is an item's number.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator

from litebert.base.errors import FormatError
from litebert.reading import boundaries
from litebert.reading.decoders import BUFFER_BYTES
from litebert.reading.streams import Stream

_PLAIN = r'"[^"\\]*"|-?[\d.eE+-]+|true|false|null'
# The beginning of a list, perhaps within an object after a few plain values.
_START = re.compile(
    rf'\s*(?:\{{\s*(?:"[^"\\]*"\s*:\s*(?:{_PLAIN})\s*,\s*)*"data"\s*:\s*)?\[\s*(?=[{{"\]])'
)
_BETWEEN = re.compile(r'\s*(?:(,)\s*(?=[{"])|(\]))')
_ANOTHER = re.compile(r"[ \t]*\}?[ \t\r]*\n\s*[{[]")  # a line after the end of the list
_read_item = json.JSONDecoder().raw_decode


def is_json_list(head: bytes) -> bool:
    """Whether a JSON text that starts like this is a list rather than an object a line.

    What is whole after one line and goes on is none, whatever its first line is.
    """
    text = head.removeprefix(codecs.BOM_UTF8).decode(errors="ignore").lstrip()
    line, _, rest = text.partition("\n")
    return _START.match(text) is not None and not (rest.strip() and _is_whole(line))


def _is_whole(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def json_items(stream: Stream) -> Iterator[bytes]:
    """Each item of the list, as a JSON line."""
    with stream:
        text = _Text(stream)
        start = text.match(_START)
        if start is None:
            raise FormatError(
                f"{stream.name}: no list of JSON objects or texts; one a line is --format jsonl"
            )
        number, going = 1, not text.starts_with("]")
        while going:
            yield text.item(number)
            between = text.match(_BETWEEN)
            if between is None:
                raise _broken(
                    stream.name, number, "neither a comma nor the end of the list after it"
                )
            going, number = between[1] is not None, number + 1
        if text.match(_ANOTHER) is not None:
            raise FormatError(
                f"{stream.name}: after the list of {number - 1:,} items comes another line; an "
                "object a line is --format jsonl, and --field names its text"
            )


class _Text:
    """The text of a stream, read as far as it is needed."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._place = "", 0

    def _more(self) -> bool:
        """Read on; what was used is forgotten."""
        piece = self._stream.read(BUFFER_BYTES)
        try:
            text = self._decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            raise FormatError(
                f"{self._stream.name}: not valid UTF-8 before byte {self._stream.here:,} "
                f"({error.reason}); convert the file to UTF-8"
            ) from None
        self._text, self._place = self._text[self._place :] + text, 0
        return bool(piece)

    def starts_with(self, mark: str) -> bool:
        return self._text.startswith(mark, self._place)

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Go past a match, which must be short."""
        found = pattern.match(self._text, self._place)
        if found is None and self._more():
            found = pattern.match(self._text, self._place)
        self._place = found.end() if found else self._place
        return found

    def item(self, number: int) -> bytes:
        """Go past the next value; its bytes, in one line."""
        while True:
            try:
                _, end = _read_item(self._text, self._place)
                break
            except RecursionError:
                raise _broken(self._stream.name, number, "nested too deeply") from None
            except ValueError as error:
                left = len(self._text) - self._place
                if left > boundaries.LARGEST_RECORD or not self._more():
                    raise _broken(self._stream.name, number, str(error).partition(":")[0]) from None
        item, self._place = self._text[self._place : end], end
        return item.replace("\r", " ").replace("\n", " ").encode(errors="surrogatepass") + b"\n"


def _broken(name: str, number: int, why: str) -> FormatError:
    return FormatError(f"{name}, item {number:,}: not JSON ({why}); the file may be cut short")

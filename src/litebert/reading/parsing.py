"""One record of any format as a document, or the reason why it is none."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from litebert.reading import boundaries
from litebert.reading.markup import strip_markup
from litebert.reading.parquet import BadCell
from litebert.reading.tables import Header, parse_row, quoted_list

_read_json = json.JSONDecoder().raw_decode  # faster than json.loads on short lines
_TITLE = re.compile(r'title="([^"]*)"')
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class Document:
    """One document: text still to be split into sentences, or its sentences."""

    text: str | None
    sentences: list[str] | None


class BadRecord(Exception):
    """A record that gives no document: a reason to count, what to say, and the byte it is about."""

    def __init__(self, reason: str, detail: str = "", at: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.detail, self.at = reason, detail, at


def decode(record: bytes) -> str:
    """The text of a record."""
    if (nul := record.find(0)) >= 0:
        raise BadRecord("a NUL byte, as in binary data", at=nul)
    try:
        return record.decode().removeprefix("\ufeff")  # files that were joined have it inside
    except UnicodeDecodeError as error:
        detail = f" (0x{record[error.start]:02x}); convert the file to UTF-8"
        raise BadRecord("not valid UTF-8", detail, error.start) from None


def too_long(format: str) -> BadRecord:
    """What is wrong with a record beyond the limit."""
    what, advice = {
        "jsonl": ("a line", "split the document"),
        "tsv": ("a line", "split the document"),
        "csv": ("a record", "split the document, or close the quote before it"),
        "file": ("a document", "split the file, or choose another --format"),
    }.get(format, ("a document", "end documents with a blank line, or choose another --format"))
    return BadRecord(f"{what} longer than {boundaries.LARGEST_RECORD:,} bytes", f"; {advice}")


def parser(format: str, field: str, header: Header) -> Callable[[str], Document | None]:
    """The function that makes a document of a record's text."""
    match format:
        case "sentences":
            return lambda record: document_of(record.split("\n"), field)
        case "jsonl" | "json":
            return partial(_json_document, field=field)
        case "wikiextractor":
            return _wiki_document
        case "csv" | "tsv":
            return partial(_row_document, header=header, field=field, format=format)
        case _:
            return lambda record: document_of(record, field)


def _json_document(record: str, field: str) -> Document | None:
    record = record.strip(" \t\r")
    if not record:
        return None
    try:
        content, end = _read_json(record)
        if end != len(record):
            raise json.JSONDecodeError("more than one value", record, end)
    except json.JSONDecodeError as error:
        detail = f" ({error.msg} at character {error.pos:,}); one object a line is expected"
        raise BadRecord("not JSON", detail) from None
    except (ValueError, RecursionError):
        raise BadRecord("not JSON", " of any sane size (a number too long, or too deep)") from None
    if isinstance(content, str):
        return _whole_characters(record, document_of(content, field))
    if not isinstance(content, dict):
        raise BadRecord("not a JSON object", f" but {_kind(content)}; one a line is expected")
    if field not in content:
        raise BadRecord(
            f"no field {field!r}", f"; there are {quoted_list(content)} (choose with --field)"
        )
    return _whole_characters(record, document_of(content[field], field))


def _whole_characters(record: str, document: Document | None) -> Document | None:
    if document is not None and holds_half_pair(record, document.sentences or document.text):
        raise BadRecord("half a surrogate pair", ", which is no character")
    return document


def holds_half_pair(source: str, content: Any) -> bool:
    """JSON can write half a surrogate pair, which Python reads and UTF-8 cannot hold."""
    if not _HALF_PAIR.search(source):
        return False
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _row_document(record: str, header: Header, field: str, format: str) -> Document | None:
    record = record.removesuffix("\r")
    if not record.strip(" "):
        return None
    values = parse_row(record, format, header.comma)
    if values is None:
        if record.count('"') % 2:
            raise BadRecord("a quote is left open", "; double a quote that is part of a field")
        raise BadRecord("a quote out of place", "; put the field in quotes and double those inside")
    if len(values) != len(header.columns):
        raise BadRecord(
            "wrong number of fields", f": {len(values)}, the header {len(header.columns)}"
        )
    return document_of(values[header.columns.index(field)], field)


def _wiki_document(record: str) -> Document | None:
    """An article of WikiExtractor's, without its tag and the title in the line after it."""
    opening, _, text = record.strip().partition("\n")
    if not opening.startswith("<doc "):
        return document_of(record, "text")
    title = _TITLE.search(opening)
    first, _, rest = text.lstrip().partition("\n")
    named = title is not None and first.strip() == html.unescape(title[1])
    return document_of(rest if named else text, "text")


def without_markup(document: Document | None) -> Document | None:
    """A document without wiki and HTML markup; None if nothing is left."""
    if document is None:
        return None
    if document.text is not None:
        return document_of(strip_markup(document.text), "text")
    return document_of([strip_markup(one) for one in document.sentences or ()], "text")


def document_of(value: Any, field: str) -> Document | None:
    """Text, or a list of sentences, as a document; None if there is no text in it."""
    if isinstance(value, str):
        text = (value.replace("\r\n", "\n") if "\r" in value else value).strip()
        return Document(text, None) if text else None
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        sentences = [stripped for one in value if (stripped := one.strip())]
        return Document(None, sentences) if sentences else None
    if isinstance(value, BadCell):
        raise BadRecord("not valid UTF-8", f" ({value.problem})")
    raise BadRecord(f"field {field!r} is not text", f" but {_kind(value)}; choose with --field")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else "a value")

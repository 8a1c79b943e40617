"""Which format a file of examples has: by its name, or where that says nothing, by its content."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from litebert.reading.streams import compression

Format = Literal["csv", "tsv", "json", "parquet", "text", "columns"]

FORMATS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".txt": "text",
    ".text": "text",
    ".conll": "columns",
    ".bio": "columns",
    ".iob": "columns",
    ".iob2": "columns",
}


def format_of_name(path: Path | str) -> Format | None:
    """What a file's name says, before any .gz, .xz or .zst; None where it says nothing."""
    name = Path(path)
    return FORMATS.get((name.with_suffix("") if compression(name.name) else name).suffix.lower())


def format_of_text(text: str) -> Format:
    """The form of a text: JSON from its first bracket, TSV if its first line has a tab.

    Otherwise it is a text a line; commas say nothing, because sentences have them.
    """
    start = text.lstrip()
    if start.startswith(("{", "[{")) or (start[:1] == "[" and start[1:].lstrip()[:1] == "{"):
        return "json"
    return "tsv" if "\t" in start.partition("\n")[0] else "text"

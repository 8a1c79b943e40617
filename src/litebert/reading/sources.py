"""Where raw text comes from: the user's inputs, folders and globs unfolded, as a numbered list.

The order is the user's, and within a folder or glob that of the relative paths, by their parts and
character by character, so that neither the file system, nor the locale, nor where a folder lies on
a machine changes it.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from litebert.base.errors import FileError, FormatError, LitebertError, SettingsError
from litebert.base.remote.objects import list_objects
from litebert.base.remote.urls import as_url
from litebert.reading import hub
from litebert.reading.json_list import is_json_list
from litebert.reading.signatures import BOM
from litebert.reading.streams import STDIN, compression, file_size, is_file, open_stream

_FORMATS = {
    "": "paragraphs",
    ".txt": "paragraphs",
    ".text": "paragraphs",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
# Readings of the same files.
_AS_TEXT = ("sentences", "paragraphs", "file", "wikiextractor")
_AS_JSON = ("jsonl", "json")
_HEAD = 4096
_WIKIEXTRACTOR = re.compile(rb'<doc id="[^"\n]*"[^>\n]*>\r?\n')
_JSON_LINE = re.compile(rb'\{"(?:id|text|title|url)": ')


@dataclass(frozen=True)
class Source:
    """A file, standard input, or a dataset."""

    name: str  # as the user knows it
    format: str  # never "auto"
    size: int | None  # bytes on disk, where known
    number: int = 0  # its place in the list of sources


def find_sources(inputs: Sequence[str], format: str = "auto") -> list[Source]:
    """The sources behind files, folders, globs, URLs of these, `-` and `hf:` names, each once.

    Folders give the files whose extension is known (and fits the format, if one is set), hidden
    ones left out; what is named directly or by a glob is always taken.
    """
    if not inputs:
        raise SettingsError(
            "no input: name files, folders, globs, hf:NAME, or - for standard input"
        )
    found = [source for argument in inputs for source in _unfold(argument, format)]
    _refuse_repeated(found)
    return [replace(source, number=number) for number, source in enumerate(found)]


def _unfold(argument: str, format: str) -> Iterator[Source]:
    if argument == STDIN or argument.startswith(hub.PREFIX):
        yield _without_file(argument, format)
    elif url := as_url(argument):
        yield from _remote(url, format)
    elif os.path.isdir(argument):
        yield from _folder(argument, format)
    elif os.path.exists(argument):  # also a name that happens to look like a pattern
        yield _file(argument, format)
    elif glob.has_magic(argument):
        yield from _glob(argument, format)
    else:
        raise FileError(f"{argument}: no such file or folder")


def _without_file(argument: str, format: str) -> Source:
    if argument == STDIN and format == "parquet":
        raise SettingsError("standard input cannot be read as parquet; name the file instead")
    if argument == STDIN:
        return Source(argument, "paragraphs" if format == "auto" else format, None)
    hub.parse_name(argument)
    return Source(argument, "jsonl", None)  # a dataset has records, whatever files are


def _folder(folder: str, format: str) -> list[Source]:
    """The readable files below a folder; links to folders are not followed."""
    files = [
        os.path.join(place, name)
        for place, folders, names in os.walk(folder, onerror=_unreadable)
        for name in _visible(names, folders)
    ]
    return _readable(folder, [name for name in files if os.path.isfile(name)], format)


def _readable(folder: str, files: Iterable[str], format: str) -> list[Source]:
    """Those files of a folder that are meant."""
    found = [_file(name, format) for name in _sorted(files) if _belongs(name, format)]
    if not found:
        kinds = ", ".join(extension for extension in _FORMATS if extension)
        wanted = "" if format == "auto" else f" for format {format!r}"
        raise FileError(
            f"{folder}: no readable file{wanted} in this folder; read are {kinds}, also compressed "
            "as .gz, .xz, .zst; other files must be named directly"
        )
    return found


def _remote(url: str, format: str) -> list[Source]:
    """What is behind a URL, as of files here: an object, a folder of them, or a pattern's."""
    found = [entry.url for entry in list_objects(url)]
    if glob.has_magic(url) and found:
        return [_file(name, format) for name in _sorted(found)]
    if found == [url]:
        return [_file(url, format)]
    if not found:
        raise FileError(f"{url}: no such file or folder, or no file matches the pattern")
    hidden = re.compile(r"/\.").search
    shown = [name for name in found if not hidden(name.removeprefix(url))]
    return _readable(url, shown, format)


def _visible(names: list[str], folders: list[str]) -> list[str]:
    """Names that are not hidden; `os.walk` then also leaves out hidden folders."""
    folders[:] = [name for name in folders if not name.startswith(".")]
    return [name for name in names if not name.startswith(".")]


def _unreadable(error: OSError) -> None:
    raise FileError(f"{error.filename}: the folder cannot be read ({error.strerror})") from None


def _belongs(name: str, format: str) -> bool:
    """Whether a file of a folder is meant: a known extension, which fits a format that is set."""
    natural = _FORMATS.get(_extension(name))
    if natural is None:
        return False
    return format in ("auto", natural) or any(
        natural in alike and format in alike for alike in (_AS_TEXT, _AS_JSON)
    )


def _glob(pattern: str, format: str) -> list[Source]:
    """The files a pattern matches, whatever their extension; `**` stands for any folders."""
    files = _sorted(name for name in glob.glob(pattern, recursive=True) if os.path.isfile(name))
    if not files:
        raise FileError(f"{pattern}: no file matches this pattern")
    return [_file(name, format) for name in dict.fromkeys(files)]


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: Path(name).parts)


def _file(name: str, format: str) -> Source:
    if format == "auto":
        format = _by_content(name, _FORMATS.get(_extension(name), "paragraphs"))
    if format == "parquet" and compression(name):
        raise FormatError(f"{name}: a Parquet file is compressed inside; decompress it first")
    try:
        size = file_size(name)
    except OSError as error:
        raise FileError(f"{name}: cannot be read ({error.strerror})") from None
    return Source(name, format, size)


def _by_content(name: str, format: str) -> str:
    """The format of a file whose name leaves something open; a pipe must not be looked into."""
    if format not in ("paragraphs", "jsonl") or not is_file(name):
        return format
    head = b""
    with suppress(LitebertError), open_stream(name) as stream:  # reading it will say what is wrong
        head = stream.peek(_HEAD).removeprefix(BOM).lstrip()
    if format == "paragraphs" and _WIKIEXTRACTOR.match(head):
        return "wikiextractor"
    if format == "paragraphs" and not _extension(name) and _JSON_LINE.match(head):
        return "jsonl"  # WikiExtractor's with --json, whose files have no extension
    return "json" if format == "jsonl" and is_json_list(head) else format


def _extension(name: str) -> str:
    """The extension that tells the format: the last one that is not a compression's."""
    path = Path(name)
    return (path.with_suffix("") if compression(name) else path).suffix.lower()


def _refuse_repeated(sources: list[Source]) -> None:
    seen: dict[str, str] = {}
    for name in (source.name for source in sources):
        local = name != STDIN and not name.startswith(hub.PREFIX) and not as_url(name)
        same = os.path.abspath(name) if local else name
        if same in seen:
            raise SettingsError(
                f"{name}: given twice (also as {seen[same]}); its text would count double: "
                "name it once"
            )
        seen[same] = name

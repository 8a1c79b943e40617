"""The user's inputs as a list of files: folders and globs unfolded, in an order of their own.

Sorting is by the parts of relative paths, character by character, so that neither the file system,
nor the locale, nor where a folder lies on a machine changes the order.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from litebert.base.errors import FileError, FormatError, SettingsError
from litebert.reading import hub
from litebert.reading.streams import STDIN, compression

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
_AS_TEXT = ("sentences", "paragraphs", "file")  # three readings of the same files


class Input(NamedTuple):
    """One thing to read."""

    name: str
    format: str
    size: int | None


def list_inputs(inputs: Sequence[str], format: str) -> list[Input]:
    """Everything the inputs stand for, in order, each file once; `format` may be "auto"."""
    if not inputs:
        raise SettingsError(
            "no input: name files, folders, globs, hf:NAME, or - for standard input"
        )
    listed = [one for argument in inputs for one in _unfold(argument, format)]
    _refuse_repeated(listed)
    return listed


def _unfold(argument: str, format: str) -> Iterator[Input]:
    if argument == STDIN or argument.startswith(hub.PREFIX):
        yield _without_file(argument, format)
    elif os.path.isdir(argument):
        yield from _folder(argument, format)
    elif os.path.exists(argument):  # also a name that happens to look like a pattern
        yield _file(argument, format)
    elif glob.has_magic(argument):
        yield from _glob(argument, format)
    else:
        raise FileError(f"{argument}: no such file or folder")


def _without_file(argument: str, format: str) -> Input:
    if argument == STDIN and format == "parquet":
        raise SettingsError("standard input cannot be read as parquet; name the file instead")
    if argument == STDIN:
        return Input(argument, "paragraphs" if format == "auto" else format, None)
    hub.parse_name(argument)
    return Input(argument, "jsonl", None)  # a dataset has records, whatever files are


def _folder(folder: str, format: str) -> list[Input]:
    """The readable files below a folder; links to folders are not followed."""
    files = [
        os.path.join(place, name)
        for place, folders, names in os.walk(folder, onerror=_unreadable)
        for name in _visible(names, folders)
    ]
    found = [_file(name, format) for name in _sorted(files) if _belongs(name, format)]
    if not found:
        kinds = ", ".join(extension for extension in _FORMATS if extension)
        wanted = "" if format == "auto" else f" for format {format!r}"
        raise FileError(
            f"{folder}: no readable file{wanted} in this folder; read are {kinds}, also compressed "
            "as .gz, .xz, .zst; other files must be named directly"
        )
    return found


def _visible(names: list[str], folders: list[str]) -> list[str]:
    """Names that are not hidden; `os.walk` then also leaves out hidden folders."""
    folders[:] = [name for name in folders if not name.startswith(".")]
    return [name for name in names if not name.startswith(".")]


def _unreadable(error: OSError) -> None:
    raise FileError(f"{error.filename}: the folder cannot be read ({error.strerror})") from None


def _belongs(name: str, format: str) -> bool:
    """Whether a file of a folder is meant: a known extension, which fits a format that is set."""
    natural = _FORMATS.get(_extension(name))
    if natural is None or not os.path.isfile(name):
        return False
    return format in ("auto", natural) or (natural in _AS_TEXT and format in _AS_TEXT)


def _glob(pattern: str, format: str) -> list[Input]:
    """The files a pattern matches, whatever their extension; `**` stands for any folders."""
    files = _sorted(name for name in glob.glob(pattern, recursive=True) if os.path.isfile(name))
    if not files:
        raise FileError(f"{pattern}: no file matches this pattern")
    return [_file(name, format) for name in dict.fromkeys(files)]


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: Path(name).parts)


def _file(name: str, format: str) -> Input:
    if format == "auto":
        format = _FORMATS.get(_extension(name), "paragraphs")
    if format == "parquet" and compression(name):
        raise FormatError(f"{name}: a Parquet file is compressed inside; decompress it first")
    try:
        size = os.stat(name).st_size if os.path.isfile(name) else None
    except OSError as error:
        raise FileError(f"{name}: cannot be read ({error.strerror})") from None
    return Input(name, format, size)


def _extension(name: str) -> str:
    """The extension that tells the format: the last one that is not a compression's."""
    path = Path(name)
    return (path.with_suffix("") if compression(name) else path).suffix.lower()


def _refuse_repeated(listed: list[Input]) -> None:
    seen: dict[str, str] = {}
    for name in (one.name for one in listed):
        is_file = name != STDIN and not name.startswith(hub.PREFIX)
        same = os.path.abspath(name) if is_file else name
        if same in seen:
            raise SettingsError(
                f"{name}: given twice (also as {seen[same]}); its text would count double: "
                "name it once"
            )
        seen[same] = name

"""Single objects behind URLs: listed, read in ranges as a file, downloaded, uploaded, removed.

An object is written by one request, or by a multipart upload that is completed at the end: whoever
reads it finds the old one, the new one, or none, and never a part of one. Writing into
`fs.open(url, "wb")` does not promise this: leaving its context by an exception completes the upload
of what was written so far. So content is a file here first.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from litebert.base.errors import FileError, LitebertError
from litebert.base.remote.urls import filesystem, patiently, scheme_of

FIRST_BYTES, MOST_BYTES = 2**18, 2**23  # of one request: doubled while a file is read in order
_WHOLE_PUTS = ("s3", "gs")  # stores in which an object appears when its upload is complete


@dataclass(frozen=True)
class RemoteObject:
    """An object: where it is, how large, and a number that changes when it is replaced."""

    url: str
    size: int | None  # None where a web server does not say
    version: int


def list_objects(url: str) -> list[RemoteObject]:
    """The object of a URL, those below it, or those that a pattern matches; perhaps none."""
    fs, path = filesystem(url)

    def found() -> list[dict[str, Any]]:
        if glob.has_magic(path):
            return list(fs.glob(path, detail=True).values())
        try:
            info = fs.info(path)
        except FileNotFoundError:
            return []
        if info["type"] == "file":
            return [info]
        return list(fs.find(path, detail=True).values())

    infos = patiently(url, found)
    scheme = scheme_of(url)
    files = (info for info in infos if info["type"] == "file" and not info["name"].endswith("/"))
    objects = [_object(scheme, info) for info in files]
    return sorted(objects, key=lambda entry: entry.url)


def name_below(url: str, entry: str) -> str:
    """An object's name in the folder of a URL, as a file's here; refused where that is outside."""
    name = entry.removeprefix(f"{url}/")
    path = PurePosixPath(name)
    if name == entry or path.is_absolute() or ".." in path.parts or "\\" in name:
        raise FileError(f"{url}: holds {name!r}, which is no name of a file in a folder")
    return name


def object_at(url: str) -> RemoteObject | None:
    """The object of a URL, if there is one."""
    fs, path = filesystem(url)

    def found() -> dict[str, Any] | None:
        try:
            return fs.info(path)
        except FileNotFoundError:
            return None

    info = patiently(url, found)
    return _object(scheme_of(url), info) if info and info["type"] == "file" else None


def _object(scheme: str, info: dict[str, Any]) -> RemoteObject:
    name = info["name"]
    url = name if scheme in ("http", "https") else f"{scheme}://{name.lstrip('/')}"
    keys = ("size", "ETag", "etag", "LastModified", "Last-Modified", "mtime", "updated")
    marks = [str(info[key]) for key in keys if info.get(key) is not None]
    return RemoteObject(url, info.get("size"), zlib.crc32(" ".join(marks).encode()))


class _Ranges(io.RawIOBase):
    """An object as a file that can be read from anywhere, by requests for ranges of its bytes."""

    def __init__(self, url: str, file: Any, size: int) -> None:
        self._url, self._file, self._size, self._place = url, file, size, 0
        self._start, self._data = 0, b""  # what the last request gave

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        self._place = max(start + offset, 0)
        return self._place

    def readinto(self, buffer: Any, /) -> int:
        if self._place >= self._size:
            return 0
        end = self._start + len(self._data)
        if not self._start <= self._place < end:
            more = min(2 * len(self._data), MOST_BYTES) if self._place == end else 0
            count = min(max(len(buffer), more), self._size - self._place)
            self._data = patiently(self._url, lambda: self._range(count))
            self._start = self._place
        first = self._place - self._start
        given = self._data[first : first + len(buffer)]
        buffer[: len(given)] = given
        self._place += len(given)
        return len(given)

    def _range(self, count: int) -> bytes:
        self._file.seek(self._place)
        data = self._file.read(count)
        if len(data) != count:
            raise OSError(f"{len(data):,} bytes came where {count:,} were asked for")
        return data


def open_object(url: str) -> BinaryIO:
    """An object opened for reading; from a web server that gives no ranges, a copy of it."""
    found = object_at(url)
    if found is None:
        raise FileError(f"{url}: no such file")
    if found.size is None or not _gives_ranges(url, found.size):
        return _copy(url)
    fs, path = filesystem(url)
    file = patiently(url, lambda: fs.open(path, "rb", cache_type="none", size=found.size))
    return io.BufferedReader(_Ranges(url, file, found.size), FIRST_BYTES)


_with_ranges: dict[str, bool] = {}  # of web servers


def _gives_ranges(url: str, size: int) -> bool:
    """Whether a server answers with the bytes that it was asked for; object stores do."""
    if scheme_of(url) not in ("http", "https") or size < 2:
        return True
    server = url.split("/", 3)[2]
    if server not in _with_ranges:
        fs, path = filesystem(url)

        def first() -> bool:
            try:
                with fs.open(path, "rb", cache_type="none") as file:
                    return len(file.read(1)) == 1 and file.seekable()
            except ValueError:  # it began to send everything
                return False

        _with_ranges[server] = patiently(url, first)
    return _with_ranges[server]


def _copy(url: str) -> BinaryIO:
    file = tempfile.TemporaryFile()  # noqa: SIM115 closed by the caller
    fs, path = filesystem(url)

    def fetch() -> None:
        file.seek(0)
        file.truncate()
        fs.get_file(path, file)

    try:
        patiently(url, fetch)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


def read_object(url: str, most: int) -> bytes | None:
    """The content of a small object, if it is there."""
    found = object_at(url)
    if found is None:
        return None
    if (found.size or 0) > most:
        raise FileError(f"{url}: {found.size:,} bytes is too large, at most {most:,} are read")
    fs, path = filesystem(url)
    return patiently(url, lambda: fs.cat_file(path))


def download(url: str, path: Path, sha256: str | None = None) -> None:
    """Copy an object into a file that is whole or not there, compared with its checksum."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    fs, source = filesystem(url)

    def fetch() -> None:
        fs.get_file(source, str(draft))
        with draft.open("rb") as stream:
            if sha256 and hashlib.file_digest(stream, "sha256").hexdigest() != sha256:
                raise OSError("what came does not match its checksum")

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        patiently(url, fetch)
        draft.replace(path)
    except OSError as error:
        raise FileError(f"{path}: cannot be written ({error})") from None
    finally:
        draft.unlink(missing_ok=True)


def upload(path: Path, url: str) -> None:
    """Copy a file to an object that is whole or not there."""
    with _draft(url) as target:
        fs, key = filesystem(target)

        def send() -> None:
            size = path.stat().st_size
            fs.put_file(str(path), key)
            arrived = fs.info(key)["size"]
            if arrived < size:  # more, where the file grows meanwhile
                raise OSError(f"{arrived:,} of {size:,} bytes arrived")

        patiently(url, send)


def is_draft(name: str) -> bool:
    """Whether an object is one that an upload was about to rename."""
    return re.fullmatch(r"\..+\.\d+", name.rpartition("/")[2]) is not None


@contextmanager
def _draft(url: str) -> Iterator[str]:
    """The name to write to: an object's own, or where files grow, another one that is renamed."""
    if scheme_of(url) in _WHOLE_PUTS:
        yield url
        return
    folder, _, name = url.rpartition("/")
    draft = f"{folder}/.{name}.{os.getpid()}"
    fs, path = filesystem(url)
    patiently(url, lambda: fs.makedirs(fs._parent(path), exist_ok=True))
    try:
        yield draft
        patiently(url, lambda: fs.mv(filesystem(draft)[1], path))
    except BaseException:
        with suppress(LitebertError):
            remove(draft)
        raise


def remove(url: str) -> None:
    """Remove an object, if it is there."""
    fs, path = filesystem(url)

    def gone() -> None:
        try:
            fs.rm_file(path)
        except FileNotFoundError:
            return

    patiently(url, gone)

"""Files that are whole or not there: atomic folders, sha256 manifests, checked weights.

A folder is written beside its destination, flushed, given its manifest last, and renamed into
place, so a killed process leaves either the old folder or the new one. A manifest is checked on
reading: safetensors itself loads a flipped bit without a word.

Only regular files are read, or links to them (Hugging Face's cache is made of links, also out of
the folder): a pipe would hang, a device never ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from litebert.base.errors import FileError, FormatError

MANIFEST = "manifest.json"
MANIFEST_VERSION = 1
LARGEST_JSON = 64 * 2**20  # a settings file larger than this is not one
# What is written before it gets its name: .NAME.PROCESS of a file, .NAME.RANDOM of a folder.
_DRAFT = re.compile(r"\..+\.(\d+|[a-z0-9_]{8}(\.old)?)")
DEEPEST = 100  # tables in tables: far beyond use, far below what Python can walk through


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal, read in bounded memory."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def open_regular(path: Path) -> BufferedReader:
    """A file opened for reading, by a name that may be a link; nothing but a regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise FileError(f"{path}: no such file") from None
    except ValueError as error:  # a name with a zero byte
        raise FileError(f"{path}: cannot be read ({error})") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileError(f"{path}: not a regular file but a folder, a pipe, a device or a socket")
    return os.fdopen(descriptor, "rb")


def check_regular(path: Path) -> None:
    """Refuse what `open_regular` refuses, before a library opens the file by its name."""
    open_regular(path).close()


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a regular file of at most so many bytes."""
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise FormatError(f"{path}: {size:,} bytes is too large, at most {most:,} are read")
        try:
            return stream.read(most)
        except OSError as error:
            raise FileError(f"{path}: cannot be read ({error})") from None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file, with an error that names the file."""
    return _read_json(path, dict, "an object")


def read_json_list(path: Path) -> list[Any]:
    """A JSON list from a file, with an error that names the file."""
    return _read_json(path, list, "a list")


def _read_json(path: Path, kind: type, expected: str) -> Any:
    try:
        content = json.loads(read_bytes(path, LARGEST_JSON).decode())
    except (ValueError, RecursionError) as error:  # also bad UTF-8, endless numbers
        raise FormatError(f"{path}: not readable as JSON ({error})") from None
    if not isinstance(content, kind):
        raise FormatError(f"{path}: holds a JSON {type(content).__name__}, expected {expected}")
    if is_too_deep(content):
        raise FormatError(f"{path}: not readable as JSON (nested more than {DEEPEST} deep)")
    return content


def is_too_deep(content: Any) -> bool:
    """Whether values are nested so deep that walking through them would fail."""
    level = [content]
    for _ in range(DEEPEST):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
    return bool(level)


def write_json(path: Path, content: dict[str, Any] | list[Any]) -> None:
    """Write a JSON object or list for people to read: indented, in the given order."""
    path.write_text(json_text(content), encoding="utf-8")


def json_text(content: dict[str, Any] | list[Any]) -> str:
    """A JSON object or list as we write it."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file that is either whole or not there, and on disk when this returns."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with scratch.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(path)
        sync(path.parent)
    except OSError as error:
        raise FileError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        scratch.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Say before long work, not after it, that its result could not be written."""
    folder = path if os.path.isdir(path) else path.parent
    if not os.path.isdir(folder):
        raise FileError(f"{path}: no folder {folder}; make it first")
    if not os.access(folder, os.W_OK):
        raise FileError(f"{path}: {folder} cannot be written to")


def write_manifest(
    folder: Path,
    known: Mapping[str, str] | None = None,
    elsewhere: Mapping[str, dict[str, Any]] | None = None,
) -> None:
    """List every file of a folder with its size and SHA-256. Written last, so it marks the end.

    `known` gives the sums of files that need not be read again, `elsewhere` the entries of files
    that belong to the folder and are not here.
    """
    known, files = known or {}, dict(elsewhere or {})
    for path in sorted(folder.rglob("*")):
        if os.path.isfile(path) and path.name != MANIFEST:
            name = path.relative_to(folder).as_posix()
            files[name] = {
                "bytes": path.stat().st_size,
                "sha256": known.get(name) or sha256(path),
            }
    files = dict(sorted(files.items(), key=lambda entry: Path(entry[0])))
    write_json(folder / MANIFEST, {"format": MANIFEST_VERSION, "files": files})


def check_manifest(folder: Path) -> None:
    """Compare a folder with its manifest. A folder without one, say Hugging Face's, passes."""
    if not os.path.lexists(folder / MANIFEST):
        return
    listed = read_manifest(folder)
    for name, entry in listed.items():
        _check_file(folder / name, entry)
    for name in sorted(_visible_files(folder) - listed.keys() - {MANIFEST}):
        raise FileError(
            f"{folder / name}: not listed in {MANIFEST}; remove it (if you added it on purpose, "
            f"delete {MANIFEST})"
        )


def _visible_files(folder: Path) -> set[str]:
    """What is below a folder and no folder itself; hidden files are the file system's business."""
    names = (path.relative_to(folder) for path in folder.rglob("*") if not os.path.isdir(path))
    return {name.as_posix() for name in names if not any(p.startswith(".") for p in name.parts)}


def read_manifest(folder: Path) -> dict[str, dict[str, Any]]:
    """The files that a manifest lists, with their sizes ("bytes") and sums ("sha256")."""
    manifest = read_json(folder / MANIFEST)
    if manifest.get("format") != MANIFEST_VERSION:
        raise FormatError(
            f"{folder / MANIFEST}: format {manifest.get('format')!r}, this version reads "
            f"{MANIFEST_VERSION}; a newer litebert wrote it"
        )
    files = manifest.get("files")
    if not isinstance(files, dict) or not all(map(_is_entry, files, files.values())):
        files = None
    text = read_bytes(folder / MANIFEST, LARGEST_JSON).decode()
    if files is None or json_text(manifest) != text:
        raise FormatError(f"{folder / MANIFEST}: damaged, or not a manifest; copy the folder again")
    return files


def _is_entry(name: str, entry: Any) -> bool:
    """Whether a line of a manifest names a file below its folder and says its size and sum."""
    inside = not Path(name).is_absolute() and ".." not in Path(name).parts
    if not inside or not isinstance(entry, dict):
        return False
    return type(entry.get("bytes")) is int and isinstance(entry.get("sha256"), str)


def _check_file(path: Path, entry: dict[str, Any]) -> None:
    if not os.path.isfile(path):  # unlike Path's, also for a name that is too long
        raise FileError(f"{path}: listed in {MANIFEST} but missing; copy the folder again")
    size = path.stat().st_size
    if size != entry["bytes"]:
        raise FileError(
            f"{path}: {size:,} bytes, {MANIFEST} says {entry['bytes']:,}; "
            "the file is truncated or was changed: copy it again"
        )
    if sha256(path) != entry["sha256"]:
        raise FileError(
            f"{path}: does not match its checksum in {MANIFEST}; the file is damaged or was "
            f"changed: copy it again (if you changed it on purpose, delete {MANIFEST})"
        )


@contextmanager
def new_folder(destination: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to fill; on success it gets a manifest and becomes `destination`, all at once."""
    destination = Path(destination)
    try:
        there = os.path.lexists(destination) and not _is_empty_folder(destination)
        if there and not overwrite:
            raise FileError(
                f"{destination}: already exists; name another folder or remove it first"
            )
        destination.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{destination.name}.", dir=destination.parent))
    except OSError as error:
        raise FileError(f"{destination}: cannot be written ({error.strerror or error})") from None
    try:
        yield scratch
        write_manifest(scratch)
        _set_modes(scratch)
        flush(scratch)
        _replace(scratch, destination)
        sync(destination.parent)
    except OSError as error:
        raise FileError(f"{destination}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what writers that were killed left behind, in a folder that is ours alone."""
    for path in folder.iterdir() if os.path.isdir(folder) else ():
        if _DRAFT.fullmatch(path.name):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def lock_folder(folder: Path, command: str) -> Iterator[None]:
    """A folder to ourselves while we work there; the lock goes with the process that holds it."""
    try:  # a pipe of that name would wait for somebody to read from it
        flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
        lock = os.fdopen(os.open(folder / "lock", flags, 0o666), "w")
    except OSError as error:
        raise FileError(f"{folder}: cannot be written ({error.strerror or error})") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileError(f"{folder}: another `{command}` is at work there") from None
        yield


def _set_modes(folder: Path) -> None:
    """Modes by the umask for all, as the manifest has it: libraries make files private."""
    mode = stat.S_IMODE((folder / MANIFEST).stat().st_mode)
    for path in [*folder.rglob("*"), folder]:
        path.chmod(mode | (mode & 0o444) >> 2 if os.path.isdir(path) else mode)


def _is_empty_folder(path: Path) -> bool:
    return os.path.isdir(path) and not any(path.iterdir())


def flush(folder: Path) -> None:
    """Have a folder and all in it written to disk."""
    for path in [*folder.rglob("*"), folder]:
        sync(path)


def sync(path: Path) -> None:
    """Have one file, or the names in one folder, written to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _replace(scratch: Path, destination: Path) -> None:
    """Rename over an old folder; directories cannot be swapped in one call, so it steps aside."""
    if not os.path.exists(destination):
        scratch.rename(destination)
        return
    aside = scratch.with_name(scratch.name + ".old")
    destination.rename(aside)
    try:
        scratch.rename(destination)
    except BaseException:
        aside.rename(destination)
        raise
    shutil.rmtree(aside)

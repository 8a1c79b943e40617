"""Files that are whole or not there: atomic folders, sha256 manifests, checked weights.

A folder is written beside its destination, flushed, given its manifest last, and renamed into
place, so a killed process leaves either the old folder or the new one. A manifest is checked on
reading: safetensors itself loads a flipped bit without a word.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from litebert.base.errors import FileError, FormatError

MANIFEST = "manifest.json"
MANIFEST_VERSION = 1
LARGEST_JSON = 64 * 2**20  # a settings file larger than this is not one


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal, read in bounded memory."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file, with an error that names the file."""
    return _read_json(path, dict, "an object")


def read_json_list(path: Path) -> list[Any]:
    """A JSON list from a file, with an error that names the file."""
    return _read_json(path, list, "a list")


def _read_json(path: Path, kind: type, expected: str) -> Any:
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise FormatError(f"{path}: {path.stat().st_size:,} bytes is too large for a JSON file")
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:  # also bad UTF-8, endless numbers
        raise FormatError(f"{path}: not readable as JSON ({error})") from None
    if not isinstance(content, kind):
        raise FormatError(f"{path}: holds a JSON {type(content).__name__}, expected {expected}")
    return content


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
        _sync(path.parent)
    except OSError as error:
        raise FileError(f"{path}: cannot be written ({error})") from None
    finally:
        scratch.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Say before long work, not after it, that its result could not be written."""
    folder = path if path.is_dir() else path.parent
    if not folder.is_dir():
        raise FileError(f"{path}: no folder {folder}; make it first")
    if not os.access(folder, os.W_OK):
        raise FileError(f"{path}: {folder} cannot be written to")


def write_manifest(folder: Path, known: Mapping[str, str] | None = None) -> None:
    """List every file of a folder with its size and SHA-256. Written last, so it marks the end.

    `known` gives the sums of files that need not be read again.
    """
    known = known or {}
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != MANIFEST:
            name = path.relative_to(folder).as_posix()
            files[name] = {
                "bytes": path.stat().st_size,
                "sha256": known.get(name) or sha256(path),
            }
    write_json(folder / MANIFEST, {"format": MANIFEST_VERSION, "files": files})


def check_manifest(folder: Path) -> None:
    """Compare a folder with its manifest. A folder without one, say Hugging Face's, passes."""
    if not (folder / MANIFEST).exists():
        return
    for name, entry in read_manifest(folder).items():
        _check_file(folder / name, entry)


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
    if files is None or json_text(manifest) != (folder / MANIFEST).read_text(encoding="utf-8"):
        raise FormatError(f"{folder / MANIFEST}: damaged, or not a manifest; copy the folder again")
    return files


def _is_entry(name: str, entry: Any) -> bool:
    """Whether a line of a manifest names a file below its folder and says its size and sum."""
    inside = not Path(name).is_absolute() and ".." not in Path(name).parts
    known = isinstance(entry, dict) and {"bytes", "sha256"} <= entry.keys()
    return inside and known and isinstance(entry["sha256"], str)


def _check_file(path: Path, entry: dict[str, Any]) -> None:
    if not path.is_file():
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
        raise FileError(f"{destination}: cannot be written ({error})") from None
    try:
        yield scratch
        write_manifest(scratch)
        flush(scratch)
        scratch.chmod(0o755)
        _replace(scratch, destination)
        _sync(destination.parent)
    except OSError as error:
        raise FileError(f"{destination}: cannot be written ({error})") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def lock_folder(folder: Path, command: str) -> Iterator[None]:
    """A folder to ourselves while we work there; the lock goes with the process that holds it."""
    try:
        lock = (folder / "lock").open("a")
    except OSError as error:
        raise FileError(f"{folder}: cannot be written ({error})") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileError(f"{folder}: another `{command}` is at work there") from None
        yield


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def flush(folder: Path) -> None:
    """Have a folder and all in it written to disk."""
    for path in [*folder.rglob("*"), folder]:
        _sync(path)


def _sync(path: Path) -> None:
    """Have one file, or the names in one folder, written to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _replace(scratch: Path, destination: Path) -> None:
    """Rename over an old folder; directories cannot be swapped in one call, so it steps aside."""
    if not destination.exists():
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

"""Folders behind URLs: written here, checked and uploaded; copied here to be read.

An upload begins with an object that says it is incomplete, and takes the old manifest away; the new
manifest comes last, then the first object goes. So a folder is the old one, or the new one, or
recognised as neither.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from litebert.base import files
from litebert.base.errors import FileError
from litebert.base.files import MANIFEST, check_manifest
from litebert.base.remote.cache import cache_folder, held
from litebert.base.remote.lease import LOCK
from litebert.base.remote.objects import (
    download,
    list_objects,
    name_below,
    object_at,
    remove,
    upload,
)
from litebert.base.remote.urls import as_url, join, scheme_of

INCOMPLETE, PROBE = ".incomplete", ".probe"
TRANSFERS = 4  # at a time


@contextmanager
def new_folder(destination: Path | str, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to fill; on success it gets a manifest and becomes `destination`, a path or URL."""
    url = as_url(destination)
    if url is None:
        with files.new_folder(Path(destination), overwrite=overwrite) as scratch:
            yield scratch
        return
    check_absent(url, overwrite=overwrite)
    check_writable(url)
    with tempfile.TemporaryDirectory(prefix="litebert-") as place:
        folder = Path(place, url.rpartition("/")[2] or "folder")
        with files.new_folder(folder) as scratch:
            yield scratch
        publish_folder(folder, url)


def check_absent(url: str, *, overwrite: bool = False) -> None:
    """Say before long work that its result has no place: taken, or nothing can be written there."""
    if scheme_of(url) in ("http", "https"):
        raise FileError(f"{url}: a web server cannot be written to; name a folder, s3:// or gs://")
    ours = {join(url, INCOMPLETE), join(url, PROBE)}
    there = [entry for entry in list_objects(url) if entry.url not in ours]
    if there and not overwrite and not is_incomplete(url):
        raise FileError(f"{url}: already exists; name another folder or remove it first")


def check_writable(url: str) -> None:
    """Say before long work, not after it, that a bucket is missing or cannot be written to."""
    _put_empty(join(url, PROBE))
    remove(join(url, PROBE))


def _put_empty(url: str) -> None:
    with tempfile.NamedTemporaryFile() as empty:
        upload(Path(empty.name), url)


def mark_incomplete(url: str) -> None:
    """Say that an upload to a URL has begun."""
    _put_empty(join(url, INCOMPLETE))


def is_incomplete(url: str) -> bool:
    """Whether an upload to a URL was begun and not finished."""
    return object_at(join(url, INCOMPLETE)) is not None


def publish_folder(folder: Path, url: str, there: Collection[str] = ()) -> None:
    """Upload a folder that has a manifest, in place of what is there.

    Files that are `there` already need not be here.
    """
    if not there:
        check_manifest(folder)
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    mark_incomplete(url)
    remove(join(url, MANIFEST))
    in_parallel(lambda name: upload(folder / name, join(url, name)), names - {MANIFEST})
    kept = {join(url, name) for name in (*names, *there, INCOMPLETE)}
    for stray in list_objects(url):
        if stray.url not in kept:
            remove(stray.url)
    upload(folder / MANIFEST, join(url, MANIFEST))
    remove(join(url, INCOMPLETE))


def in_parallel(action: Callable[[str], None], names: Iterable[str]) -> None:
    """Transfer several objects at a time; the first failure ends it."""
    with ThreadPoolExecutor(TRANSFERS) as pool:
        pending = [pool.submit(action, name) for name in sorted(names)]
        try:
            for one in pending:
                one.result()
        finally:
            for one in pending:
                one.cancel()


def local_folder(folder: Path | str, leave_out: str | None = None) -> Path:
    """A folder to read: the path itself, or a copy of what is behind a URL, fetched when it is new.

    The copy is named by what the URL holds, so that a changed folder is copied again. `leave_out`
    names a folder in it that is not copied.
    """
    url = as_url(folder)
    if url is None:
        return Path(folder)
    left_out = (LOCK,) if leave_out is None else (LOCK, f"{leave_out}/")
    unwanted = tuple(join(url, name) for name in left_out)
    found = [entry for entry in list_objects(url) if not entry.url.startswith(unwanted)]
    if not found:
        raise FileError(f"{url}: no such folder")
    if any(entry.url == join(url, INCOMPLETE) for entry in found):
        raise FileError(f"{url}: its upload was not finished; run the command that writes it again")
    if [entry.url for entry in found] == [url]:
        return _local_file(url, found[0].version)
    versions = repr([(entry.url, entry.version) for entry in found])
    name = hashlib.sha256(versions.encode()).hexdigest()[:20]
    place = cache_folder() / "folders" / name / (url.rpartition("/")[2] or "folder")
    with held(place.parent / "lock"):
        if not place.is_dir():
            _fetch_folder(url, [entry.url for entry in found], place)
    return place


def _fetch_folder(url: str, objects: list[str], place: Path) -> None:
    draft = place.with_name(f".{place.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    names = [name_below(url, entry) for entry in objects]
    in_parallel(lambda name: download(join(url, name), draft / name), names)
    try:
        check_manifest(draft)
    except FileError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise FileError(f"{url}: {str(error).replace(str(draft), '').lstrip('/')}") from None
    os.replace(draft, place)


def _local_file(url: str, version: int) -> Path:
    place = cache_folder() / "files" / f"{version:08x}" / url.rpartition("/")[2]
    with held(place.parent / "lock"):
        if not place.is_file():
            download(url, place)
    return place

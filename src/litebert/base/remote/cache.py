"""Copies of remote objects on this machine: bounded, shared by its processes, fetched ahead.

    LITEBERT_CACHE        where; by default ~/.cache/litebert
    LITEBERT_CACHE_SIZE   how much of stores is kept, as in 20GB; by default half of the free disk

A copy is whole or not there, and compared with its checksum when it comes. One process fetches,
others that want the same wait for it. Those unused for longest are removed when there are too many;
a process that has one of them mapped keeps it until it lets go.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from litebert.base.errors import FileError, LitebertError, SettingsError
from litebert.base.remote.objects import download
from litebert.base.remote.urls import join

BOUNDED = "shards"  # the folders whose copies may be removed again
FETCHERS = 4  # threads that fetch ahead
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def cache_folder() -> Path:
    """Where copies are kept."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("LITEBERT_CACHE") or home / "litebert")


def stand_in(kind: str, url: str) -> Path:
    """The folder on this machine in which what belongs to a URL is made."""
    name = hashlib.sha256(url.encode()).hexdigest()[:12]
    return cache_folder() / kind / name / (url.rpartition("/")[2] or kind)


def cache_size(folder: Path) -> int:
    """How many bytes of large objects may be kept in a folder."""
    text = os.environ.get("LITEBERT_CACHE_SIZE", "")
    if not text:
        folder.mkdir(parents=True, exist_ok=True)
        kept = sum(status.st_size for status in _copies(folder).values())
        return (shutil.disk_usage(folder).free + kept) // 2
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]?B)?", text.upper())
    if match is None:
        raise SettingsError(f"LITEBERT_CACHE_SIZE={text}: expected a size, as in 20GB")
    return int(float(match[1]) * _UNITS[match[2] or ""] if match[2] != "B" else float(match[1]))


@contextmanager
def held(lock: Path) -> Iterator[None]:
    """Alone among threads and processes of this machine."""
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("w")
    except OSError as error:
        raise FileError(f"{lock.parent}: cannot be written ({error.strerror or error})") from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _copies(folder: Path) -> dict[Path, os.stat_result]:
    found: dict[Path, os.stat_result] = {}
    for path in folder.glob(f"*/{BOUNDED}/[!.]*"):
        with suppress(FileNotFoundError):  # removed by another process just now
            found[path] = path.stat()
    return found


class ObjectCache:
    """Local copies of the objects of one folder, which its manifest lists."""

    def __init__(self, url: str, name: str, manifest: Mapping[str, dict[str, Any]]) -> None:
        self.url, self.manifest = url, manifest
        self.root = cache_folder() / "stores"
        self.folder = self.root / name
        self._ahead: deque[str] = deque()
        self._wake = threading.Condition()
        self._threads: list[threading.Thread] = []

    def fetch(self, name: str) -> Path:
        """The copy of an object, fetched if it is not there."""
        path = self.folder / name
        with suppress(FileNotFoundError):
            os.utime(path)  # used just now
            return path
        if name not in self.manifest:
            raise FileError(f"{join(self.url, name)}: not listed in its manifest")
        with held(self.folder / ".locks" / name.replace("/", "-")):
            if not path.exists():
                self._make_room(self.manifest[name]["bytes"])
                download(join(self.url, name), path, self.manifest[name]["sha256"])
        return path

    def fetch_ahead(self, names: Iterable[str]) -> None:
        """Fetch these next, in this order, while other work goes on; instead of those before."""
        wanted, room = [], cache_size(self.root) // 2
        for name in names:
            room -= self.manifest[name]["bytes"]
            if room >= 0 and not (self.folder / name).exists():
                wanted.append(name)
        with self._wake:
            self._ahead = deque(wanted)
            self._wake.notify_all()
        if wanted and not self._threads:
            for _ in range(FETCHERS):
                self._threads.append(threading.Thread(target=self._work, daemon=True))
                self._threads[-1].start()

    def _work(self) -> None:
        while True:
            with self._wake:
                while not self._ahead:
                    self._wake.wait()
                name = self._ahead.popleft()
            with suppress(LitebertError, OSError):  # who needs it will say
                self.fetch(name)

    def _make_room(self, size: int) -> None:
        """Remove the copies that were unused for longest."""
        with held(self.root / "lock"):
            copies = _copies(self.root)
            excess = sum(s.st_size for s in copies.values()) + size - cache_size(self.root)
            for path in sorted(copies, key=lambda path: copies[path].st_mtime_ns):
                if excess <= 0:
                    return
                path.unlink(missing_ok=True)
                excess -= copies[path].st_size

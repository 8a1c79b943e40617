"""A run's folder behind a URL: worked on here, and brought there whenever something was saved.

What changed is uploaded, manifests of folders after their other files; then what is gone here is
removed there, manifests first; `run.json` comes last. Nothing is removed, and `run.json` waits,
where the run removed a checkpoint while it was on its way. So a checkpoint or a model there has a
manifest only while it is whole, and beside `run.json` there always is a whole one. A note of what
was uploaded tells whether the folder here is the one that is there: if somebody else went on with
the run meanwhile, or this machine never saw it, the folder there is fetched. From `pull` to `close`
nobody else writes there (lease.py).
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Collection, Set
from contextlib import suppress
from pathlib import Path

from litebert.base.errors import LitebertError
from litebert.base.files import MANIFEST, json_text, read_manifest, write_atomic
from litebert.base.remote.cache import stand_in
from litebert.base.remote.folders import check_absent, check_writable, in_parallel
from litebert.base.remote.lease import LOCK, Lease
from litebert.base.remote.objects import (
    download,
    is_draft,
    list_objects,
    name_below,
    object_at,
    remove,
    upload,
)
from litebert.base.remote.urls import as_url, join

LAST = "run.json"
NOTE = ".uploaded"
UNKNOWN = [-1, -1, -1]  # size, time and version of what may be there or not
_IGNORED = ("lock",)


class Mirror:
    """The folder of a run: a path, or a local stand-in for a URL."""

    def __init__(self, out: Path | str) -> None:
        self.url = as_url(out)
        self.folder = Path(out) if self.url is None else stand_in("runs", self.url)
        self._note = self.folder.parent / NOTE  # used for URLs alone
        self._uploaded: dict[str, list[int]] = {}  # name -> size, time, version there
        self._lease = None if self.url is None else Lease(self.url)
        self._thread: threading.Thread | None = None
        self._failure: LitebertError | None = None

    def pull(self) -> None:
        """Have here what is there, and the right to change it."""
        if self.url is None or self._lease is None:
            return
        check_absent(self.url, overwrite=True)
        check_writable(self.url)
        self._lease.take()
        there = {name_below(self.url, e.url): e.version for e in list_objects(self.url)}
        there.pop(LOCK, None)
        for name in [name for name in there if is_draft(name)]:  # of an upload that was killed
            remove(join(self.url, name))
            del there[name]
        if self._note.is_file():
            self._uploaded = json.loads(self._note.read_text())
        if self._is_ours(there):
            return
        self._note.unlink(missing_ok=True)
        if LAST in there:
            self._fetch(there)
        else:  # the first upload was cut: what there is of the run is here
            self._uploaded = {name: [0, 0, version] for name, version in there.items()}
        self._save_note()

    def _is_ours(self, there: dict[str, int]) -> bool:
        """Whether nobody else wrote there; what was under way when it was cut may have arrived."""
        sure = {name for name, entry in self._uploaded.items() if entry != UNKNOWN}
        brought = {name: self._uploaded[name][2] for name in sure}
        unsure = self._uploaded.keys() - sure
        return brought == {name: there[name] for name in there.keys() - unsure}

    def _fetch(self, there: dict[str, int]) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        url = self.url or ""
        in_parallel(lambda name: download(join(url, name), self.folder / name), there)
        self._uploaded = {name: [*self._mark(name), there[name]] for name in there}

    def push(self) -> None:
        """Bring what changed there; returns when it is there."""
        self._wait()
        if self.url is not None:
            self._push()

    def push_later(self, say: Callable[[str], None]) -> None:
        """The same while other work goes on; a failure is said and tried again the next time."""
        if self.url is None or (self._thread is not None and self._thread.is_alive()):
            return  # the next one brings all of it
        if self._failure is not None:
            say(f"warning: {self._failure}; saved in {self.folder}, uploaded with the next")
            self._failure = None
        self._thread = threading.Thread(target=self._try, daemon=True)
        self._thread.start()

    def _try(self) -> None:
        try:
            self._push()
        except LitebertError as error:
            self._failure = error

    def _wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def close(self) -> None:
        """Let others write there."""
        self._wait()
        if self._lease is not None:
            self._lease.give_back()

    def _push(self) -> None:
        assert self.url is not None
        assert self._lease is not None
        self._lease.check()
        here = self._here()
        self._bring(here.keys() - {LAST}, here)
        if not all(self._is_there(name, here) for name in here.keys() - {LAST}):
            return  # the run went on meanwhile: what is there is whole until the next push
        for name in sorted(self._uploaded.keys() - here.keys(), key=_order, reverse=True):
            self._begin(name)
            remove(join(self.url, name))
            del self._uploaded[name]
            self._save_note()
        self._bring(here.keys() & {LAST}, here)

    def _begin(self, name: str) -> None:
        """Note that it is not known what is there; what seems to fail may still arrive."""
        self._uploaded[name] = UNKNOWN
        self._save_note()

    def _bring(self, names: Set[str], here: dict[str, list[int]]) -> None:
        for name in sorted(names, key=_order):
            if self._is_there(name, here):
                continue
            if not self._is_whole(name, [one for one in here if self._is_there(one, here)]):
                continue
            self._begin(name)
            if self._upload(name):
                found = object_at(join(self.url or "", name))
                self._uploaded[name] = [*here[name], found.version if found else 0]
                self._save_note()

    def _is_there(self, name: str, here: dict[str, list[int]]) -> bool:
        return self._uploaded.get(name, UNKNOWN)[:2] == here[name]

    def _here(self) -> dict[str, list[int]]:
        """The files that are here; none of a folder that is being removed, as old checkpoints are.

        Else its files would be removed there while its manifest stays.
        """
        here: dict[str, list[int]] = {}
        for name in self._names():
            with suppress(FileNotFoundError):
                here[name] = self._mark(name)
        for name in list(here):
            if not self._is_whole(name, here):
                folder = name.removesuffix(MANIFEST)
                here = {one: mark for one, mark in here.items() if not one.startswith(folder)}
        return here

    def _is_whole(self, name: str, names: Collection[str]) -> bool:
        """Whether all that a manifest lists is among these names; others are."""
        if Path(name).name != MANIFEST:
            return True
        folder = (self.folder / name).parent
        try:
            listed = read_manifest(folder)
        except LitebertError:
            return False
        paths = ((folder / one).relative_to(self.folder).as_posix() for one in listed)
        return all(path in names for path in paths)

    def _upload(self, name: str) -> bool:
        """Upload a file; not one that is removed meanwhile, as old checkpoints are."""
        path = self.folder / name
        try:
            upload(path, join(self.url or "", name))
        except LitebertError:
            if path.exists():
                raise
        return path.exists()

    def _names(self) -> list[str]:
        found = (p.relative_to(self.folder) for p in self.folder.rglob("*") if p.is_file())
        visible = (p for p in found if not any(part.startswith(".") for part in p.parts))
        return [path.as_posix() for path in visible if path.as_posix() not in _IGNORED]

    def _mark(self, name: str) -> list[int]:
        status = (self.folder / name).stat()
        return [status.st_size, status.st_mtime_ns]

    def _save_note(self) -> None:
        self._note.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self._note, json_text(self._uploaded).encode())


def _order(name: str) -> tuple[int, str]:
    """Files, then the manifests that speak of them, then what says that the run is finished."""
    return (2 if name == LAST else int(Path(name).name == MANIFEST), name)

"""Who works on what is behind a URL: one process at a time, on whichever machine.

An object `.lock` says who. It is made by a put that fails where it is already there, and put again
every few seconds while its owner lives. Who finds another's watches it: if it changes, its owner is
alive, and the command ends; if it does not, or is that of a process of this machine that is gone,
it is taken over. Nobody's clock is compared with another's.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from typing import Any

from litebert.base.errors import FileError, LitebertError
from litebert.base.remote.objects import read_object, remove
from litebert.base.remote.urls import filesystem, join, patiently

LOCK = ".lock"
LARGEST = 10_000  # bytes of it
RENEWAL = 20.0  # seconds
MISSED = 3  # renewals after which an owner is taken to be gone


class Lease:
    """The right to write below a URL, from `take` to `give_back`."""

    def __init__(self, url: str) -> None:
        self.url, self._lock = url, join(url, LOCK)
        self._mine = {"host": socket.gethostname(), "pid": os.getpid(), "token": uuid.uuid4().hex}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> None:
        """Be the owner, or say who is."""
        while not self._create():
            owner = self._owner()
            if owner is None:  # it was given back just now
                continue
            if not (_is_gone(owner) or self._falls_silent()):
                raise FileError(
                    f"{self.url}: process {owner.get('pid')} on {owner.get('host')} works on it; "
                    "wait for its end, or name another folder"
                )
            self._put()
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Refuse to go on where another process has taken over."""
        owner = self._owner()
        if owner is not None and owner.get("token") != self._mine["token"]:
            raise FileError(
                f"{self.url}: process {owner.get('pid')} on {owner.get('host')} has taken over; "
                "this one was not heard of for too long"
            )

    def give_back(self) -> None:
        """Let others in."""
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._thread = None
            with suppress(LitebertError):
                self.check()
                remove(self._lock)

    def _create(self) -> bool:
        """Make the object; whether it is ours now. An answer may be lost, so it is looked at."""
        fs, path = filesystem(self._lock)

        def put() -> bool:
            try:
                fs.pipe_file(path, self._content(), mode="create")
            except FileExistsError:
                return False
            return True

        made = patiently(self._lock, put)
        owner = None if made else self._owner()
        return made or (owner is not None and owner.get("token") == self._mine["token"])

    def _put(self) -> None:
        fs, path = filesystem(self._lock)
        patiently(self._lock, lambda: fs.pipe_file(path, self._content()))

    def _content(self) -> bytes:
        """Another one each time: that is how others see that we live."""
        return json.dumps({**self._mine, "renewed": uuid.uuid4().hex}).encode()

    def _owner(self) -> dict[str, Any] | None:
        content = read_object(self._lock, LARGEST)
        if content is None:
            return None
        try:
            found = json.loads(content)
        except ValueError:
            found = None
        return found if isinstance(found, dict) else {}

    def _falls_silent(self) -> bool:
        """Whether its owner does not renew it for as long as it takes to be sure."""
        before, deadline = self._owner(), time.monotonic() + MISSED * RENEWAL
        while time.monotonic() < deadline:
            time.sleep(RENEWAL / 10)
            now = self._owner()
            if now is None:
                return True
            if now != before:
                return False
        return True

    def _renew(self) -> None:
        while not self._ended.wait(RENEWAL):
            with suppress(LitebertError):  # the next one, or the upload that needs it, will tell
                self.check()
                self._put()


def _is_gone(owner: dict[str, Any]) -> bool:
    """Whether the owner is a process of this machine that is not there any more."""
    if owner.get("host") != socket.gethostname() or not isinstance(owner.get("pid"), int):
        return False
    try:
        os.kill(owner["pid"], 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False

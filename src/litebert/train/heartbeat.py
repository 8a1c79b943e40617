"""Which rank is gone: every rank counts in the store where they met, and one that stops is lost.

Collective operations only say that somebody did not answer. A thread of each rank adds one to a
counter of its own now and then; after a failure those whose counters stand still are named.
Counters and not times, because hosts disagree about the time.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Any, Self

BEAT = 1.0  # seconds between two
WATCH = 3 * BEAT  # how long counters are watched for


class Heartbeat:
    """This rank's counter, and a look at those of the others."""

    def __init__(self, store: Any, rank: int, world_size: int) -> None:
        self._store, self._rank, self._world_size = store, rank, world_size
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        # The store's connection is used by one thread at a time.
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(timeout=BEAT)

    def _beat(self) -> None:
        with suppress(RuntimeError):  # the store is gone: others say so
            while not self._ended.is_set():
                with self._lock:
                    self._store.add(f"rank-{self._rank}", 1)
                self._ended.wait(BEAT)

    def lost(self) -> str:
        """What happened, in words: the ranks that are gone, or that nobody can know."""
        found: list[list[int]] = []
        watcher = threading.Thread(target=self._watch, args=(found,), daemon=True)
        watcher.start()
        watcher.join(timeout=WATCH + BEAT)
        if len(found) < 2:
            where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
            return f"the host at {where}, where the ranks met, cannot be reached"
        still = [rank for rank, (a, b) in enumerate(zip(*found, strict=True)) if a == b]
        gone = [str(rank) for rank in still if rank != self._rank]
        if not gone:
            return "the connection to a rank that is still alive was cut"
        if len(gone) == 1:
            return f"rank {gone[0]} of {self._world_size} was lost"
        return f"ranks {', '.join(gone)} of {self._world_size} were lost"

    def _watch(self, found: list[list[int]]) -> None:
        with suppress(RuntimeError):
            for pause in (WATCH, 0.0):
                with self._lock:
                    names = [f"rank-{rank}" for rank in range(self._world_size)]
                    found.append([self._store.add(name, 0) for name in names])
                time.sleep(pause)

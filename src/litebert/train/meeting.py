"""Ranks agree that they are all there, now: on a name that nobody had before.

The store where they meet may still hold the addresses of processes that were there before an
elastic restart, and torchrun's counter of restarts differs between hosts: a rank that failed counts
as one, a rank that was ended because another failed does not. So every rank brings a number of its
own, rank 0 puts them all into an announcement, and it holds when everybody has found its own number
in it.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

POLL = 0.05  # seconds


def agree(store: Any, rank: int, world_size: int, timeout: float) -> str:
    """A name for this meeting, the same on all ranks."""
    mine, deadline = uuid.uuid4().hex, time.monotonic() + timeout
    store.set(f"hello-{rank}", mine)
    announced: tuple[str, list[str]] | None = None
    while time.monotonic() < deadline:
        if rank == 0:
            announced = _announce(store, world_size, announced)
            if announced and _has(store, *(f"{announced[0]}-{r}" for r in range(1, world_size))):
                store.set(f"{announced[0]}-go", "1")
                return announced[0]
        elif _has(store, "announcement"):
            name, numbers = json.loads(store.get("announcement"))
            if numbers[rank : rank + 1] == [mine]:
                store.set(f"{name}-{rank}", "1")
                if _has(store, f"{name}-go"):
                    return name
        time.sleep(POLL)
    missing = [str(r) for r in range(world_size) if not _has(store, f"hello-{r}")]
    raise TimeoutError(f"ranks {', '.join(missing)} did not come" if missing else "a rank is late")


def _announce(
    store: Any, world_size: int, before: tuple[str, list[str]] | None
) -> tuple[str, list[str]] | None:
    """Who is there; again when somebody came anew."""
    names = [f"hello-{rank}" for rank in range(world_size)]
    if not _has(store, *names):
        return before
    numbers = [store.get(name).decode() for name in names]
    if before is not None and before[1] == numbers:
        return before
    announced = (uuid.uuid4().hex, numbers)
    store.set("announcement", json.dumps(announced))
    return announced


def _has(store: Any, *names: str) -> bool:
    return not names or store.check(list(names))

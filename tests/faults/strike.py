"""SIGKILL before or after the n-th file operation of a process, with or without a power loss.

A power loss also takes what was not flushed: every file below a folder that changed since its last
fsync is cut at a random point, names stay as they are. That is the worst a file system may do: a
rename that is on disk before the data it speaks of.

The operations are Python's: fsync, rename, replace, unlink, rmdir, mkdir. Worker processes, which
are spawned, strike by an environment variable that a sitecustomize module reads.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

OPERATIONS = ("fsync", "rename", "replace", "unlink", "rmdir", "mkdir")
VARIABLE = "LITEBERT_STRIKE"
FREE = ("lock", "metrics.jsonl")  # without content, or cut back to what is known to be flushed


@dataclass(frozen=True)
class Strike:
    """The operation to strike at, and what else happens to the files below a folder."""

    at: int
    after: bool
    power_loss: bool
    folder: str
    seed: int = 0


def install(strike: Strike) -> None:
    """Strike this process when its time has come."""
    count = 0
    flushed: dict[tuple[int, int], tuple[int, int]] = {}  # inode -> size and time when flushed

    def wrap(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count - 1 == strike.at and not strike.after:
                _end(strike, flushed)
            result = original(*arguments, **options)
            if name == "fsync":
                entry = os.fstat(arguments[0])
                flushed[entry.st_dev, entry.st_ino] = (entry.st_size, entry.st_mtime_ns)
            if count - 1 == strike.at:
                _end(strike, flushed)
            return result

        return operation

    for name in OPERATIONS:
        setattr(os, name, wrap(name, getattr(os, name)))


def _end(strike: Strike, flushed: dict[tuple[int, int], tuple[int, int]]) -> None:
    if strike.power_loss:
        chance = random.Random(strike.seed)
        began = float(os.environ.get(f"{VARIABLE}_BEGAN", "0"))
        for path in sorted(Path(strike.folder).parent.rglob("*")):
            below = str(path).startswith(strike.folder)
            if not below or not path.is_file() or path.name in FREE:
                continue
            entry = path.stat()
            known = flushed.get((entry.st_dev, entry.st_ino))
            changed = entry.st_mtime >= began and known != (entry.st_size, entry.st_mtime_ns)
            if changed and entry.st_size:
                os.truncate(path, chance.randrange(entry.st_size))
    os.kill(os.getpid(), signal.SIGKILL)


def environment(strike: Strike, scratch: Path) -> dict[str, str]:
    """What makes the processes strike that are spawned in this environment."""
    scratch.mkdir(parents=True, exist_ok=True)
    code = "from tests.faults.strike import install_from_environment as i\ni()\n"
    (scratch / "sitecustomize.py").write_text(code)
    places = [str(scratch), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(places), VARIABLE: json.dumps(asdict(strike))}


def install_from_environment() -> None:
    """What sitecustomize does."""
    if VARIABLE in os.environ:
        install(Strike(**json.loads(os.environ[VARIABLE])))

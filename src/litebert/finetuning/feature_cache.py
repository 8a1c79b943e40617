"""Features that took long to make, kept by their content.

The cache is a folder of safetensors files, each named by a hash of all that decides its content:
the examples, the task's settings, the tokenizer. It is `$LITEBERT_CACHE`, or a folder of the user's
cache; what was quick to make is not kept. Each begins with the SHA-256 of the rest: a file that is
damaged, or cannot be read, is made again. All together take at most two gigabytes: those that were
not used for the longest time give way.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from litebert.base.batches import Batch
from litebert.base.errors import FileError
from litebert.base.files import read_bytes, write_atomic
from litebert.tasks.features import Features
from litebert.tasks.featurize import make_features
from litebert.tasks.task import Task
from litebert.text.tokenizer import Tokenizer

WORTH_KEEPING = 2.0  # seconds
LARGEST_CACHE = 2**31  # bytes
VERSION = 2  # of what is kept
DIGEST = hashlib.sha256().digest_size
COUNTS, EXTRA = "counts", "extra."


def cached_features(
    task: Task, examples: Sequence[Any], tokenizer: Tokenizer, folder: Path
) -> Features:
    """The features of examples; `folder` is where other processes find the tokenizer."""
    path = _cache() / f"{_key(task, examples, tokenizer)}.safetensors"
    kept = _read(path)
    if kept is not None:
        return kept
    began = time.monotonic()
    features = make_features(task, examples, tokenizer, folder)
    if time.monotonic() - began > WORTH_KEEPING:
        _write(path, features)
    return features


def checksum(examples: Sequence[Any]) -> str:
    """What examples are, whatever file they were read from."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(json.dumps({**asdict(example), "where": ""}).encode() + b"\n")
    return digest.hexdigest()


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("LITEBERT_CACHE") or Path(base) / "litebert") / "features"


def _key(task: Task, examples: Sequence[Any], tokenizer: Tokenizer) -> str:
    """All settings but the two that cannot matter: a kind may make features by any of its own."""
    settings = task.settings.model_dump(mode="json", exclude={"name", "metrics"})
    content = [VERSION, settings, tokenizer.checksum, checksum(examples)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _write(path: Path, features: Features) -> None:
    batch = features.batch
    arrays = {name: getattr(batch, name) for name in _columns()}
    arrays |= {EXTRA + name: array for name, array in features.extras.items()}
    counts = [features.truncated, features.windowed, batch.group_size]
    content = save({**arrays, COUNTS: np.array(counts, np.int64)})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if _make_room(path.parent, len(content)):
            write_atomic(path, hashlib.sha256(content).digest() + content)
    except (OSError, FileError):
        return  # a cache that cannot be written costs time, nothing else


def _make_room(folder: Path, size: int) -> bool:
    """Remove what was not used for the longest time; False where `size` is too much anyway."""
    kept = sorted(folder.glob("*.safetensors"), key=lambda path: path.stat().st_mtime)
    total = sum(path.stat().st_size for path in kept)
    while kept and total + size > LARGEST_CACHE:
        total -= kept[0].stat().st_size
        kept.pop(0).unlink()
    return total + size <= LARGEST_CACHE


def _read(path: Path) -> Features | None:
    try:
        whole = read_bytes(path, LARGEST_CACHE)
        if hashlib.sha256(whole[DIGEST:]).digest() != whole[:DIGEST]:
            return None
        arrays = load(whole[DIGEST:])
        truncated, windowed, group_size = arrays.pop(COUNTS).tolist()
        columns: dict[str, Any] = {name: arrays.pop(name) for name in _columns()}
        with suppress(OSError):
            os.utime(path)  # used now
    except (OSError, FileError, SafetensorError, KeyError, TypeError, ValueError):
        return None
    extras = {name.removeprefix(EXTRA): array for name, array in arrays.items()}
    return Features(Batch(**columns, group_size=group_size), truncated, windowed, extras)


def _columns() -> list[str]:
    return [name for name in Batch.__dataclass_fields__ if name != "group_size"]

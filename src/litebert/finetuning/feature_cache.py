"""Features made once: in several processes where there is much to do, and kept by their content.

The cache is a folder of safetensors files, each named by a hash of all that decides its content:
the examples, the task's settings, the tokenizer. It is `$LITEBERT_CACHE`, or a folder of the user's
cache; what was quick to make is not kept. Each begins with the SHA-256 of the rest: a file that is
damaged, or cannot be read, is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from litebert.base.batch import Batch
from litebert.base.errors import FileError
from litebert.base.files import write_whole
from litebert.base.runtime import cores
from litebert.tasks.base import Task, TaskSettings
from litebert.tasks.features import Features, join_features
from litebert.tasks.registry import build_task
from litebert.text.tokenizer import Tokenizer, load_tokenizer

WORTH_KEEPING = 2.0  # seconds
WORTH_SHARING = 20_000  # examples, from which on a second process pays for its start
VERSION = 1  # of what is kept
DIGEST = hashlib.sha256().digest_size


def make_features(
    task: Task, examples: Sequence[Any], tokenizer: Tokenizer, folder: Path
) -> Features:
    """The features of examples; `folder` is where other processes find the tokenizer."""
    path = _cache() / f"{_key(task, examples, tokenizer)}.safetensors"
    kept = _read(path, task)
    if kept is not None:
        return kept
    began = time.monotonic()
    if cores() > 1 and len(examples) >= WORTH_SHARING:
        features = _shared(task, examples, folder, cores())
    else:
        features = task.features(examples, tokenizer)
    if time.monotonic() - began > WORTH_KEEPING:
        _write(path, features)
    return features


def _shared(task: Task, examples: Sequence[Any], folder: Path, processes: int) -> Features:
    """In parts, one process each."""
    size = -(-len(examples) // (2 * processes))
    parts = [list(examples[i : i + size]) for i in range(0, len(examples), size)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        work = [(task.settings, part, folder) for part in parts]
        return join_features(list(pool.map(_part, *zip(*work, strict=True))))


def _part(settings: TaskSettings, examples: list[Any], folder: Path) -> Features:
    return build_task(settings).features(examples, load_tokenizer(folder))


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("LITEBERT_CACHE") or Path(base) / "litebert") / "features"


def _key(task: Task, examples: Sequence[Any], tokenizer: Tokenizer) -> str:
    settings = task.settings.model_dump(mode="json", exclude={"name", "metrics", "pooling"})
    digest = hashlib.sha256(json.dumps([VERSION, settings, tokenizer.checksum]).encode())
    return hashlib.sha256((digest.hexdigest() + checksum(examples)).encode()).hexdigest()


def checksum(examples: Sequence[Any]) -> str:
    """What examples are, whatever file they were read from."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(json.dumps({**asdict(example), "where": ""}).encode() + b"\n")
    return digest.hexdigest()


def _write(path: Path, features: Features) -> None:
    arrays = {name: getattr(features.batch, name) for name in _columns()}
    arrays |= {
        name: array
        for name in ("offsets", "owned")
        if (array := getattr(features, name)) is not None
    }
    counts = {name: str(getattr(features, name)) for name in ("shortened", "divided")}
    counts["together"] = str(features.batch.together)
    arrays["counts"] = np.array([int(counts[n]) for n in sorted(counts)], np.int64)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = save(arrays)
        write_whole(path, hashlib.sha256(content).digest() + content)
    except (OSError, FileError):
        return  # a cache that cannot be written costs time, nothing else


def _read(path: Path, task: Task) -> Features | None:
    try:
        whole = path.read_bytes()
        if hashlib.sha256(whole[DIGEST:]).digest() != whole[:DIGEST]:
            return None
        arrays = load(whole[DIGEST:])
        divided, shortened, together = arrays.pop("counts").tolist()
        columns: dict[str, Any] = {name: arrays.pop(name) for name in _columns()}
        return Features(Batch(**columns, together=together), shortened, divided, **arrays)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None


def _columns() -> list[str]:
    return [name for name in Batch.__dataclass_fields__ if name != "together"]

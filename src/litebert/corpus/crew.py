"""Processes that make shards: parcels go in, finished shards are noted on disk.

A shard is written first and its record (counts, SHA-256) second, both flushed and renamed, so a
record always speaks of a whole shard. A parcel with a record is not made again.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import Field

from litebert.base.config import Settings
from litebert.base.errors import FileError, LitebertError, lost_worker
from litebert.base.files import read_json, write_whole
from litebert.corpus.encode import encode_units
from litebert.corpus.parts import Parcel
from litebert.corpus.shard import shard_bytes
from litebert.corpus.store import SHARDS, Counts
from litebert.reading.sources import ReadSettings
from litebert.text.tokenizer import Tokenizer, load_tokenizer


@dataclass(frozen=True)
class Task:
    """What a worker needs to know beside the unit."""

    work: Path
    tokenizer: Path
    reading: ReadSettings
    language: str


class Done(Settings):
    """The record of a finished shard."""

    shard: str
    sha256: str
    size: int
    source: int  # checksum of the raw text, where the unit carried it
    counts: Counts
    messages: dict[str, str]
    seconds: dict[str, float] = Field(default_factory=dict)
    reused: bool = False

    @classmethod
    def read(cls, path: Path) -> Self:
        """A record from disk."""
        return cls.build(read_json(path), str(path)).model_copy(update={"reused": True})


def make_shard(task: Task, tokenizer: Tokenizer, parcel: Parcel) -> Done:
    """Encode a parcel, write its shard and then its record."""
    name = parcel.shard
    encoded = encode_units(parcel.units, tokenizer, task.reading, task.language, name)
    began = time.perf_counter()
    content = shard_bytes(encoded.shard)
    done = Done(
        shard=name,
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        source=_fingerprint(parcel),
        counts=encoded.counts,
        messages=encoded.messages,
    )
    write_whole(task.work / "store" / SHARDS / name, content)
    record = done.model_dump_json(exclude={"seconds", "reused"}, indent=2)
    write_whole(_record(task.work, name), record.encode())
    seconds = {**encoded.seconds, "write": time.perf_counter() - began}
    return done.model_copy(update={"seconds": seconds})


def _record(work: Path, name: str) -> Path:
    return work / "done" / (name.removesuffix(".safetensors") + ".json")


def _fingerprint(parcel: Parcel) -> int:
    """A checksum of the text that the parcel carries; what it only points to is not read."""
    check = 0
    for unit in parcel.units:
        check = zlib.crc32(unit.text or b"", check)
    return check


def finished(work: Path, parcel: Parcel) -> Done | None:
    """The record of a parcel that was done before, if its shard is still there."""
    record = _record(work, parcel.shard)
    shard = work / "store" / SHARDS / parcel.shard
    if not record.exists():
        return None
    done = Done.read(record)
    if done.source != _fingerprint(parcel):
        raise FileError(
            f"{parcel.units[0].source.name}: gives other text than when {work} was begun; "
            "remove that folder to start anew"
        )
    whole = shard.exists() and shard.stat().st_size == done.size
    return done if whole else None


class Crew:
    """Workers with a bounded queue, who begin to load when it is entered; one works right here."""

    def __init__(self, task: Task, workers: int) -> None:
        self.task, self.workers = task, workers
        self.tokenizer: Tokenizer | None = None  # set when the parent has loaded it too
        self.waiting: set[Future[Done]] = set()
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self.workers > 1:
            context = multiprocessing.get_context("spawn")
            self.pool = ProcessPoolExecutor(self.workers, context, _enter, (self.task,))
            # Ctrl-C is for this process to handle: workers inherit that it is blocked.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            for _ in range(self.workers):
                self.pool.submit(_load)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool:
            self.pool.shutdown(cancel_futures=True)

    def give(self, parcel: Parcel) -> Iterator[Done]:
        """Hand over a parcel; yields what is finished, which may be none."""
        assert self.tokenizer is not None
        if done := finished(self.task.work, parcel):
            yield done
        elif self.pool is None:
            yield make_shard(self.task, self.tokenizer, parcel)
        else:
            self.waiting.add(self._submit(self.pool, parcel, self.tokenizer.checksum))
            yield from self._collect(most=self.workers + 1)

    def finish(self) -> Iterator[Done]:
        """Wait for all that was handed over."""
        yield from self._collect(most=0)

    def _submit(self, pool: ProcessPoolExecutor, parcel: Parcel, checksum: str) -> Future[Done]:
        try:
            return pool.submit(_work, parcel, checksum)
        except BrokenProcessPool:
            raise lost_worker() from None

    def _collect(self, most: int) -> Iterator[Done]:
        while len(self.waiting) > most:
            finished_now, self.waiting = wait(self.waiting, return_when=FIRST_COMPLETED)
            for future in finished_now:
                try:
                    yield future.result()
                except BrokenProcessPool:
                    raise lost_worker() from None


_task: Task | None = None  # of a worker process
_tokenizer: Tokenizer | None = None


def _enter(task: Task) -> None:
    """Begin as a worker, which ends when its parent does."""
    global _task
    _task = task
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    process = multiprocessing.parent_process()
    if process is not None:
        process.join()
    os._exit(1)


def _load() -> None:
    """Load the tokenizer ahead of the first parcel; what is wrong with it the parent says."""
    global _tokenizer
    assert _task is not None
    with suppress(LitebertError):
        _tokenizer = _tokenizer or load_tokenizer(_task.tokenizer)


def _work(parcel: Parcel, checksum: str) -> Done:
    _load()
    assert _task is not None
    if _tokenizer is None or _tokenizer.checksum != checksum:
        raise FileError(f"{_task.tokenizer}: the tokenizer was changed while it was being used")
    return make_shard(_task, _tokenizer, parcel)

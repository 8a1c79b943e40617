"""Workers that make shards: work units go in, finished shards are noted on disk.

A shard is written first and its record (counts, SHA-256) second, both flushed and renamed, so a
record always speaks of a whole shard. A work unit with a record is not made again.
"""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import Field

from litebert.base.errors import FileError, LitebertError
from litebert.base.files import read_json, write_atomic
from litebert.base.processes import ProcessPool
from litebert.base.settings import Settings
from litebert.corpus.preparing.encode import encode_chunks
from litebert.corpus.preparing.work_units import PrepareSettings, WorkUnit
from litebert.corpus.shard import shard_bytes
from litebert.corpus.store import SHARDS, Counts
from litebert.text.tokenizer import Tokenizer, load_tokenizer


@dataclass(frozen=True)
class WorkerSetup:
    """What a worker needs to know beside the work unit."""

    staging: Path
    tokenizer: Path | str
    settings: PrepareSettings


class ShardRecord(Settings):
    """The record of a finished shard."""

    shard: str
    sha256: str
    size: int
    source: int  # checksum of the raw text, where the work unit carried it
    counts: Counts
    messages: dict[str, str]
    seconds: dict[str, float] = Field(default_factory=dict)
    reused: bool = False

    def note(self, staging: Path) -> None:
        """Write that the shard is finished."""
        written = self.model_dump_json(exclude={"seconds", "reused"}, indent=2)
        write_atomic(_record_path(staging, self.shard), written.encode())

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls.build(read_json(path), str(path)).model_copy(update={"reused": True})


def make_shard(setup: WorkerSetup, tokenizer: Tokenizer, unit: WorkUnit) -> ShardRecord:
    """Encode a work unit, write its shard and then its record."""
    encoded = encode_chunks(unit.chunks, tokenizer, setup.settings, unit.shard)
    began = time.perf_counter()
    content = shard_bytes(encoded.shard)
    record = ShardRecord(
        shard=unit.shard,
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        source=_fingerprint(unit),
        counts=encoded.counts,
        messages=encoded.messages,
    )
    write_atomic(setup.staging / "store" / SHARDS / unit.shard, content)
    record.note(setup.staging)
    seconds = {**encoded.seconds, "write": time.perf_counter() - began}
    return record.model_copy(update={"seconds": seconds})


def _record_path(staging: Path, shard: str) -> Path:
    return staging / "done" / (shard.removesuffix(".safetensors") + ".json")


def _fingerprint(unit: WorkUnit) -> int:
    """A checksum of the text that the work unit carries; what it only points to is not read."""
    check = 0
    for chunk in unit.chunks:
        check = zlib.crc32(chunk.text or b"", check)
    return check


def finished(staging: Path, unit: WorkUnit) -> ShardRecord | None:
    """The record of a work unit that was done before, if its shard is still there."""
    path = _record_path(staging, unit.shard)
    shard = staging / "store" / SHARDS / unit.shard
    if not path.exists():
        return None
    record = ShardRecord.read(path)
    if record.source != _fingerprint(unit):
        raise FileError(
            f"{unit.chunks[0].source.name}: gives other text than when {staging} was begun; "
            "remove that folder to start anew"
        )
    whole = shard.exists() and shard.stat().st_size == record.size
    return record if whole else None


class Workers:
    """Workers with a bounded queue, which begin to load when entered; a single one works here."""

    def __init__(self, setup: WorkerSetup, count: int) -> None:
        self.setup, self.count = setup, count
        self._pool = ProcessPool(count, _begin, (setup,)) if count > 1 else None

    def __enter__(self) -> Self:
        if self._pool:
            self._pool.__enter__().start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool:
            self._pool.__exit__(*error)

    def make_shards(self, units: Iterable[WorkUnit], tokenizer: Tokenizer) -> Iterator[ShardRecord]:
        """The records of all work units as they are done; those of an earlier run among them."""
        for unit in units:
            if record := finished(self.setup.staging, unit):
                yield record
            elif self._pool is None:
                yield make_shard(self.setup, tokenizer, unit)
            else:
                self._pool.submit(_make, unit, tokenizer.checksum)
                yield from self._pool.completed(pending=self.count + 1)
        if self._pool is not None:
            yield from self._pool.completed()


_setup: WorkerSetup | None = None  # of a worker process
_tokenizer: Tokenizer | None = None


def _begin(setup: WorkerSetup) -> None:
    """Load the tokenizer ahead of the first work unit; what is wrong with it the parent says."""
    global _setup, _tokenizer
    _setup = setup
    with suppress(LitebertError):
        _tokenizer = load_tokenizer(setup.tokenizer)


def _make(unit: WorkUnit, checksum: str) -> ShardRecord:
    assert _setup is not None
    if _tokenizer is None or _tokenizer.checksum != checksum:
        raise FileError(f"{_setup.tokenizer}: the tokenizer was changed while it was being used")
    return make_shard(_setup, _tokenizer, unit)

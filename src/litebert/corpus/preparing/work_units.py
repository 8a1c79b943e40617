"""Which of N machines prepares what: parts need no coordination, because work units have names.

A work unit becomes one shard: a chunk of a file, or a run of small files as a whole, so that a
folder of a hundred thousand short texts does not become a hundred thousand shards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import Field

from litebert.base.errors import SettingsError
from litebert.reading.chunks import CHUNK_BYTES, Chunk, ReadSettings, split_chunks
from litebert.reading.sources import Source


class PrepareSettings(ReadSettings):
    """What decides a store."""

    language: str = Field(default="en", description="language of the text, for sentence ends")
    held_out: float = Field(
        default=0.01, ge=0, lt=1, description="fraction of documents kept for evaluation"
    )
    drop_duplicates: bool = Field(default=False, description="leave out documents seen before")
    drop: frozenset[int] = Field(default=frozenset(), description="keys of documents to leave out")
    chunk_bytes: int = Field(default=CHUNK_BYTES, ge=1, description="text of a shard, about")


@dataclass(frozen=True)
class WorkUnit:
    """Chunks that become a shard, and how much of the input lies before its end, for progress."""

    source: int
    number: int
    chunks: tuple[Chunk, ...]
    bytes_read: int

    @property
    def shard(self) -> str:
        """The name of its shard; names sort in the order of the input."""
        return f"{self.source:06d}-{self.number:06d}.safetensors"


def parse_part(text: str) -> tuple[int, int]:
    """`2/3` as (2, 3)."""
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    part = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= part[0] <= part[1]:
        raise SettingsError(f"part {text}: expected I/N with 1 <= I <= N, as in 2/3")
    return part


def work_units(
    sources: Sequence[Source], settings: PrepareSettings, part: tuple[int, int]
) -> Iterator[WorkUnit]:
    """The work units of a part. All parts together give those of the whole, named alike.

    Where there are files enough, parts take whole files, so that none reads what is not its own.
    """
    runs = _runs(sources, settings.chunk_bytes)
    whole = len(runs) >= 2 * part[1]
    before = 0
    for place, run in enumerate(runs):
        if not whole or _is_ours(place, part):
            for unit in _split(run, settings, before):
                if whole or _is_ours(place + unit.number, part):
                    yield unit
        before += sum(source.size or 0 for source in run)


def _runs(sources: Sequence[Source], chunk_bytes: int) -> list[list[Source]]:
    """Neighbouring small files together, up to the size of a chunk; any other source alone."""
    runs: list[list[Source]] = []
    room = 0
    for source in sources:
        size = chunk_bytes if source.size is None else source.size
        if not runs or size > room:
            runs.append([])
            room = chunk_bytes
        runs[-1].append(source)
        room -= size
    return runs


def _split(run: Sequence[Source], settings: PrepareSettings, before: int) -> Iterator[WorkUnit]:
    """A work unit a chunk; chunks of small files together, but no more text than a chunk has."""
    first, number, limit = run[0].number, 0, settings.chunk_bytes
    chunks: list[Chunk] = []
    size = 0
    for source in run:
        for chunk in split_chunks(source, settings, limit):
            chunks.append(chunk)
            size += chunk.end_byte - chunk.first_byte if not chunk.row_groups else limit
            if len(run) == 1 or size >= limit:
                yield WorkUnit(first, number, tuple(chunks), before + chunk.consumed)
                chunks, size, number = [], 0, number + 1
        before += source.size or 0
    if chunks:
        yield WorkUnit(first, number, tuple(chunks), before)


def _is_ours(number: int, part: tuple[int, int]) -> bool:
    return number % part[1] == part[0] - 1

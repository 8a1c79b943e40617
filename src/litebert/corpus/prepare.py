"""`litebert prepare`: raw text to a store, in parallel, in bounded memory, stoppable anywhere.

The inputs are cut into parcels (corpus/parts.py), each of which becomes one shard. Which text is
in which shard depends on nothing but the inputs, so a killed run goes on with the shards that are
missing, any number of workers gives the same bytes, and the parts of a corpus (`part = (2, 3)`) are
just the shards that other machines left out.

Work is kept in DIR.partial (corpus/workplace.py), which is renamed to DIR when the manifest is
written. A store is therefore whole or not there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from litebert.base.config import Settings
from litebert.base.errors import FileError, SettingsError
from litebert.base.files import flush, write_json, write_manifest
from litebert.corpus.crew import Crew, Done, Task
from litebert.corpus.parts import Parcel, Part, check_part, parcels
from litebert.corpus.store import SHARDS, STORE, Counts, Store, StoreInfo
from litebert.corpus.workplace import is_there, work_folder, workplace
from litebert.reading.records import Skipped
from litebert.reading.sources import (
    UNIT_BYTES,
    ReadSettings,
    Source,
    check_source,
    find_sources,
)  # fmt: skip
from litebert.text.sentences import check_language
from litebert.text.tokenizer import Tokenizer, load_tokenizer


class PrepareSettings(Settings):
    """What decides the store."""

    reading: ReadSettings = ReadSettings()
    language: str = "en"
    drop_duplicates: bool = False
    held_out: float = Field(default=0.01, ge=0, lt=1)
    unit_bytes: int = Field(default=UNIT_BYTES, ge=1)


@dataclass
class Progress:
    """How far a preparation is; `left_out` holds what was skipped."""

    counts: Counts = field(default_factory=Counts)
    there: bool = False  # the store was finished before; nothing was read
    read: int = 0  # bytes of the inputs, as on disk
    size: int | None = None  # of all inputs, where known
    reused: int = 0  # shards that an earlier run had finished
    reused_bytes: int = 0  # of text in them
    left_out: Skipped = field(default_factory=Skipped)
    seconds: dict[str, float] = field(default_factory=dict)  # of workers, by stage


@dataclass(frozen=True)
class Prepared:
    """A finished store, and how it was made."""

    store: Store
    progress: Progress


def prepare(
    inputs: Sequence[str],
    tokenizer: Path | str,
    out: Path | str,
    settings: PrepareSettings | None = None,
    *,
    part: Part = (1, 1),
    workers: int | None = None,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> Prepared:
    """Turn raw text into a store; continues what an earlier, interrupted run began.

    With more than one worker a script of yours must guard its main part with
    `if __name__ == "__main__":`, because the workers import it.
    """
    settings, out = settings or PrepareSettings(), Path(out)
    check_part(part, f"{part[0]}/{part[1]}")
    check_language(settings.language)
    workers = os.cpu_count() or 1 if workers is None else workers
    if workers < 1:
        raise SettingsError(f"workers {workers}: at least one must do the work")
    task = Task(work_folder(out), Path(tokenizer), settings.reading, settings.language)
    progress = Progress()
    with Crew(task, workers) as crew:
        crew.tokenizer = load_tokenizer(tokenizer)
        sources = find_sources(inputs, settings.reading)
        for source in sources:
            check_source(source, settings.reading)
        info = _describe(crew.tokenizer, sources, settings, part)
        progress.size = _total_size(sources)
        progress.there = is_there(out, info, sources)
        if not progress.there:
            with workplace(out, info, sources, crew.tokenizer) as work:
                cut = parcels(sources, settings.reading, settings.unit_bytes, part)
                _encode_all(crew, cut, progress, watch)
                _finish(work, out, info)
    shutil.rmtree(work_folder(out), ignore_errors=True)
    return Prepared(Store([out]), progress)


def _describe(
    tokenizer: Tokenizer,
    sources: Sequence[Source],
    settings: PrepareSettings,
    part: Part,
) -> StoreInfo:
    """Everything that decides the store, but for its shards."""
    names = [[Path(source.name).name, source.size] for source in sources]
    decisive = settings.model_dump(include={"language", "unit_bytes"})
    decisive |= settings.reading.model_dump(include={"format", "field"})
    decisive["inputs"] = hashlib.sha256(repr(names).encode()).hexdigest()
    return StoreInfo(
        tokenizer=tokenizer.checksum,
        vocabulary=tokenizer.vocab_size,
        settings=decisive,
        drop_duplicates=settings.drop_duplicates,
        held_out=settings.held_out,
        part=part,
    )


def _total_size(sources: Sequence[Source]) -> int | None:
    sizes = [source.size for source in sources]
    return sum(size or 0 for size in sizes) if None not in sizes else None


def _encode_all(
    crew: Crew, cut: Iterator[Parcel], progress: Progress, watch: Callable[[Progress], None]
) -> None:
    """Have every shard that is missing made."""
    for parcel in cut:
        for done in crew.give(parcel):
            _note(progress, done, watch)
        progress.read = parcel.read
    for done in crew.finish():
        _note(progress, done, watch)


def _note(progress: Progress, done: Done, watch: Callable[[Progress], None]) -> None:
    progress.counts = progress.counts + done.counts
    progress.reused += done.reused
    progress.reused_bytes += done.counts.bytes * done.reused
    progress.left_out.merge(Skipped(dict(done.counts.skipped), dict(done.messages)))
    for stage, seconds in done.seconds.items():
        progress.seconds[stage] = progress.seconds.get(stage, 0) + seconds
    watch(progress)


def _finish(work: Path, out: Path, info: StoreInfo) -> None:
    """Write what ties the shards together, the manifest last, and put the store in place."""
    store, sums, shards = work / "store", {}, {}
    for record in sorted((work / "done").glob("*.json")):
        done = Done.read(record)
        shards[done.shard] = done.counts
        sums[f"{SHARDS}/{done.shard}"] = done.sha256
    if not any(counts.documents for counts in shards.values()) and info.part == (1, 1):
        raise FileError("the inputs hold no text at all; there is nothing to prepare")
    for stray in set((store / SHARDS).iterdir()) - {store / SHARDS / name for name in shards}:
        stray.unlink()
    write_json(store / STORE, info.model_copy(update={"shards": shards}).model_dump(mode="json"))
    write_manifest(store, sums)
    flush(store)
    if out.exists():
        out.rmdir()
    store.rename(out)

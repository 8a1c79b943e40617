"""`litebert prepare`: raw text to a store, in parallel, in bounded memory, stoppable anywhere.

The inputs are cut into parcels (corpus/parts.py), each of which becomes one shard. Which text is
in which shard depends on nothing but the inputs, so a killed run goes on with the shards that are
missing, any number of workers gives the same bytes, and the parts of a corpus (`part = (2, 3)`) are
just the shards that other machines left out.

Work is kept in DIR.partial, shards in DIR.partial/store; the store is renamed to DIR when its
manifest is written. A store is therefore whole or not there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from litebert.base.config import Settings
from litebert.base.errors import FileError
from litebert.base.files import flush, read_json, write_json, write_manifest
from litebert.corpus.crew import Crew, Done, Task
from litebert.corpus.parts import Parcel, Part, check_part, parcels
from litebert.corpus.store import SHARDS, STORE, TOKENIZER, Counts, Store, StoreInfo
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
    task = Task(_work_folder(out), Path(tokenizer), settings.reading, settings.language)
    progress = Progress()
    with Crew(task, workers or os.cpu_count() or 1) as crew:
        crew.tokenizer = load_tokenizer(tokenizer)
        sources = find_sources(inputs, settings.reading)
        for source in sources:
            check_source(source, settings.reading)
        info = _describe(crew.tokenizer, sources, settings, part)
        progress.size = _total_size(sources)
        if not _is_there(out, info):
            with _workplace(out, info, crew.tokenizer) as work:
                cut = parcels(sources, settings.reading, settings.unit_bytes, part)
                _encode_all(crew, cut, progress, watch)
                _finish(work, out, info)
    shutil.rmtree(_work_folder(out), ignore_errors=True)
    return Prepared(Store([out]), progress)


def _describe(
    tokenizer: Tokenizer,
    sources: Sequence[Source],
    settings: PrepareSettings,
    part: Part,
) -> StoreInfo:
    """Everything that decides the store, but for its shards."""
    names = [[Path(source.name).name, source.size] for source in sources]
    decisive = settings.model_dump(include={"reading", "language", "unit_bytes"})
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


def _work_folder(out: Path) -> Path:
    return out.with_name(out.name + ".partial")


def _is_there(out: Path, info: StoreInfo) -> bool:
    """Whether the wanted store is finished already; anything else in its place is an error."""
    if not os.path.lexists(out) or (out.is_dir() and not any(out.iterdir())):
        return False
    if (out / STORE).exists():
        there = Store([out]).info.model_copy(update={"shards": {}})
        if there == info:
            return True
        raise FileError(
            f"{out}: a store of other text or settings ({_difference(there, info)}); "
            "name another folder or remove it first"
        )
    raise FileError(f"{out}: already exists and is no store; name another folder or remove it")


def _difference(there: StoreInfo, wanted: StoreInfo) -> str:
    """The first setting that differs, as a reader would name it."""
    old, new = _flat(there.model_dump()), _flat(wanted.model_dump())
    for name in new:
        if old.get(name) != new[name]:
            return f"{name}: {old.get(name)} there, {new[name]} wanted"
    return "an older format"


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= (
            _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
        )
    return flat


@contextmanager
def _workplace(out: Path, info: StoreInfo, tokenizer: Tokenizer) -> Iterator[Path]:
    """The folder of an unfinished store, ours alone, new or as an earlier run left it."""
    work = _work_folder(out)
    try:
        (work / "done").mkdir(parents=True, exist_ok=True)
        (work / "store" / SHARDS).mkdir(parents=True, exist_ok=True)
        with (work / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FileError(f"{work}: another `litebert prepare` is at work there") from None
            _check_plan(work, info)
            tokenizer.save(work / "store" / TOKENIZER)
            yield work
    except OSError as error:
        raise FileError(f"{out}: cannot be written ({error})") from None


def _check_plan(work: Path, info: StoreInfo) -> None:
    """Note what is being made, or compare with what an earlier run noted."""
    plan = work / "plan.json"
    if not plan.exists():
        scratch = work / "plan.new"
        write_json(scratch, info.model_dump(mode="json"))
        scratch.replace(plan)
    begun = StoreInfo.build(read_json(plan), str(plan))
    if begun != info:
        raise FileError(
            f"{work}: begun with other text or settings ({_difference(begun, info)}); "
            "remove that folder to start anew, or use the same settings to continue"
        )


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

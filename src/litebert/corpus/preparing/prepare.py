"""`litebert prepare`: raw text to a store, in parallel, in bounded memory, stoppable anywhere.

The inputs are split into work units (work_units.py), each of which becomes one shard. Which text is
in which shard depends on nothing but the inputs, so a killed run goes on with the shards that are
missing, any number of workers gives the same bytes, and the parts of a corpus (`part = "2/3"`) are
just the shards that other machines left out.

Work is kept in DIR.partial (staging.py), which is renamed to DIR when the manifest is written. A
store is therefore whole or not there.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.base.errors import FileError, SettingsError
from litebert.base.files import flush, sync, write_json, write_manifest
from litebert.base.processes import cpu_count
from litebert.base.ray_tasks import require_cluster
from litebert.base.remote.folders import publish_folder
from litebert.base.remote.urls import as_url
from litebert.corpus.preparing.on_ray import FinishedPart, describe_task, make_parts
from litebert.corpus.preparing.staging import (
    is_finished,
    is_published,
    staging,
    staging_folder,
    working_folder,
)
from litebert.corpus.preparing.work_units import (
    PrepareSettings,
    WorkUnit,
    parse_part,
    work_units,
)
from litebert.corpus.preparing.workers import ShardRecord, Workers, WorkerSetup
from litebert.corpus.quality import read_drop_list
from litebert.corpus.store import SHARDS, STORE, Counts, Store, StoreInfo
from litebert.reading.chunks import CHUNK_BYTES, check_source
from litebert.reading.records import Skipped
from litebert.reading.remarks import remarks_on
from litebert.reading.sources import Source, find_sources
from litebert.text.sentences import check_language
from litebert.text.tokenizer import Tokenizer, load_tokenizer


@dataclass
class PrepareProgress:
    """How far a preparation is."""

    counts: Counts = dataclasses.field(default_factory=Counts)
    already_there: bool = False  # the store was finished before; nothing was read
    bytes_read: int = 0  # of the inputs, as on disk
    bytes_total: int | None = None  # of all inputs, where known
    reused_shards: int = 0  # that an earlier run had finished
    reused_bytes: int = 0  # of text in them
    skipped: Skipped = dataclasses.field(default_factory=Skipped)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)  # of workers, by stage

    def add(self, record: ShardRecord) -> None:
        self.counts = self.counts + record.counts
        self.reused_shards += record.reused
        self.reused_bytes += record.counts.text_bytes * record.reused
        self.skipped.merge(Skipped(dict(record.counts.skipped), dict(record.messages)))
        for stage, seconds in record.seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0) + seconds


@dataclass(frozen=True)
class PreparedStore:
    """A finished store, and how it was made."""

    store: Store
    progress: PrepareProgress


def prepare(
    inputs: Sequence[str],
    tokenizer: Path | str,
    out: Path | str,
    *,
    language: str = "en",
    format: str = "auto",
    field: str = "text",
    held_out: float = 0.01,
    drop_duplicates: bool = False,
    drop: Path | str | None = None,
    strip_markup: bool = False,
    on_error: str = "stop",
    part: str = "1/1",
    parts: int | None = None,
    on: str | None = None,
    num_workers: int | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    on_progress: Callable[[PrepareProgress], None] = lambda progress: None,
    say: Callable[[str], None] = lambda text: None,
) -> PreparedStore:
    """Turn raw text into a store of token ids, for pretraining.

    Streams in bounded memory, and can be stopped at any time: the same command resumes where it
    was. Documents and sentences are kept; segments and masks are made when training.

    Example: litebert prepare wiki/*.jsonl.gz --tokenizer my-tokenizer --out corpus

    Args:
        inputs: Files, folders or globs (txt, jsonl, json, csv, tsv, parquet, WikiExtractor's; also
            .gz, .xz, .zst), also behind URLs (s3://, gs://, hdfs://, https://), "-" for standard
            input, "hf:NAME" for a Hugging Face dataset.
        tokenizer: A tokenizer's folder or model file, or a URL of these.
        out: The folder of the store to write, or a URL (s3://…), to which it is uploaded whole.
        language: Language of the text, for sentence ends.
        format: "auto" (by name and beginning; .txt is paragraphs), "sentences" (one a line, blank
            line between documents), "paragraphs" (blank line between documents), "file" (the whole
            file is one document), "jsonl", "json" (a list of objects), "csv", "tsv", "parquet" or
            "wikiextractor" (<doc …> to </doc>).
        field: The key or column that holds the text; a column of a table also by its number from 0.
        held_out: Fraction of documents kept for evaluation, chosen by content.
        drop_duplicates: Leave out documents seen before.
        drop: Leave out the documents that `litebert inspect --quality --drop FILE` listed.
        strip_markup: Take wiki and HTML markup out of the text ([[links]], &nbsp;, <br>, <ref>).
        on_error: "stop" at the first bad record, or "skip" and count them.
        part: Prepare only part I of N, e.g. "2/8"; `open_store` joins the parts.
        parts: With `on`: into how many tasks the work is divided; by default four a processor.
        on: "ray" (this machine) or "ray:ADDRESS": the nodes of a Ray cluster do the work, each some
            parts of it. Inputs and `out` must be URLs or on a file system that all nodes share.
        num_workers: Processes; by default one a core.
        chunk_bytes: About how much text becomes one shard. All parts must agree on it.
        on_progress: Called with the progress whenever a shard is done.
        say: Told what the user should know about the inputs, a sentence each.
    """
    options = {"language": language, "format": format, "field": field, "held_out": held_out,
               "drop_duplicates": drop_duplicates, "on_error": on_error,
               "strip_markup": strip_markup, "chunk_bytes": chunk_bytes,
               "drop": frozenset() if drop is None else read_drop_list(Path(drop))}  # fmt: skip
    settings, place = PrepareSettings.build(options, "litebert prepare"), working_folder(out)
    check_language(language)
    number = parse_part(part)
    count = cpu_count() if num_workers is None else num_workers
    _check_parts(number, parts, on)
    if count < 1:
        raise SettingsError(f"num_workers {count}: at least one must do the work")
    progress, elsewhere = PrepareProgress(), []
    with Workers(
        WorkerSetup(staging_folder(place), tokenizer, settings), 1 if on else count
    ) as workers:
        loaded = load_tokenizer(tokenizer)
        sources = find_sources(inputs, settings.format)
        for source in sources:
            check_source(source, settings)
        info = _describe(loaded, sources, settings, number)
        progress.bytes_total = _total_size(sources)
        url = as_url(out)
        published = url is not None and is_published(url, info)
        if url and on:
            shutil.rmtree(place, ignore_errors=True)  # without the shards, which are there
        progress.already_there = published or is_finished(place, info, sources)
        if not progress.already_there:
            place.parent.mkdir(parents=True, exist_ok=True) if url else None
            for remark in remarks_on(sources, settings):
                say(remark)
            with staging(place, info, sources, loaded) as folder:
                if on is None:
                    units = _reading(work_units(sources, settings, number), progress)
                    records = workers.make_shards(units, loaded)
                else:
                    task = describe_task(sources, settings, tokenizer, out, info)
                    records = _gather(make_parts(on, task, parts, folder), progress)
                for record in records:
                    progress.add(record)
                    on_progress(progress)
                elsewhere = _finish(folder, place, info, shards_are_here=not (url and on))
    if url and not published:
        publish_folder(place, url, elsewhere)
        shutil.rmtree(place)
    shutil.rmtree(staging_folder(place), ignore_errors=True)
    return PreparedStore(Store([out]), progress)


def _check_parts(part: tuple[int, int], parts: int | None, on: str | None) -> None:
    if on is not None and part != (1, 1):
        raise SettingsError("--part and --on: a cluster makes all parts; give one of the two")
    if parts is not None and (on is None or parts < 1):
        raise SettingsError(f"--parts {parts}: goes with --on, and is at least 1; see also --part")
    if on is not None:
        require_cluster(on)


def _gather(found: Iterable[FinishedPart], progress: PrepareProgress) -> Iterator[ShardRecord]:
    for part in found:
        progress.bytes_read = round(part.fraction * (progress.bytes_total or 0))
        yield from part.records


def _describe(
    tokenizer: Tokenizer,
    sources: Sequence[Source],
    settings: PrepareSettings,
    part: tuple[int, int],
) -> StoreInfo:
    """Everything that decides the store, but for its shards."""
    names = [[Path(source.name).name, source.size] for source in sources]
    decisive = settings.model_dump(
        include={"language", "chunk_bytes", "format", "field", "strip_markup"}
    )
    if settings.drop:
        decisive["drop"] = hashlib.sha256(repr(sorted(settings.drop)).encode()).hexdigest()
    decisive["inputs"] = hashlib.sha256(repr(names).encode()).hexdigest()
    return StoreInfo(
        tokenizer=tokenizer.checksum,
        vocab_size=tokenizer.vocab_size,
        settings=decisive,
        drop_duplicates=settings.drop_duplicates,
        held_out=settings.held_out,
        part=part,
    )


def _total_size(sources: Sequence[Source]) -> int | None:
    sizes = [source.size for source in sources]
    return sum(size or 0 for size in sizes) if None not in sizes else None


def _reading(units: Iterator[WorkUnit], progress: PrepareProgress) -> Iterator[WorkUnit]:
    """The work units, noting how much of the inputs was read."""
    for unit in units:
        yield unit
        progress.bytes_read = unit.bytes_read


def _finish(folder: Path, out: Path, info: StoreInfo, *, shards_are_here: bool) -> list[str]:
    """Write what ties the shards together, the manifest last, and put the store in place.

    The names of shards that are not here, because others uploaded them.
    """
    store, sums, shards = folder / "store", {}, {}
    elsewhere: dict[str, dict[str, Any]] = {}
    for path in sorted((folder / "done").glob("*.json")):
        record = ShardRecord.read(path)
        shards[record.shard] = record.counts
        sums[f"{SHARDS}/{record.shard}"] = record.sha256
        if not shards_are_here:
            entry = {"bytes": record.size, "sha256": record.sha256}
            elsewhere[f"{SHARDS}/{record.shard}"] = entry
    if not any(counts.documents for counts in shards.values()) and info.part == (1, 1):
        raise FileError("the inputs hold no text at all; there is nothing to prepare")
    for stray in set((store / SHARDS).iterdir()) - {store / SHARDS / name for name in shards}:
        stray.unlink()
    write_json(store / STORE, info.model_copy(update={"shards": shards}).model_dump(mode="json"))
    write_manifest(store, sums, elsewhere)
    flush(store)
    if os.path.exists(out):
        out.rmdir()
    store.rename(out)
    sync(out.parent)
    return list(elsewhere)

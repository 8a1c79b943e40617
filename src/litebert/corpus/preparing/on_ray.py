"""`litebert prepare --on ray`: the parts of one store made by the nodes of a cluster.

Shards have names and contents that depend on the inputs alone, so nodes need not agree on anything:
each makes its part and puts the shards where the store is to be, this process counts them and
writes the manifest. On a file system that all nodes share, they work in the staging folder of the
store; at a URL every part leaves a record behind, by which it is not made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from litebert.base.errors import SettingsError
from litebert.base.files import LARGEST_JSON, write_atomic
from litebert.base.ray_tasks import ray_cluster
from litebert.base.remote.folders import in_parallel, mark_incomplete
from litebert.base.remote.objects import read_object, upload
from litebert.base.remote.urls import as_url, join
from litebert.corpus.preparing.staging import staging_folder, working_folder
from litebert.corpus.preparing.work_units import PrepareSettings, work_units
from litebert.corpus.preparing.workers import ShardRecord, Workers, WorkerSetup
from litebert.corpus.store import SHARDS, StoreInfo
from litebert.reading import hub
from litebert.reading.sources import Source
from litebert.reading.streams import STDIN
from litebert.text.tokenizer import load_tokenizer

PARTS = ".parts"
TASKS_PER_CPU = 4  # so that a slow part is not what all wait for


@dataclass(frozen=True)
class FinishedPart:
    """A finished part, and how many of all are finished."""

    records: list[ShardRecord]
    fraction: float


@dataclass(frozen=True)
class PartTask:
    """What a node must know to make a part."""

    sources: Sequence[Source]
    settings: PrepareSettings
    tokenizer: str
    out: str  # a path that all nodes share, or a URL
    store: str  # a checksum of what the store is to be
    part: tuple[int, int] = (1, 1)


def describe_task(
    inputs: Sequence[Source], settings: PrepareSettings, tokenizer: Path | str, out: Path | str,
    info: StoreInfo,
) -> PartTask:  # fmt: skip
    """The task of all nodes, whose working folders differ: paths are absolute."""
    sources = [source if _is_elsewhere(source.name) else _absolute(source) for source in inputs]
    store = hashlib.sha256(info.model_dump_json().encode()).hexdigest()[:16]
    model, place = (as_url(name) or os.path.abspath(name) for name in (tokenizer, out))
    return PartTask(sources, settings, model, place, store)


def _is_elsewhere(name: str) -> bool:
    return as_url(name) is not None or name.startswith(hub.PREFIX)


def _absolute(source: Source) -> Source:
    if source.name == STDIN:
        raise SettingsError("standard input cannot be read by a cluster; name files or URLs")
    return replace(source, name=os.path.abspath(source.name))


def make_parts(on: str, task: PartTask, parts: int | None, staging: Path) -> Iterator[FinishedPart]:
    """The records of each part's shards, as parts are finished, which `staging` notes too."""
    if url := as_url(task.out):
        mark_incomplete(url)
    with ray_cluster(on) as cluster:
        count = parts or TASKS_PER_CPU * cluster.cpus
        tasks = [(replace(task, part=(number, count)),) for number in range(1, count + 1)]
        for done, (_, found) in enumerate(cluster.completed(make_part, tasks), 1):
            records = [ShardRecord.model_validate(record) for record in found]
            for record in records:
                record.note(staging)
            yield FinishedPart(records, done / count)


def make_part(task: PartTask) -> list[dict]:
    """Make one part and put its shards in their place; plain values, to cross between nodes."""
    url = as_url(task.out)
    noted = None if url is None else read_object(_record(url, task), LARGEST_JSON)
    if noted is not None:
        return [{**record, "reused": True} for record in json.loads(noted)]
    place = _place(task)
    setup = WorkerSetup(place, task.tokenizer, task.settings)
    if url is not None:  # else they are there, unless the store is finished and nobody waits for us
        for name in ("done", f"store/{SHARDS}"):
            (place / name).mkdir(parents=True, exist_ok=True)
    with Workers(setup, 1) as workers:
        units = work_units(task.sources, task.settings, task.part)
        records = list(workers.make_shards(units, load_tokenizer(task.tokenizer)))
    found = [record.model_dump(mode="json") for record in records]
    if url is not None:
        _publish(url, task, place, records, found)
    return found


def _place(task: PartTask) -> Path:
    """Where a part is made; of a URL a folder of its own on the node, as it may run twice."""
    folder = staging_folder(working_folder(task.out))
    if as_url(task.out) is None:
        return folder
    return folder.with_name(f"{folder.name}-{task.part[0]}-of-{task.part[1]}-{os.getpid()}")


def _record(url: str, task: PartTask) -> str:
    return join(url, PARTS, task.store, "{}-of-{}.json".format(*task.part))


def _publish(
    url: str, task: PartTask, place: Path, records: Sequence[ShardRecord], found: list[dict]
) -> None:
    """Upload the shards of a part, and then what says that they are there."""
    shards = place / "store" / SHARDS
    names = [record.shard for record in records]
    in_parallel(lambda name: upload(shards / name, join(url, SHARDS, name)), names)
    write_atomic(place / "records.json", json.dumps(found).encode())
    upload(place / "records.json", _record(url, task))
    shutil.rmtree(place, ignore_errors=True)

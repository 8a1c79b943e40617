"""Staging: a folder beside a store's destination, where it is made, and resumed if interrupted.

DIR.partial/plan.json    what is being made, and when the inputs were last changed
DIR.partial/done/        a record of each finished shard
DIR.partial/store/       the store to be, renamed to DIR at the end
DIR.partial/lock         held by the one process that works here
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from litebert.base.errors import FileError, SettingsError
from litebert.base.files import (
    MANIFEST,
    json_text,
    lock_folder,
    read_json,
    read_manifest,
    write_atomic,
)
from litebert.base.remote.cache import stand_in
from litebert.base.remote.folders import check_absent, check_writable
from litebert.base.remote.objects import object_at
from litebert.base.remote.urls import as_url, join
from litebert.base.settings import first_difference
from litebert.corpus.store import SHARDS, STORE, TOKENIZER, Store, StoreInfo
from litebert.reading.sources import Source
from litebert.reading.streams import file_version
from litebert.text.tokenizer import Tokenizer


def staging_folder(out: Path) -> Path:
    """The folder in which the store `out` is made."""
    if not out.name or os.path.ismount(out):
        raise SettingsError(f"{out}: a store cannot be put in its place; name a folder inside it")
    return out.with_name(out.name + ".partial")


def working_folder(out: Path | str) -> Path:
    """Where a store is put together: its own place, or of a URL one on this machine."""
    url = as_url(out)
    return Path(out) if url is None else stand_in("stores-to-be", url)


def is_published(url: str, info: StoreInfo) -> bool:
    """Whether the wanted store is at a URL already; anything else in its place is an error."""
    if object_at(join(url, MANIFEST)) is None:
        check_absent(url)
        check_writable(url)
        return False
    _refuse_other(url, info)
    return True


def is_finished(out: Path, info: StoreInfo, sources: Sequence[Source]) -> bool:
    """Whether the wanted store is finished already; anything else in its place is an error."""
    if not os.path.lexists(out) or (os.path.isdir(out) and not any(out.iterdir())):
        return False
    if not os.path.exists(out / STORE):
        raise FileError(f"{out}: already exists and is no store; name another folder or remove it")
    _refuse_other(out, info)
    if any(source.size is None for source in sources):
        raise FileError(f"{out}: already exists; name another folder or remove it first")
    for name, entry in read_manifest(out).items():
        if not os.path.isfile(out / name) or (out / name).stat().st_size != entry["bytes"]:
            raise FileError(f"{out / name}: missing or cut short; remove {out} to prepare it anew")
    return True


def _refuse_other(out: Path | str, info: StoreInfo) -> None:
    there = Store([out]).info.model_copy(update={"shards": {}})
    if there != info:
        raise FileError(
            f"{out}: a store of other text or settings ({_difference(there, info)}); "
            "name another folder or remove it first"
        )


def _difference(there: StoreInfo, wanted: StoreInfo) -> str:
    """The first setting that differs, as a reader would name it."""
    return first_difference(there.model_dump(), wanted.model_dump()) or "an older format"


@contextmanager
def staging(
    out: Path, info: StoreInfo, sources: Sequence[Source], tokenizer: Tokenizer
) -> Iterator[Path]:
    """The folder of an unfinished store, ours alone, new or as an earlier run left it."""
    folder = staging_folder(out)
    try:
        (folder / "done").mkdir(parents=True, exist_ok=True)
        (folder / "store" / SHARDS).mkdir(parents=True, exist_ok=True)
        with lock_folder(folder, "litebert prepare"):
            _check_plan(folder, info, sources)
            tokenizer.save(folder / "store" / TOKENIZER)
            yield folder
    except OSError as error:
        raise FileError(f"{out}: cannot be written ({error})") from None


def _check_plan(folder: Path, info: StoreInfo, sources: Sequence[Source]) -> None:
    """Note what is being made, or compare with what an earlier run noted.

    What is only decided on reading (held-out fraction, duplicates) may change in between.
    """
    plan = folder / "plan.json"
    shards = info.model_copy(update={"held_out": 0.0, "drop_duplicates": False})
    changed = [_last_change(source) for source in sources]
    if not os.path.exists(plan):
        content = {"store": shards.model_dump(mode="json"), "changed": changed}
        write_atomic(plan, json_text(content).encode())
    noted = read_json(plan)
    begun = StoreInfo.build(noted.get("store") or {}, str(plan))
    if begun != shards:
        raise FileError(
            f"{folder}: begun with other text or settings ({_difference(begun, shards)}); "
            "remove that folder to start anew, or use the same settings to continue"
        )
    for source, then, now in zip(sources, noted.get("changed", []), changed, strict=False):
        if then != now:
            raise FileError(
                f"{source.name}: was changed since {folder} was begun; "
                "remove that folder to start anew"
            )


def _last_change(source: Source) -> int | None:
    """When a file was last written, or which version it is; None for what is not a file."""
    return file_version(source.name) if source.size is not None else None

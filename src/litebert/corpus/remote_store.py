"""A store behind a URL: its index is copied at once, its shards when they are wanted, or ahead."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from pathlib import Path

from litebert.base.errors import FileError
from litebert.base.files import LARGEST_JSON, MANIFEST, read_manifest, write_atomic
from litebert.base.remote.cache import ObjectCache, cache_folder, cache_size
from litebert.base.remote.objects import read_object
from litebert.base.remote.urls import join
from litebert.corpus.shard import Shard, open_shard

SHARDS = "shards/"
_log = logging.getLogger("litebert")


class RemoteStore:
    """Copies of a store's files, in a folder that is laid out as the store is."""

    def __init__(self, url: str, cache: ObjectCache) -> None:
        self.url, self._cache = url, cache
        self.folder = cache.folder

    def fetch(self, name: str) -> Path:
        """The copy of a file, compared with its checksum when it came."""
        return self._cache.fetch(name)

    def open(self, name: str) -> Shard:
        """A shard by its copy; another process may remove one between fetching and opening."""
        while True:
            path = self.fetch(name)
            try:
                return open_shard(path)
            except FileError:
                if path.exists():
                    raise

    def fetch_ahead(self, names: Iterable[str]) -> None:
        """Files that are wanted next."""
        self._cache.fetch_ahead(names)

    def fetch_all(self) -> None:
        """Every file, which compares all with their checksums."""
        for name in self._cache.manifest:
            self.fetch(name)


def open_remote(url: str) -> RemoteStore:
    """The store of a URL, all of it but the shards copied here."""
    content = read_object(join(url, MANIFEST), LARGEST_JSON)
    if content is None:
        raise FileError(
            f"{url}: no store, or its upload was not finished; make one with `litebert prepare`"
        )
    name = hashlib.sha256(url.encode() + content).hexdigest()[:20]
    folder = cache_folder() / "stores" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / MANIFEST, content)
    except OSError as error:
        raise FileError(f"{folder}: cannot be written ({error.strerror or error})") from None
    manifest = read_manifest(folder)
    cache = ObjectCache(url, name, manifest)
    size = sum(entry["bytes"] for name, entry in manifest.items() if name.startswith(SHARDS))
    room = cache_size(cache.root)
    if size > room:
        _log.warning(
            "%s: %.1f GB of shards, of which %.1f GB are kept on this machine "
            "(LITEBERT_CACHE_SIZE): some are fetched again and again",
            url, size / 1e9, room / 1e9,
        )  # fmt: skip
    for entry in manifest:
        if not entry.startswith(SHARDS):
            cache.fetch(entry)
    return RemoteStore(url, cache)

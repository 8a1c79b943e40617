"""The store: a corpus as memory-mapped shards, with its tokenizer and a manifest written last.

    store.json          format, settings, tokenizer checksum, counts
    shards/             000000-000002.safetensors: work unit 2 of source 0 (see corpus/shard.py)
    tokenizer/          the tokenizer that made the ids
    manifest.json       sizes and SHA-256 of all of these; without it this is no store

Parts prepared on different machines are one store when listed together: shards are put in the order
of the input, so the result is that of one machine. Duplicates and held-out documents stay in the
shards and are left out on reading, because both are decided by the documents' keys alone and hold
across parts.

A store behind a URL is read through copies of its shards on this machine (base/remote/cache.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from litebert.base.errors import FileError, FormatError, SettingsError
from litebert.base.files import MANIFEST, check_manifest, read_json, read_manifest
from litebert.base.ragged import positions_within, row_ids
from litebert.base.randomness import Purpose, random_bits, uniform
from litebert.base.remote.urls import as_url
from litebert.base.settings import Settings
from litebert.corpus.remote_store import RemoteStore, open_remote
from litebert.corpus.shard import Shard, open_shard
from litebert.text.tokenizer import Tokenizer, load_tokenizer

STORE, SHARDS, TOKENIZER = "store.json", "shards", "tokenizer"
STORE_VERSION = 1
SHARD_NAME = re.compile(r"\d{6,12}-\d{6,12}\.safetensors")
MAX_OPEN = 256  # shards mapped at a time
MOST_BLOCKS = 2**16  # of a shard, whose tokens are counted in 32 bits
Split = Literal["train", "held_out", "all"]


class Counts(Settings):
    """What a store, or a shard of it, holds."""

    documents: int = Field(default=0, ge=0)
    sentences: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)
    blocks: int = Field(default=0, ge=0)
    unknown_tokens: int = Field(default=0, ge=0)
    text_bytes: int = Field(default=0, ge=0)
    skipped: dict[str, int] = Field(default_factory=dict)

    def __add__(self, other: Counts) -> Counts:
        skipped = Counter(self.skipped) + Counter(other.skipped)
        sums = {name: getattr(self, name) + getattr(other, name) for name in COUNTED}
        return Counts(**sums, skipped=dict(sorted(skipped.items())))


COUNTED = [name for name in Counts.model_fields if name != "skipped"]


class StoreInfo(Settings):
    """The content of store.json."""

    format: int = STORE_VERSION
    tokenizer: str  # checksum
    vocab_size: int = Field(ge=1, le=2**32)
    settings: dict[str, Any]  # everything that decides the ids; equal in all parts of a corpus
    drop_duplicates: bool = False
    held_out: float = Field(default=0.0, ge=0, lt=1)
    part: tuple[int, int] = (1, 1)
    shards: dict[str, Counts] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not 1 <= self.part[0] <= self.part[1]:
            raise ValueError(f"part {self.part[0]} of {self.part[1]}")
        for name, counts in self.shards.items():
            if SHARD_NAME.fullmatch(name) is None:
                raise ValueError(f"{name!r} is not the name of a shard")
            largest = max(getattr(counts, field) for field in COUNTED)
            if counts.blocks > MOST_BLOCKS or largest >= 2**48:
                raise ValueError(f"{name}: counts that no shard can have")
        return self


class Store:
    """A prepared corpus: one folder, or several parts of one, here or behind URLs."""

    def __init__(self, folders: Sequence[Path | str]) -> None:
        self.folders = [as_url(folder) or Path(folder) for folder in folders]  # as they were given
        self._remote = [open_remote(f) if isinstance(f, str) else None for f in self.folders]
        self.places = [  # where their files are on this machine
            Path(folder) if remote is None else remote.folder
            for folder, remote in zip(self.folders, self._remote, strict=True)
        ]
        infos = [_read_info(*pair) for pair in zip(self.folders, self.places, strict=True)]
        _check_parts(self.folders, infos)
        self.info = infos[0]
        self.paths: list[Path] = []
        self.counts: list[Counts] = []
        self._owners: list[RemoteStore | None] = []
        found = [
            (name, number, counts)
            for number, info in enumerate(infos)
            for name, counts in info.shards.items()
        ]
        for name, number, counts in sorted(found, key=lambda row: _place(row[0])):
            self.paths.append(self.places[number] / SHARDS / name)
            self.counts.append(counts)
            self._owners.append(self._remote[number])
        self._open: dict[int, Shard] = {}

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that made the ids."""
        tokenizer = load_tokenizer(self.places[0] / TOKENIZER)
        same = tokenizer.vocab_size == self.info.vocab_size
        if not same or tokenizer.checksum != self.info.tokenizer:
            raise FileError(
                f"{self.folders[0]}: its {TOKENIZER} is not the one it was prepared with; "
                "copy the store again"
            )
        return tokenizer

    @cached_property
    def total(self) -> Counts:
        """What all shards hold together, duplicates and held-out documents included."""
        return sum(self.counts, Counts())

    @property
    def training_tokens(self) -> int:
        """Tokens to train on, by the fraction that is held out."""
        return round(self.total.tokens * (1 - self.info.held_out))

    @cached_property
    def checksum(self) -> str:
        """A SHA-256 of what the store holds; that of its parts together is the same."""
        sums = {
            name: entry["sha256"]
            for folder in self.places
            for name, entry in read_manifest(folder).items()
            if name.startswith(f"{SHARDS}/")
        }
        info = self.info.model_dump(mode="json", exclude={"part", "shards"})
        return hashlib.sha256(json.dumps([info, sorted(sums.items())]).encode()).hexdigest()

    def shard(self, number: int) -> Shard:
        """A shard by its place in the order of the input, opened when first asked for."""
        if number not in self._open:
            while len(self._open) >= MAX_OPEN:
                self._open.pop(next(iter(self._open)))
            owner, path = self._owners[number], self.paths[number]
            shard = open_shard(path) if owner is None else owner.open(f"{SHARDS}/{path.name}")
            counts = self.counts[number]
            if (len(shard.blocks) - 1, len(shard.ids)) != (counts.blocks, counts.tokens):
                raise FileError(f"{self.paths[number]}: not the shard that {STORE} speaks of")
            self._open[number] = shard
        return self._open[number]

    def fetch_ahead(self, numbers: Sequence[int]) -> None:
        """Say which shards are read next, so that remote ones are on their way."""
        for remote in filter(None, self._remote):
            ours = [n for n in dict.fromkeys(numbers) if self._owners[n] is remote]
            remote.fetch_ahead(f"{SHARDS}/{self.paths[n].name}" for n in ours)

    def block_ids(self, number: int, block: int) -> NDArray[np.unsignedinteger]:
        """The ids of a shard's block, compared with their checksum and with the vocabulary."""
        shard = self.shard(number)
        ids = shard.block_ids(block)
        if int(ids.max(initial=0)) >= self.info.vocab_size:
            raise FileError(f"{shard.name}: holds ids that its tokenizer does not have")
        return ids

    @cached_property
    def blocks(self) -> NDArray[np.int64]:
        """(shard, block within it) of every block, in the order of the input."""
        counts = np.array([counts.blocks for counts in self.counts], dtype=np.int64)
        return np.stack([row_ids(counts), positions_within(counts)], axis=1)

    def in_split(self, number: int, documents: slice, split: Split) -> NDArray[np.bool_]:
        """Which documents of a shard belong to a split; repeated ones to none, if so prepared."""
        keys = self.shard(number).keys[documents]
        kept = np.ones(len(keys), dtype=bool)
        if split != "all":
            held_out = uniform(random_bits(Purpose.HELD_OUT, keys)) < self.info.held_out
            kept = held_out if split == "held_out" else ~held_out
        if self.info.drop_duplicates:
            kept &= self._first[number][documents]
        return kept

    @property
    def duplicates(self) -> int:
        """How many documents are left out because their text came before."""
        if not self.info.drop_duplicates:
            return 0
        return sum(int((~first).sum()) for first in self._first)

    @cached_property
    def _first(self) -> list[NDArray[np.bool_]]:
        """For each shard, which documents are the first with their text."""
        keys = [np.asarray(self.shard(number).keys) for number in range(len(self.paths))]
        first = np.zeros(sum(map(len, keys)), dtype=bool)
        first[np.unique(np.concatenate([*keys, np.zeros(0, np.uint64)]), return_index=True)[1]] = 1
        return np.split(first, np.cumsum([len(part) for part in keys])[:-1])

    def require_all_parts(self) -> None:
        """Refuse to train on some parts of a corpus as if they were all, or on nothing."""
        missing = self.info.part[1] - len(self.folders)
        if missing:
            raise SettingsError(
                f"{self.folders[0]}: part {self.info.part[0]} of {self.info.part[1]}; list all "
                f"parts ({missing} missing)"
            )
        if not len(self.blocks):
            raise SettingsError(f"{self.folders[0]}: holds no text")

    def check(self) -> None:
        """Compare every file with its checksum."""
        for folder, remote in zip(self.places, self._remote, strict=True):
            check_manifest(folder) if remote is None else remote.fetch_all()

    def require_tokenizer(self, tokenizer: Tokenizer, whose: str) -> None:
        """Refuse to go on with ids that another tokenizer made."""
        if tokenizer.checksum != self.info.tokenizer:
            raise SettingsError(
                f"{self.folders[0]}: prepared with another tokenizer (vocab_size "
                f"{self.info.vocab_size}, {whose} has {tokenizer.vocab_size}); "
                "run `litebert prepare` again with this tokenizer"
            )


def _place(shard: str) -> tuple[int, ...]:
    """Source and work unit of a shard, by its name."""
    return tuple(int(number) for number in shard.removesuffix(".safetensors").split("-"))


def _read_info(folder: Path | str, place: Path) -> StoreInfo:
    """What a store says of itself, whose index is at `place`."""
    if not os.path.isdir(place):
        raise FileError(f"{folder}: no such store; make one with `litebert prepare`")
    if not os.path.exists(place / STORE) or not os.path.exists(place / MANIFEST):
        raise FileError(
            f"{folder}: not a whole store; copy it again, or remove it and prepare it anew"
        )
    raw, where = read_json(place / STORE), f"{folder}/{STORE}"
    if raw.get("format") != STORE_VERSION:
        raise FormatError(
            f"{where}: format {raw.get('format')!r}, this version reads {STORE_VERSION}"
        )
    return StoreInfo.build(raw, where)


def _check_parts(folders: Sequence[Path | str], infos: Sequence[StoreInfo]) -> None:
    """Parts of one corpus: made alike, none twice."""
    if not folders:
        raise SettingsError("a store is needed: name the folder that `litebert prepare` wrote")
    alike = ("tokenizer", "vocab_size", "settings", "drop_duplicates", "held_out")
    for folder, info in zip(folders[1:], infos[1:], strict=True):
        for name in alike:
            if getattr(info, name) != getattr(infos[0], name):
                raise SettingsError(
                    f"{folder}: prepared with other settings than {folders[0]} ({name}: "
                    f"{getattr(info, name)} against {getattr(infos[0], name)}); they are not parts "
                    "of one corpus"
                )
    parts = [info.part for info in infos]
    if len({of for _, of in parts}) > 1 or len(set(parts)) < len(parts):
        names = ", ".join(f"{number}/{of}" for number, of in parts)
        raise SettingsError(
            f"{folders[0]}: parts {names} are listed; list each part of one cut once"
        )


def open_store(*folders: Path | str) -> Store:
    """Open a prepared corpus.

    Args:
        folders: The folder or URL that `prepare` wrote, or those of all its parts, in any order.
    """
    return Store(folders)

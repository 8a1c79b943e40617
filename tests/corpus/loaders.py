"""Loaders of small batches, and batches taken apart into samples that can be compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from litebert.base.batches import Batch
from litebert.corpus.loader import Loader, LoaderSettings
from litebert.corpus.store import Store
from litebert.objectives.masking import Masker

WINDOW = 4  # blocks

Sample = tuple[Any, ...]


def make(store: Store, masker: Masker | None = None, epochs: int | None = 2, **options) -> Loader:
    sides = {name: options.pop(name) for name in ("rank", "world_size") if name in options}
    settings = LoaderSettings(**{"max_length": 48, "batch_size": 16} | options)
    return Loader(store, settings, masker, epochs=epochs, window_blocks=WINDOW, **sides)


def split_samples(batch: Batch) -> list[Sample]:
    """Each sequence with all that belongs to it."""
    found = []
    for number, (start, size) in enumerate(zip(batch.starts, batch.lengths, strict=True)):
        here = slice(start, start + size)
        masked = (batch.positions >= start) & (batch.positions < start + size)
        found.append((
            int(batch.keys[number]), int(batch.labels[number]),
            tuple(batch.ids[here].tolist()), tuple(batch.token_types[here].tolist()),
            tuple((batch.positions[masked] - start).tolist()),
            tuple(batch.targets[masked].tolist()),
        ))  # fmt: skip
    return found


def batches_of(loader: Iterable[Batch]) -> list[list[Sample]]:
    return [split_samples(batch) for batch in loader]


def interleave(shares: list[list[list[Sample]]]) -> list[list[Sample]]:
    """The global batches of ranks' shares: rank r of R holds samples r, r + R, …"""
    assert len({len(share) for share in shares}) == 1
    whole = []
    for parts in zip(*shares, strict=True):
        batch: list[Sample] = [()] * sum(map(len, parts))
        for rank, part in enumerate(parts):
            batch[rank :: len(shares)] = part
        whole.append(batch)
    return whole


def digest(batches: list[list[Sample]]) -> str:
    return hashlib.sha256(repr(batches).encode()).hexdigest()


def as_sets(batches: list[list[Sample]]) -> list[list[Sample]]:
    return [sorted(batch) for batch in batches]

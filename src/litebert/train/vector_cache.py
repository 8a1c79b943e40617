"""A teacher's sentence vectors, kept in a file of the run: a text is read once, however often seen.

Rows are 16-bit floats under a hash of the text's ids, appended in the order in which they were
made. A checkpoint remembers how many there were: a resumed run cuts the file back to that many, so
that it finds the same vectors, to the last bit, as one that was not killed. (A text read again
among others would differ in its last bits.)
"""

from __future__ import annotations

import hashlib
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from litebert.base.batches import Batch
from litebert.base.errors import FileError

Vectors = NDArray[np.float16]
KEY_BYTES = 8


class VectorCache:
    """Rows of `width` numbers by 64-bit keys; `path` None keeps them in memory alone."""

    def __init__(self, path: Path | None, width: int, most_bytes: int) -> None:
        self.path, self.width = path, width
        self.record = np.dtype([("key", "<u8"), ("row", "<f2", (width,))])
        self.most = most_bytes // self.record.itemsize
        self._places: dict[int, int] = {}
        self._parts: list[Vectors] = []
        self._rows: Vectors = np.zeros((0, width), np.float16)

    def __len__(self) -> int:
        return len(self._places)

    def missing(self, keys: list[int]) -> list[int]:
        """Places of the keys that have no row yet."""
        return [place for place, key in enumerate(keys) if key not in self._places]

    def add(self, keys: list[int], rows: Vectors) -> None:
        """More rows, as long as there is room; keys that are there already are left out."""
        fresh = {key: place for place, key in enumerate(keys) if key not in self._places}
        chosen = dict(list(fresh.items())[: self.most - len(self)])
        if not chosen:
            return
        kept = rows[list(chosen.values())]
        self._write(list(chosen), kept)
        self._remember(list(chosen), kept)

    def get(self, keys: list[int]) -> tuple[list[int], Vectors]:
        """The keys' places that have rows, and these."""
        known = [place for place, key in enumerate(keys) if key in self._places]
        if self._parts:
            self._rows = np.concatenate([self._rows, *self._parts])
            self._parts = []
        return known, self._rows[[self._places[keys[place]] for place in known]]

    def restore(self, count: int) -> bool:
        """Go back to the first so many rows of the file; False where it does not have them."""
        self._places, self._parts, self._rows = {}, [], self._rows[:0]
        if self.path is None:
            return count == 0
        size = count * self.record.itemsize
        try:
            with self.path.open("ab") as stream:
                whole = stream.tell() >= size
                stream.truncate(size if whole else 0)
            found = np.fromfile(self.path, self.record) if whole and count else None
        except OSError as error:
            raise FileError(f"{self.path}: cannot be written ({error})") from None
        if found is not None:
            self._remember(found["key"].tolist(), found["row"])
        return whole

    def sync(self) -> int:
        """How many rows there are, all of them on disk."""
        if self.path is not None and len(self):
            with self.path.open("ab") as stream:
                os.fsync(stream.fileno())
        return len(self)

    def _remember(self, keys: list[int], rows: Vectors) -> None:
        first = len(self)
        self._places |= {key: first + number for number, key in enumerate(keys)}
        self._parts.append(rows)

    def _write(self, keys: list[int], rows: Vectors) -> None:
        if self.path is None:
            return
        records = np.empty(len(keys), self.record)
        records["key"], records["row"] = keys, rows
        try:
            with self.path.open("ab") as stream:
                stream.write(records.tobytes())
        except OSError as error:
            raise FileError(f"{self.path}: cannot be written ({error})") from None


def text_keys(batch: Batch) -> list[int]:
    """A name for each sequence of a batch by its ids before masking."""
    edges = np.append(batch.starts, len(batch.ids)).tolist()
    data = batch.originals.astype("<i4")
    return [
        int.from_bytes(hashlib.blake2b(data[a:b].tobytes(), digest_size=KEY_BYTES).digest())
        for a, b in pairwise(edges)
    ]

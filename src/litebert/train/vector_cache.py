"""A teacher's sentence vectors, kept in a file of the run: a text is read once, however often seen.

Rows are 16-bit floats under a hash of the text's ids, appended in the order in which they were
made. A checkpoint remembers how many there were, and their checksum: a resumed run cuts the file
back to that many, so that it finds the same vectors, to the last bit, as one that was not killed.
(A text read again among others would differ in its last bits.) A damaged file is noticed.
"""

from __future__ import annotations

import hashlib
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from litebert.base.batches import Batch
from litebert.base.errors import FileError
from litebert.base.files import check_regular
from litebert.base.settings import Settings

Vectors = NDArray[np.float16]
KEY_BYTES = 8


class SavedVectors(Settings):
    """What a checkpoint remembers of them."""

    rows: int = Field(default=0, ge=0, lt=2**48)
    checksum: str = ""


class VectorCache:
    """Rows of `width` numbers by 64-bit keys; `path` None keeps them in memory alone."""

    def __init__(self, path: Path | None, width: int, most_bytes: int) -> None:
        self.path, self.width = path, width
        self.record = np.dtype([("key", "<u8"), ("row", "<f2", (width,))])
        self.most = most_bytes // self.record.itemsize
        self._forget()

    def _forget(self) -> None:
        self._places: dict[int, int] = {}
        self._rows: Vectors = np.zeros((0, self.width), np.float16)  # those, and room for more
        self._digest = hashlib.sha256()

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
        return known, self._rows[[self._places[keys[place]] for place in known]]

    def restore(self, saved: SavedVectors) -> bool:
        """Go back to the first so many rows of the file; False where they are not there, whole."""
        self._forget()
        if self.path is None:
            return saved.rows == 0
        size = saved.rows * self.record.itemsize
        found = self._read(size)
        whole = len(found) == size and (not size or _checksum(found) == saved.checksum)
        try:
            with self.path.open("ab") as stream:
                stream.truncate(size if whole else 0)
        except OSError as error:
            raise FileError(f"{self.path}: cannot be written ({error})") from None
        if whole and size:
            records = np.frombuffer(found, self.record)
            self._digest.update(found)
            self._remember(records["key"].tolist(), records["row"])
        return whole

    def _read(self, size: int) -> bytes:
        assert self.path is not None
        if not os.path.lexists(self.path):
            return b""
        check_regular(self.path)
        with self.path.open("rb") as stream:
            return stream.read(size)

    def save(self) -> SavedVectors:
        """What there is, all of it on disk."""
        if self.path is not None and len(self):
            with self.path.open("ab") as stream:
                os.fsync(stream.fileno())
        return SavedVectors(rows=len(self), checksum=self._digest.hexdigest())

    def _remember(self, keys: list[int], rows: Vectors) -> None:
        first = len(self)
        self._places |= {key: first + number for number, key in enumerate(keys)}
        if len(self) > len(self._rows):
            room = np.empty((max(len(self), 2 * len(self._rows)), self.width), np.float16)
            room[:first] = self._rows[:first]
            self._rows = room
        self._rows[first : len(self)] = rows

    def _write(self, keys: list[int], rows: Vectors) -> None:
        if self.path is None:
            return
        records = np.empty(len(keys), self.record)
        records["key"], records["row"] = keys, rows
        self._digest.update(records.tobytes())
        try:
            with self.path.open("ab") as stream:
                stream.write(records.tobytes())
        except OSError as error:
            raise FileError(f"{self.path}: cannot be written ({error})") from None


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def text_keys(batch: Batch) -> list[int]:
    """A name for each sequence of a batch by its ids before masking."""
    edges = np.append(batch.starts, len(batch.ids)).tolist()
    data = batch.originals.astype("<i4")
    return [
        int.from_bytes(hashlib.blake2b(data[a:b].tobytes(), digest_size=KEY_BYTES).digest())
        for a, b in pairwise(edges)
    ]

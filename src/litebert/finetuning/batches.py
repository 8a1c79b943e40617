"""Batches for training: in a random order, like lengths together.

An epoch is shuffled, cut into stretches, each stretch put into batches by length, and the batches
shuffled again. So the sequences of a batch are of like length, which is what attention over
unpadded sequences likes, and the order is still random. It is a function of seed and epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from litebert.base.batches import Batch, bucket_by_length, take
from litebert.base.errors import FormatError
from litebert.base.ragged import IntArray
from litebert.base.settings import load_record

STRETCH = 50  # batches that are sorted together


@dataclass(frozen=True)
class BatchPosition:
    """As it is saved."""

    epoch: int
    place: int


class Batches:
    """Batch after batch, epoch after epoch; `batch_size` counts sequences (or questions).

    Of several ranks each gets its part of every batch.
    """

    def __init__(
        self, features: Batch, batch_size: int, seed: int, rank: int = 0, world_size: int = 1
    ) -> None:
        self.rank, self.world_size = rank, world_size
        self.features, self.batch_size, self.seed = features, batch_size, seed
        self.lengths = features.group_lengths
        self.epoch = self.place = 0
        self._order = self._shuffle()

    @property
    def per_epoch(self) -> int:
        """Batches of an epoch."""
        return -(-len(self.lengths) // self.batch_size)

    def next(self, progress: float) -> tuple[Batch, int | None]:
        """The next batch, at full depth."""
        if self.place == len(self._order):
            self.epoch, self.place = self.epoch + 1, 0
            self._order = self._shuffle()
        chosen = self._order[self.place][self.rank :: self.world_size]
        self.place += 1
        return take(self.features, self.features.group_members(chosen)), None

    def _shuffle(self) -> list[IntArray]:
        chance = np.random.default_rng([self.seed, self.epoch])
        order = chance.permutation(len(self.lengths))
        width = STRETCH * self.batch_size
        batches = []
        for stretch in (order[i : i + width] for i in range(0, len(order), width)):
            buckets = bucket_by_length(self.lengths[stretch], max_sequences=self.batch_size)
            batches += [stretch[bucket] for bucket in buckets]
        return [batches[i] for i in chance.permutation(len(batches))]

    def state(self) -> dict[str, Any]:
        """The position."""
        return {"epoch": self.epoch, "place": self.place}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        position = load_record(BatchPosition, state, "checkpoint, batches")
        self.epoch, self.place = position.epoch, position.place
        self._order = self._shuffle() if self.epoch >= 0 else []
        if self.epoch < 0 or not 0 <= self.place <= len(self._order):
            raise FormatError(f"checkpoint: {position} is no place among the examples")

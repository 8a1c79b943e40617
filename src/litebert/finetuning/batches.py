"""Batches for training: in a random order, like lengths together.

An epoch is shuffled, cut into stretches, each stretch sorted by length and cut into batches, and
the batches shuffled again. So the sequences of a batch are of like length, which is what attention
over unpadded sequences likes, and the order is still random. It is a function of seed and epoch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from litebert.base.batch import Batch, Numbers
from litebert.tasks.features import take

STRETCH = 50  # batches that are sorted together


class Batches:
    """Batch after batch, epoch after epoch; `batch` counts examples' sequences (or questions)."""

    def __init__(self, features: Batch, batch: int, seed: int) -> None:
        self.features, self.size, self.seed = features, batch, seed
        self.epoch = self.place = 0
        self._order = self._shuffle()

    @property
    def per_epoch(self) -> int:
        """Batches of an epoch."""
        return -(-(len(self.features) // self.features.together) // self.size)

    def next(self, progress: float) -> tuple[Batch, int | None]:
        """The next batch, at full depth."""
        if self.place == len(self._order):
            self.epoch, self.place = self.epoch + 1, 0
            self._order = self._shuffle()
        chosen = self._order[self.place]
        self.place += 1
        step = self.features.together
        return take(self.features, (chosen[:, None] * step + np.arange(step)).ravel()), None

    def _shuffle(self) -> list[Numbers]:
        chance = np.random.default_rng([self.seed, self.epoch])
        lengths = self.features.lengths.reshape(-1, self.features.together).sum(1)
        order = chance.permutation(len(lengths))
        width = STRETCH * self.size
        stretches = [order[i : i + width] for i in range(0, len(order), width)]
        batches = []
        for stretch in stretches:
            ranked = stretch[np.argsort(lengths[stretch], kind="stable")]
            batches += [ranked[i : i + self.size] for i in range(0, len(ranked), self.size)]
        return [batches[i] for i in chance.permutation(len(batches))]

    def state(self) -> dict[str, Any]:
        """The position."""
        return {"epoch": self.epoch, "place": self.place}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        self.epoch, self.place = state["epoch"], state["place"]
        self._order = self._shuffle()

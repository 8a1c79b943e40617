"""The order of samples: an endless stream, epoch after epoch, that can be entered anywhere.

A place in the stream is three numbers: epoch, window, and sample within the window's shuffled
order. To enter there, one window is read and arranged again, which takes milliseconds however
large the corpus is; nothing before it needs to be visited.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from litebert.base.errors import SettingsError
from litebert.corpus.arrange import Arrangement, Samples, arrange
from litebert.corpus.chance import For, permutation
from litebert.corpus.store import Split, Store
from litebert.corpus.window import WINDOW_BLOCKS, Window, read_window, window_count


@dataclass(frozen=True)
class Place:
    """A place in the stream of samples."""

    epoch: int = 0
    window: int = 0
    sample: int = 0


@dataclass(frozen=True)
class Stretch:
    """Samples that follow each other in the stream, and the window whose tokens they are."""

    window: Window
    samples: Samples


@dataclass
class Order:
    """Which samples come when. `copies` > 0 repeats the samples of that many epochs (static)."""

    store: Store
    split: Split
    rules: Arrangement
    length: int
    joint: int
    seed: int
    copies: int = 0
    blocks: int = WINDOW_BLOCKS

    def __post_init__(self) -> None:
        self._last: tuple[tuple[int, int], Window, Samples] | None = None

    def next(self, place: Place, count: int, *, epochs: int | None) -> tuple[list[Stretch], Place]:
        """The next `count` samples and the place after; fewer where the last of `epochs` ends."""
        stretches: list[Stretch] = []
        barren = 0
        while count > 0 and (epochs is None or place.epoch < epochs):
            window, samples = self._arranged(place.epoch, place.window)
            if place.sample and place.sample >= len(samples):
                raise SettingsError(f"{self.store.folders[0]}: has no sample at {place}")
            stop = min(place.sample + count, len(samples))
            if stop > place.sample:
                some = samples.take(np.arange(place.sample, stop))
                stretches.append(Stretch(window, some))
            barren = 0 if len(samples) else barren + 1
            if barren > window_count(self.store, self.blocks):
                raise SettingsError(f"{self.store.folders[0]}: no text in the {self.split} split")
            count -= stop - place.sample
            place = replace(place, sample=stop) if stop < len(samples) else self._after(place)
        return stretches, place

    def _arranged(self, epoch: int, number: int) -> tuple[Window, Samples]:
        """A window and its samples in their order; the last one is kept."""
        if self._last is None or self._last[0] != (epoch, number):
            copy = epoch % self.copies if self.copies else epoch
            window = read_window(self.store, self.split, self.seed, copy, number, self.blocks)
            samples = arrange(window, self.rules, self.length, self.seed, copy, self.joint)
            order = permutation(len(samples), For.SAMPLE_ORDER, self.seed, epoch, number)
            self._last = ((epoch, number), window, samples.take(order))
        return self._last[1:]

    def _after(self, place: Place) -> Place:
        """The beginning of the next window."""
        if place.window + 1 < window_count(self.store, self.blocks):
            return Place(place.epoch, place.window + 1)
        return Place(place.epoch + 1)

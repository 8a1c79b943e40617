"""The stream of samples: endless, epoch after epoch, and it can be entered anywhere.

A position in the stream is three numbers: epoch, window, and sample within the window's shuffled
order. To enter there, one window is read and its samples made again, which takes milliseconds
however large the corpus is; nothing before it needs to be visited.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from litebert.base.errors import SettingsError
from litebert.base.randomness import Purpose, permutation
from litebert.corpus.sampling.input_formats import InputFormat
from litebert.corpus.sampling.samples import Samples, make_samples
from litebert.corpus.sampling.window import WINDOW_BLOCKS, Window, read_window, window_count
from litebert.corpus.store import Split, Store


@dataclass(frozen=True)
class StreamPosition:
    """A position in the stream of samples."""

    epoch: int = 0
    window: int = 0
    sample: int = 0


@dataclass(frozen=True)
class WindowSamples:
    """Samples that follow each other in the stream, and the window whose tokens they are."""

    window: Window
    samples: Samples


@dataclass
class SampleStream:
    """Which samples come when. A `dupe_factor` N repeats the samples of N epochs (static)."""

    store: Store
    split: Split
    input_format: InputFormat
    max_length: int
    separators: int
    seed: int
    dupe_factor: int = 0
    window_blocks: int = WINDOW_BLOCKS

    def __post_init__(self) -> None:
        self._last: tuple[tuple[int, int], WindowSamples] | None = None

    def take(
        self, position: StreamPosition, count: int, *, epochs: int | None
    ) -> tuple[list[WindowSamples], StreamPosition]:
        """The next `count` samples and the position after them; fewer where `epochs` end."""
        taken: list[WindowSamples] = []
        empty = 0
        while count > 0 and (epochs is None or position.epoch < epochs):
            found = self.window_samples(position.epoch, position.window)
            size = len(found.samples)
            if position.sample and position.sample >= size:
                raise SettingsError(f"{self.store.folders[0]}: has no sample at {position}")
            stop = min(position.sample + count, size)
            if stop > position.sample:
                some = found.samples.take(np.arange(position.sample, stop))
                taken.append(WindowSamples(found.window, some))
            empty = 0 if size else empty + 1
            if empty > window_count(self.store, self.window_blocks):
                raise SettingsError(f"{self.store.folders[0]}: no text in the {self.split} split")
            count -= stop - position.sample
            position = replace(position, sample=stop) if stop < size else self._next(position)
        return taken, position

    def window_samples(self, epoch: int, number: int) -> WindowSamples:
        """A window and its samples in their order; the last one is kept."""
        if self._last is None or self._last[0] != (epoch, number):
            copy = epoch % self.dupe_factor if self.dupe_factor else epoch
            window = read_window(
                self.store, self.split, self.seed, copy, number, self.window_blocks
            )
            samples = make_samples(
                window, self.input_format, self.max_length, self.seed, copy, self.separators
            )
            order = permutation(len(samples), Purpose.SAMPLE_ORDER, self.seed, epoch, number)
            self._last = (epoch, number), WindowSamples(window, samples.take(order))
        return self._last[1]

    def _next(self, position: StreamPosition) -> StreamPosition:
        """The beginning of the next window."""
        if position.window + 1 < window_count(self.store, self.window_blocks):
            return StreamPosition(position.epoch, position.window + 1)
        return StreamPosition(position.epoch + 1)

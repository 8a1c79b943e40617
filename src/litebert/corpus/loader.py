"""The loader: a store, an input format and a seed in; batches out, the same ones every time.

    loader = Loader(open_store("corpus"), LoaderSettings(max_length=128, batch_size=64))
    for batch in loader: ...
    state = loader.state()                    # a few numbers, for JSON
    Loader(…).restore(state)                  # milliseconds, wherever it stands

Batches of a fixed number of sequences follow the stream of samples (sampling/stream.py). Batches by
token budget are made of sequences of like length: a pool of samples is sorted by length, cut so
that each batch has at most batch_size x max_length tokens with padding, and the batches are
shuffled. A batch is named by its place, so workers and ranks only decide who computes which part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field

from litebert.base.batches import Batch, bucket_by_length, concatenate
from litebert.base.errors import SettingsError
from litebert.base.ragged import IntArray
from litebert.base.randomness import Purpose, permutation
from litebert.base.settings import Settings
from litebert.corpus.sampling.assemble import assemble
from litebert.corpus.sampling.input_formats import input_format
from litebert.corpus.sampling.samples import Samples
from litebert.corpus.sampling.stream import SampleStream, StreamPosition, WindowSamples
from litebert.corpus.sampling.window import WINDOW_BLOCKS
from litebert.corpus.store import Split, Store

POOL_SAMPLES = 2**13  # or four batches, if those are more
Mask = Callable[[Batch], Batch]


class DataSettings(Settings):
    """What decides the samples and how many of them make a batch."""

    input_format: str = Field(
        default="albert",
        description="how sentences become samples: corpus/sampling",
    )
    max_length: int = Field(default=512, ge=8, description="tokens of a sequence at most")
    batch_size: int = Field(default=32, ge=1, description="sequences a step, over all devices")
    batch_by: Literal["sequences", "tokens"] = Field(
        default="sequences",
        description="whether a batch is batch_size sequences, or sequences of like length of "
        "together batch_size x max_length tokens at most",
    )
    dupe_factor: int = Field(
        default=0,
        ge=0,
        description="0: new samples and masks every epoch; N: those of N epochs again and again",
    )


class LoaderSettings(DataSettings):
    """What decides the batches."""

    split: Split = Field(
        default="train", description="documents to train on, held-out ones, or all"
    )
    seed: int = Field(default=0, ge=0, lt=2**64, description="of samples, masks and order")


class LoaderPosition(Settings):
    """Where a loader stands: where its pool begins in the stream, and a batch within the pool."""

    epoch: int = Field(ge=0, lt=2**63)
    window: int = Field(ge=0, lt=2**63)
    sample: int = Field(ge=0, lt=2**63)
    batch: int = Field(ge=0, lt=2**63)

    @property
    def pool(self) -> StreamPosition:
        return StreamPosition(self.epoch, self.window, self.sample)


START = LoaderPosition(epoch=0, window=0, sample=0, batch=0)


@dataclass
class LoaderStatistics:
    """What went through a loader, for its report."""

    sequences: int = 0
    tokens: int = 0  # with the special ones
    padded_tokens: int = 0  # as a padded batch would have
    truncated_tokens: int = 0
    random_next_tokens: int = 0  # from other documents
    unlabelled: int = 0

    def count(self, samples: Samples, batch: Batch) -> None:
        self.sequences += len(samples)
        self.tokens += len(batch.ids)
        self.truncated_tokens += int(samples.truncated.sum())
        self.random_next_tokens += int(samples.random_next.sum())
        self.unlabelled += int((samples.labels < 0).sum())

    def add(self, other: LoaderStatistics) -> None:
        for name, number in asdict(other).items():
            setattr(self, name, getattr(self, name) + number)

    @property
    def padding_fraction(self) -> float:
        """The fraction of padding if batches are padded to their longest sequence."""
        return 1 - self.tokens / self.padded_tokens if self.padded_tokens else 0.0


@dataclass(frozen=True)
class BatchPool:
    """Some of the stream, and how it is cut into batches: indices into the pool."""

    position: StreamPosition
    parts: list[WindowSamples]
    batches: list[IntArray]
    following: StreamPosition


@dataclass
class Loader:
    """An iterator over batches, endless unless `epochs` is given; each rank gets its part."""

    store: Store
    settings: LoaderSettings
    mask: Mask | None = None
    rank: int = 0
    world_size: int = 1
    epochs: int | None = None
    window_blocks: int = WINDOW_BLOCKS
    position: LoaderPosition = START
    statistics: LoaderStatistics = field(default_factory=LoaderStatistics)

    def __post_init__(self) -> None:
        folder, info = self.store.folders[0], self.store.info
        self.store.require_all_parts()
        if self.settings.split == "held_out" and not info.held_out:
            raise SettingsError(
                f"{folder}: prepared without held-out text; "
                "run `litebert prepare` with --held-out 0.01"
            )
        if not 0 <= self.rank < self.world_size:
            raise SettingsError(
                f"rank {self.rank} of {self.world_size}: expected 0 <= rank < world_size"
            )
        self.tokenizer = self.store.tokenizer
        if self._masking().get("tokenizer", info.tokenizer) != info.tokenizer:
            raise SettingsError(
                f"{folder}: the masking was made for another tokenizer's tokens; "
                "build it from `store.tokenizer`"
            )
        rules = input_format(self.settings.input_format)
        self.separators = self.tokenizer.separators if rules.form == "pair" else 1
        self.stream = SampleStream(
            self.store, self.settings.split, rules, self.settings.max_length, self.separators,
            self.settings.seed, self.settings.dupe_factor, self.window_blocks,
        )  # fmt: skip
        self._pool: BatchPool | None = None

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        """This rank's part of the next batch."""
        pool = self._current()
        batch = self._build(pool, pool.batches[self.position.batch])
        self._advance(pool)
        return batch

    def skip(self) -> None:
        """Pass over a batch without making it."""
        self._advance(self._current())

    def _current(self) -> BatchPool:
        """The pool of the position's batch."""
        if self._pool is None or self._pool.position != self.position.pool:
            self._pool = self._read_pool(self.position.pool)
        if not self._pool.batches:
            raise StopIteration
        if self.position.batch >= len(self._pool.batches):
            raise SettingsError(f"{self.store.folders[0]}: has no batch at {self.position}")
        return self._pool

    def _advance(self, pool: BatchPool) -> None:
        following = self.position.batch + 1
        if following < len(pool.batches):
            self.position = self.position.model_copy(update={"batch": following})
        else:
            self.position = LoaderPosition(**asdict(pool.following), batch=0)

    def _read_pool(self, position: StreamPosition) -> BatchPool:
        size = self.settings.batch_size
        if self.settings.batch_by == "sequences":
            parts, following = self.stream.take(position, size, epochs=self.epochs)
            found = sum(len(part.samples) for part in parts)
            return BatchPool(position, parts, [np.arange(found)] if found else [], following)
        end = position.epoch + 1  # pools end with their epoch, so they do not depend on `epochs`
        if self.epochs is not None and end > self.epochs:
            return BatchPool(position, [], [], position)
        parts, following = self.stream.take(position, max(POOL_SAMPLES, 4 * size), epochs=end)
        lengths = [part.samples.lengths(self.separators) for part in parts]
        batches = bucket_by_length(
            np.concatenate([np.zeros(0, np.int64), *lengths]),
            max_tokens=size * self.settings.max_length,
            padded=True,
        )
        names = (self.settings.seed, *asdict(position).values())
        order = permutation(len(batches), Purpose.BATCH_ORDER, *names)
        return BatchPool(position, parts, [batches[number] for number in order], following)

    def _build(self, pool: BatchPool, chosen: IntArray) -> Batch:
        mine = chosen[self.rank :: self.world_size]
        edge, made = 0, []
        for part in pool.parts:
            here = mine[(mine >= edge) & (mine < edge + len(part.samples))] - edge
            edge += len(part.samples)
            samples = part.samples.take(here)
            made.append(assemble(part.window, samples, self.tokenizer, self.separators))
            self.statistics.count(samples, made[-1])
        batch = concatenate(made)
        self.statistics.padded_tokens += len(batch) * int(batch.lengths.max(initial=0))
        return self.mask(batch) if self.mask else batch

    def state(self) -> dict[str, Any]:
        """The position, and what it is a position in: plain values, for JSON."""
        return {"position": self.position.model_dump(), "fingerprint": self.fingerprint()}

    def restore(self, state: dict[str, Any]) -> Self:
        """Go on where `state` was taken."""
        where = f"{self.store.folders[0]}: saved position"
        state = state if isinstance(state, dict) else {}
        was, here = state.get("fingerprint"), self.fingerprint()
        position = state.get("position")
        if not isinstance(was, dict) or not isinstance(position, dict):
            raise SettingsError(f"{where}: damaged, or not one of a loader's")
        changed = [key for key in {**here, **was} if was.get(key) != here.get(key)]
        if changed:
            raise SettingsError(
                f"{where}: belongs to other data or settings; changed: {', '.join(changed)}"
            )
        self.position = LoaderPosition.build(position, where)
        with suppress(StopIteration):  # at the end of the last epoch
            self._current()
        return self

    def fingerprint(self) -> dict[str, Any]:
        """What a position depends on."""
        return {
            **self.settings.model_dump(),
            "window_blocks": self.window_blocks,
            "store": self.store.checksum,
            "masking": self._masking(),
        }

    def _masking(self) -> dict[str, Any]:
        """What is known of the masking: a function need not say, a masker does."""
        return getattr(self.mask, "fingerprint", dict)()

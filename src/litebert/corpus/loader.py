"""The loader: a store, an arrangement and a seed in; batches out, the same ones every time.

    loader = Loader(open_store("corpus"), LoaderSettings(length=128, batch=64))
    for batch in loader: ...
    state = loader.state()                    # a few numbers, for JSON
    Loader(…).restore(state)                  # milliseconds, wherever it stands

Batches of a fixed number of sequences follow the stream of samples (corpus/order.py). Batches by
token budget are made of sequences of like length: a pool of samples is sorted by length, cut so
that each batch has at most batch x length tokens with padding, and the batches are shuffled. A
batch is named by its place, so workers and ranks only decide who computes which part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field

from litebert.base.batch import Batch
from litebert.base.config import Settings
from litebert.base.errors import SettingsError
from litebert.corpus.arrange import Samples, arrangement
from litebert.corpus.batch import assemble, join
from litebert.corpus.chance import For, permutation
from litebert.corpus.order import Order, Place, Stretch
from litebert.corpus.store import Split, Store
from litebert.corpus.window import WINDOW_BLOCKS, Numbers

START = Place()
POOL_SAMPLES = 2**13  # or four batches, if those are more
Corrupt = Callable[[Batch], Batch]


class LoaderSettings(Settings):
    """What decides the batches."""

    arrangement: str = "albert"
    length: int = Field(default=512, ge=8)
    batch: int = Field(default=32, ge=1)
    by: Literal["sequences", "tokens"] = "sequences"
    split: Split = "train"
    seed: int = Field(default=0, ge=0, lt=2**64)
    copies: int = Field(default=0, ge=0)  # 0: new samples and masks every epoch; N: N static copies


@dataclass(frozen=True)
class Position:
    """Where a loader stands: a pool's place in the stream, and a batch within it."""

    place: Place = START
    batch: int = 0


class SavedPosition(Settings):
    """A position as plain numbers."""

    epoch: int = Field(ge=0, lt=2**63)
    window: int = Field(ge=0, lt=2**63)
    sample: int = Field(ge=0, lt=2**63)
    batch: int = Field(ge=0, lt=2**63)


FIRST = Position()


@dataclass
class Tally:
    """What went through a loader, for its report."""

    sequences: int = 0
    tokens: int = 0  # with the special ones
    padded: int = 0  # as a padded batch would have
    dropped: int = 0  # by truncation
    borrowed: int = 0  # from other documents
    unlabelled: int = 0

    def count(self, samples: Samples) -> None:
        """Add samples that became part of a batch."""
        self.sequences += len(samples)
        self.dropped += int(samples.dropped.sum())
        self.borrowed += int(samples.borrowed.sum())
        self.unlabelled += int((samples.labels < 0).sum())

    def add(self, other: Tally) -> None:
        """Add what went through elsewhere."""
        for name, number in asdict(other).items():
            setattr(self, name, getattr(self, name) + number)

    @property
    def padding(self) -> float:
        """The share of padding if batches are padded to their longest sequence."""
        return 1 - self.tokens / self.padded if self.padded else 0.0


@dataclass(frozen=True)
class Pool:
    """Some stretches of the stream, and how they are cut into batches: indices into the pool."""

    place: Place
    stretches: list[Stretch]
    batches: list[Numbers]
    following: Place


@dataclass
class Loader:
    """An iterator over batches, endless unless `epochs` is given; each rank gets its share."""

    store: Store
    settings: LoaderSettings
    corrupt: Corrupt | None = None
    rank: int = 0
    ranks: int = 1
    epochs: int | None = None
    window_blocks: int = WINDOW_BLOCKS
    position: Position = FIRST
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.store.require_whole()
        if self.settings.split == "held_out" and not self.store.info.held_out:
            raise SettingsError(
                f"{self.store.folders[0]}: prepared without held-out text; "
                "run `litebert prepare` with --held-out 0.01"
            )
        if not 0 <= self.rank < self.ranks:
            raise SettingsError(f"rank {self.rank} of {self.ranks}: expected 0 <= rank < ranks")
        self.tokenizer = self.store.tokenizer
        if (
            self._corruption().get("tokenizer", self.store.info.tokenizer)
            != self.store.info.tokenizer
        ):
            raise SettingsError(
                f"{self.store.folders[0]}: the masking was made for another tokenizer's pieces; "
                "build it from `store.tokenizer`"
            )
        rules = arrangement(self.settings.arrangement)
        self.joint = 2 if rules.form == "pair" and self.tokenizer.kind == "bytes" else 1
        self.order = Order(
            self.store, self.settings.split, rules, self.settings.length, self.joint,
            self.settings.seed, self.settings.copies, self.window_blocks,
        )  # fmt: skip
        self._pool: Pool | None = None

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        """This rank's share of the next batch."""
        pool = self._current()
        batch = self._build(pool, pool.batches[self.position.batch])
        self._advance(pool)
        return batch

    def skip(self) -> None:
        """Pass over a batch without making it."""
        self._advance(self._current())

    def _current(self) -> Pool:
        """The pool of the position's batch."""
        if self._pool is None or self._pool.place != self.position.place:
            self._pool = self._read_pool(self.position.place)
        if not self._pool.batches:
            raise StopIteration
        if self.position.batch >= len(self._pool.batches):
            raise SettingsError(f"{self.store.folders[0]}: has no batch at {self.position}")
        return self._pool

    def _advance(self, pool: Pool) -> None:
        self.position = replace(self.position, batch=self.position.batch + 1)
        if self.position.batch == len(pool.batches):
            self.position = Position(pool.following)

    def _read_pool(self, place: Place) -> Pool:
        size = self.settings.batch
        if self.settings.by == "sequences":
            stretches, following = self.order.next(place, size, epochs=self.epochs)
            found = sum(len(stretch.samples) for stretch in stretches)
            return Pool(place, stretches, [np.arange(found)] if found else [], following)
        end = place.epoch + 1  # pools end with their epoch, so that they do not depend on `epochs`
        if self.epochs is not None and end > self.epochs:
            return Pool(place, [], [], place)
        stretches, following = self.order.next(place, max(POOL_SAMPLES, 4 * size), epochs=end)
        lengths = [stretch.samples.lengths(self.joint) for stretch in stretches]
        batches = by_length(np.concatenate([*lengths, []]), size * self.settings.length)
        names = (self.settings.seed, *asdict(place).values())
        order = permutation(len(batches), For.BATCH_ORDER, *names)
        return Pool(place, stretches, [batches[number] for number in order], following)

    def _build(self, pool: Pool, chosen: Numbers) -> Batch:
        mine = chosen[self.rank :: self.ranks]
        edge, parts = 0, []
        for stretch in pool.stretches:
            here = mine[(mine >= edge) & (mine < edge + len(stretch.samples))] - edge
            edge += len(stretch.samples)
            samples = stretch.samples.take(here)
            self.tally.count(samples)
            parts.append(assemble(stretch.window, samples, self.tokenizer, self.joint))
        batch = join(parts)
        self.tally.padded += len(batch) * int(batch.lengths.max(initial=0))
        self.tally.tokens += len(batch.ids)
        return self.corrupt(batch) if self.corrupt else batch

    def state(self) -> dict[str, Any]:
        """The position, and what it is a position in: plain values, for JSON."""
        position = {**asdict(self.position.place), "batch": self.position.batch}
        return {"position": position, "of": self.fingerprint()}

    def restore(self, state: dict[str, Any]) -> Self:
        """Go on where `state` was taken."""
        where = f"{self.store.folders[0]}: saved position"
        state = state if isinstance(state, dict) else {}
        was, here = state.get("of"), self.fingerprint()
        if not isinstance(was, dict) or not isinstance(state.get("position"), dict):
            raise SettingsError(f"{where}: damaged, or not one of a loader's")
        changed = [key for key in {**here, **was} if was.get(key) != here.get(key)]
        if changed:
            raise SettingsError(
                f"{where}: belongs to other data or settings; changed: {', '.join(changed)}"
            )
        saved = SavedPosition.build(state["position"], where)
        self.position = Position(Place(saved.epoch, saved.window, saved.sample), saved.batch)
        with suppress(StopIteration):  # at the end of the last epoch
            self._current()
        return self

    def fingerprint(self) -> dict[str, Any]:
        """What a position depends on."""
        return {
            **self.settings.model_dump(),
            "window_blocks": self.window_blocks,
            "store": self.store.identity,
            "corruption": self._corruption(),
        }

    def _corruption(self) -> dict[str, Any]:
        """What is known of the corruption: a function need not say, a masker does."""
        fingerprint = getattr(self.corrupt, "fingerprint", dict)
        return fingerprint()


def by_length(lengths: Numbers, budget: int) -> list[Numbers]:
    """Sequences of like length, as many as fit in a budget of tokens with padding."""
    order = np.argsort(lengths, kind="stable")
    batches: list[Numbers] = []
    start = 0
    ranked = lengths[order].tolist()
    for place, length in enumerate(ranked):
        if place > start and length * (place - start + 1) > budget:
            batches.append(order[start:place])
            start = place
    return [*batches, order[start:]] if len(order) else []

"""A batch: sequences of token ids, packed end to end or padded to one length.

Sequences are put together packed, [CLS] A [SEP] B [SEP] one after the other, with no padding at
all. Masking works on that, and so does the encoder; `padded` spreads it over (sequences, length).

Shapes: B sequences, T padded length, N tokens, M masked tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litebert.base.errors import SettingsError

Numbers = NDArray[np.int64]
Bits = NDArray[np.uint64]


def _no_positions() -> Numbers:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Batch:
    """Sequences end to end. `positions` and `targets` are what masking chose and hid."""

    ids: NDArray[np.int32]  # N
    types: NDArray[np.int8]  # N: 0 for [CLS] A [SEP], 1 for B [SEP]; RoBERTa has none, so 0
    inside: NDArray[np.bool_]  # N: a token of the text, not [CLS] or [SEP]
    begins: NDArray[np.bool_]  # N: the first token of a segment
    lengths: Numbers  # B
    labels: NDArray[
        Any
    ]  # B: what to decide; -1 for nothing. 0 is as written, 1 swapped or borrowed
    keys: Bits  # B: the samples' names
    positions: Numbers = field(default_factory=_no_positions)  # M: into ids
    targets: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))  # M
    together: int = 1  # so many sequences in a row are never parted: the options of one question

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def starts(self) -> Numbers:
        """The first token of each sequence."""
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def sequence(self) -> Numbers:
        """The sequence of each token."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @cached_property
    def offset(self) -> Numbers:
        """The place of each token within its sequence."""
        return np.arange(len(self.ids)) - np.repeat(self.starts, self.lengths)

    def part(self, first: int, last: int) -> Batch:
        """Sequences `first` to `last` - 1, with what is masked in them."""
        edges = np.append(self.starts, len(self.ids))
        tokens = slice(edges[first], edges[last])
        begin, end = np.searchsorted(self.positions, (tokens.start, tokens.stop))
        sequences, masked = slice(first, last), slice(begin, end)
        return Batch(
            self.ids[tokens], self.types[tokens], self.inside[tokens], self.begins[tokens],
            self.lengths[sequences], self.labels[sequences], self.keys[sequences],
            self.positions[masked] - tokens.start, self.targets[masked], self.together,
        )  # fmt: skip


def cut(batch: Batch, tokens: int) -> list[Batch]:
    """A batch in parts of at most so many tokens, or of one sequence that has more."""
    parts, first, held, step = [], 0, 0, batch.together
    for group, length in enumerate(batch.lengths.reshape(-1, step).sum(1).tolist()):
        if held and held + length > tokens:
            parts.append(batch.part(first, group * step))
            first, held = group * step, 0
        held += length
    return [*parts, batch.part(first, len(batch))] if len(batch) else []


@dataclass(frozen=True)
class PaddedBatch:
    """A batch spread over (sequences, length); `positions` point into the flattened ids."""

    ids: NDArray[np.int32]  # B, T
    types: NDArray[np.int8]  # B, T
    mask: NDArray[np.bool_]  # B, T: True at real tokens
    labels: NDArray[np.int8]  # B
    positions: Numbers  # M: row * T + column
    targets: NDArray[np.int32]  # M


def padded(batch: Batch, pad: int, length: int | None = None) -> PaddedBatch:
    """Spread a packed batch, to its longest sequence or to a given length."""
    longest = int(batch.lengths.max(initial=0))
    width = length or longest
    if width < longest:
        raise SettingsError(f"length {width}: a sequence of this batch has {longest} tokens")
    where = batch.sequence * width + batch.offset
    shape = (len(batch), width)
    ids = np.full(shape, pad, dtype=np.int32)
    types, mask = np.zeros(shape, dtype=np.int8), np.zeros(shape, dtype=bool)
    ids.flat[where], types.flat[where], mask.flat[where] = batch.ids, batch.types, True
    positions = where[batch.positions]
    return PaddedBatch(ids, types, mask, batch.labels, positions, batch.targets)

"""A batch: samples as token ids, packed end to end or padded to one length.

Samples are assembled packed: [CLS] A [SEP] B [SEP], sequence after sequence, with no padding at
all. Masking works on that; `padded` spreads the result over (sequences, length).

Shapes: B sequences, T padded length, N tokens, M masked tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from litebert.base.errors import SettingsError
from litebert.corpus.arrange import Samples
from litebert.corpus.chance import Bits
from litebert.corpus.window import Numbers, Window
from litebert.text.tokenizer import Tokenizer


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
    labels: NDArray[np.int8]  # B: 0 as written, 1 swapped or borrowed, -1 nothing to decide
    keys: Bits  # B: the samples' names
    positions: Numbers = field(default_factory=_no_positions)  # M: into ids
    targets: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))  # M

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
            self.positions[masked] - tokens.start, self.targets[masked],
        )  # fmt: skip


def cut(batch: Batch, tokens: int) -> list[Batch]:
    """A batch in parts of at most so many tokens, or of one sequence that has more."""
    parts, first, held = [], 0, 0
    for place, length in enumerate(batch.lengths.tolist()):
        if held and held + length > tokens:
            parts.append(batch.part(first, place))
            first, held = place, 0
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


def assemble(window: Window, samples: Samples, tokenizer: Tokenizer, joint: int = 1) -> Batch:
    """Samples with their special tokens; `joint` separators stand between segments of a pair."""
    special = tokenizer.special
    runs = samples.ends - samples.starts
    owner = np.repeat(np.arange(len(samples)), np.diff(samples.fragments))
    final = np.zeros(len(runs), dtype=bool)
    final[samples.fragments[1:] - 1] = True
    first = np.zeros(len(runs), dtype=bool)
    first[samples.fragments[:-1]] = True
    widths = first + runs + np.where(final, 1, joint)  # [CLS], text, separators
    edges = np.concatenate([[0], np.cumsum(widths)])
    begin = edges[:-1] + first
    count = np.cumsum(runs)
    step = np.arange(count[-1] if len(count) else 0)
    inside_at = np.repeat(begin - (count - runs), runs) + step
    ids = np.full(edges[-1], special.sep, dtype=np.int32)
    ids[edges[:-1][first]] = special.cls
    ids[inside_at] = window.ids[np.repeat(samples.starts - (count - runs), runs) + step]
    inside, begins = np.zeros(len(ids), dtype=bool), np.zeros(len(ids), dtype=bool)
    inside[inside_at] = True
    begins[begin] = True
    return Batch(
        ids=ids,
        types=np.repeat(samples.types, widths) * np.int8(tokenizer.kind != "bytes"),
        inside=inside,
        begins=begins,
        lengths=np.bincount(owner, widths, len(samples)).astype(np.int64),
        labels=samples.labels,
        keys=samples.keys,
    )


def join(batches: Sequence[Batch]) -> Batch:
    """Batches end to end, before masking."""
    columns = {
        column.name: np.concatenate([getattr(batch, column.name) for batch in batches])
        for column in fields(Batch)
    }
    return Batch(**columns)

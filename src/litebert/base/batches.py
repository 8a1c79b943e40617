"""Batches: sequences of token ids, packed end to end or padded to one length, and their algebra.

Sequences are put together packed, [CLS] A [SEP] B [SEP] one after the other, with no padding at
all. Masking works on that, and so does the encoder; `pad` spreads it over (sequences, length).

Shapes: B sequences, T padded length, N tokens, M masked tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litebert.base.errors import SettingsError
from litebert.base.ragged import IntArray, offsets, positions_within, ranges, row_ids

OF_TOKENS = ("ids", "token_types", "is_text", "segment_starts")
OF_SEQUENCES = ("lengths", "labels", "keys")


@dataclass(frozen=True)
class Batch:
    """Sequences end to end. `positions` (in order) and `targets` are what masking chose and hid."""

    ids: NDArray[np.int32]  # N
    token_types: NDArray[np.int8]  # N: 0 for [CLS] A [SEP], 1 for B [SEP]; RoBERTa has none, so 0
    is_text: NDArray[np.bool_]  # N: a token of the text, not [CLS] or [SEP]
    segment_starts: NDArray[np.bool_]  # N: the first token of a segment
    lengths: IntArray  # B
    labels: NDArray[Any]  # B: -1 for none. Of pretraining: 0 as written, 1 swapped or random next
    keys: NDArray[np.uint64]  # B: the samples' names
    positions: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))  # M: into ids
    targets: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))  # M
    group_size: int = 1  # so many sequences in a row stay together: the options of one question

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def starts(self) -> IntArray:
        """The first token of each sequence."""
        return offsets(self.lengths)[:-1]

    @cached_property
    def sequence_ids(self) -> IntArray:
        """The sequence of each token."""
        return row_ids(self.lengths)

    @cached_property
    def position_ids(self) -> IntArray:
        """The place of each token within its sequence."""
        return positions_within(self.lengths)

    @cached_property
    def originals(self) -> NDArray[np.int32]:
        """The ids with what masking hid put back."""
        ids = self.ids.copy()
        ids[self.positions] = self.targets
        return ids

    @property
    def group_lengths(self) -> IntArray:
        """Tokens of each group."""
        return self.lengths.reshape(-1, self.group_size).sum(1)

    def group_members(self, groups: IntArray) -> IntArray:
        """The sequences of some groups, in their order."""
        return (groups[:, None] * self.group_size + np.arange(self.group_size)).ravel()

    def slice(self, first: int, last: int) -> Batch:
        """Sequences `first` to `last` - 1, with what is masked in them."""
        return take(self, np.arange(first, last))


def take(batch: Batch, chosen: Sequence[int] | IntArray) -> Batch:
    """The chosen sequences, in the order given, with what is masked in them."""
    chosen = np.asarray(chosen, np.int64)
    lengths = batch.lengths[chosen]
    old, new = batch.starts[chosen], offsets(lengths)[:-1]
    tokens = ranges(old, lengths)
    low = np.searchsorted(batch.positions, old)
    counts = np.searchsorted(batch.positions, old + lengths) - low
    masked = ranges(low, counts)
    columns: dict[str, Any] = {name: getattr(batch, name)[tokens] for name in OF_TOKENS}
    columns |= {name: getattr(batch, name)[chosen] for name in OF_SEQUENCES}
    return Batch(
        **columns,
        positions=batch.positions[masked] + np.repeat(new - old, counts),
        targets=batch.targets[masked],
        group_size=batch.group_size,
    )


def concatenate(batches: Sequence[Batch]) -> Batch:
    """Batches end to end, at least one, all of one group size."""
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(batch, name) for batch in batches])
        for name in (*OF_TOKENS, *OF_SEQUENCES, "targets")
    }
    before = offsets([len(batch.ids) for batch in batches])[:-1]
    moved = [batch.positions + first for batch, first in zip(batches, before, strict=True)]
    return Batch(**columns, positions=np.concatenate(moved), group_size=batches[0].group_size)


def split_by_tokens(batch: Batch, max_tokens: int) -> list[Batch]:
    """A batch in parts of at most so many tokens, or of one group that has more."""
    parts, first, held, step = [], 0, 0, batch.group_size
    for group, length in enumerate(batch.group_lengths.tolist()):
        if held and held + length > max_tokens:
            parts.append(batch.slice(first, group * step))
            first, held = group * step, 0
        held += length
    return [*parts, batch.slice(first, len(batch))] if len(batch) else []


def split_evenly(batch: Batch, parts: int) -> list[Batch]:
    """A batch in at most so many parts of about equally many tokens, none of them empty."""
    ends = np.cumsum(batch.group_lengths)
    wanted = np.arange(1, parts) * len(batch.ids) / parts
    cuts = np.searchsorted(ends - batch.group_lengths / 2, wanted) * batch.group_size
    edges = np.unique([0, *cuts.tolist(), len(batch)]).tolist()
    return [batch.slice(first, last) for first, last in pairwise(edges)]


def bucket_by_length(
    lengths: IntArray,
    *,
    max_tokens: int | None = None,
    max_sequences: int | None = None,
    padded: bool = False,
    descending: bool = False,
) -> list[IntArray]:
    """Indices of sequences of like length, in buckets as large as the limits allow.

    Args:
        lengths: Tokens of each sequence (or group of sequences).
        max_tokens: Tokens of a bucket at most, but for a sequence that alone has more.
        max_sequences: Sequences of a bucket at most.
        padded: Whether the padding to a bucket's longest sequence counts as tokens.
        descending: Longest first, so that memory that will not suffice is known at once.
    """
    order = np.argsort(-lengths if descending else lengths, kind="stable")
    ranked = lengths[order].tolist()
    buckets: list[IntArray] = []
    start = held = 0
    for place, length in enumerate(ranked):
        count = place - start + 1
        tokens = count * max(ranked[start], length) if padded else held + length
        over = max_tokens is not None and tokens > max_tokens
        if place > start and (over or count - 1 == max_sequences):
            buckets.append(order[start:place])
            start, held = place, 0
        held += length
    return [*buckets, order[start:]] if len(order) else []


@dataclass(frozen=True)
class PaddedBatch:
    """A batch spread over (sequences, length); `positions` point into the flattened ids."""

    ids: NDArray[np.int32]  # B, T
    token_types: NDArray[np.int8]  # B, T
    attention_mask: NDArray[np.bool_]  # B, T: True at real tokens
    labels: NDArray[np.int8]  # B
    positions: IntArray  # M: row * T + column
    targets: NDArray[np.int32]  # M


def pad(batch: Batch, pad_id: int, length: int | None = None) -> PaddedBatch:
    """Spread a packed batch, to its longest sequence or to a given length."""
    longest = int(batch.lengths.max(initial=0))
    width = length or longest
    if width < longest:
        raise SettingsError(f"length {width}: a sequence of this batch has {longest} tokens")
    where = batch.sequence_ids * width + batch.position_ids
    shape = (len(batch), width)
    ids = np.full(shape, pad_id, dtype=np.int32)
    types, mask = np.zeros(shape, dtype=np.int8), np.zeros(shape, dtype=bool)
    ids.flat[where], types.flat[where], mask.flat[where] = batch.ids, batch.token_types, True
    positions = where[batch.positions]
    return PaddedBatch(ids, types, mask, batch.labels, positions, batch.targets)

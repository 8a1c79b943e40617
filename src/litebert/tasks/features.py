"""Examples as token sequences, ready for the encoder; every kind builds its features with this.

Features are one long packed batch (base/batch.py): sequence after sequence without padding, each
with the number of its example as its key. Batches for training and prediction are taken out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litebert.base.batch import Batch, Numbers
from litebert.text.tokenizer import Tokenizer

Ids = NDArray[np.integer]
NO_LABEL = -1


@dataclass(frozen=True)
class Features:
    """All sequences of some examples."""

    batch: Batch
    truncated: int = 0  # examples that lost text to fit
    windowed: int = 0  # examples that became several sequences
    extras: dict[str, NDArray[Any]] = field(default_factory=dict)  # a row a token, for decoding

    @property
    def example_of(self) -> Numbers:
        """The number of each sequence's example."""
        return self.batch.keys.astype(np.int64)


class Sequences:
    """Collects sequences and their special tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        special, pair = tokenizer.special, tokenizer.kind != "bytes"
        self._cls = np.array([special.cls], np.int32)
        self._sep = np.array([special.sep], np.int32)
        self._joint = self._sep if pair else np.repeat(self._sep, 2)  # RoBERTa: </s></s>
        self._second_type = np.int8(pair)
        self.extra = 2  # special tokens beside one text
        self.extra_of_pair = 2 + len(self._joint)
        self.rows: list[tuple[NDArray[np.int32], int, int]] = []  # ids, end of the first, end
        self.labels: list[Any] = []
        self.owners: list[int] = []

    def add(self, owner: int, label: Any, first: Ids, second: Ids | None = None) -> None:
        """One more: [CLS] first [SEP], or [CLS] first [SEP] second [SEP]."""
        if second is None:
            ids = np.concatenate([self._cls, first, self._sep], dtype=np.int32)
            edge = len(ids)
        else:
            parts = [self._cls, first, self._joint, second, self._sep]
            ids = np.concatenate(parts, dtype=np.int32)
            edge = 1 + len(first) + len(self._joint)
        self.rows.append((ids, edge, len(first)))
        self.labels.append(label)
        self.owners.append(owner)

    def batch(self, label_type: Any = np.int64, group_size: int = 1) -> Batch:
        """All of them. The text is `inside`; of a pair, only the second segment."""
        lengths = np.array([len(ids) for ids, _, _ in self.rows], np.int64)
        edges = np.array([edge for _, edge, _ in self.rows], np.int64)
        firsts = np.array([size for _, _, size in self.rows], np.int64)
        place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        edge, end = np.repeat(edges, lengths), np.repeat(lengths, lengths)
        second = (place >= edge) & (place < end - 1)
        alone = np.repeat(edges == lengths, lengths)
        single = alone & (place > 0) & (place <= np.repeat(firsts, lengths))
        empty = [np.zeros(0, np.int32)]
        return Batch(
            ids=np.concatenate([*empty, *(ids for ids, _, _ in self.rows)]),
            types=(place >= edge).astype(np.int8) * self._second_type,
            inside=second | single,
            begins=np.zeros(len(place), bool),
            lengths=lengths,
            labels=np.array(self.labels, label_type),
            keys=np.array(self.owners, np.uint64),
            together=group_size,
        )


def take(batch: Batch, chosen: Sequence[int] | Numbers) -> Batch:
    """The chosen sequences, in the order given."""
    chosen = np.asarray(chosen, np.int64)
    lengths = batch.lengths[chosen]
    begins = np.cumsum(lengths) - lengths
    shift = np.repeat(batch.starts[chosen] - begins, lengths)
    tokens = np.arange(lengths.sum()) + shift
    positions, targets = _asked(batch, chosen, begins)
    return Batch(
        batch.ids[tokens], batch.types[tokens], batch.inside[tokens], batch.begins[tokens], lengths,
        batch.labels[chosen], batch.keys[chosen], positions, targets, batch.together,
    )  # fmt: skip


def group_lengths(batch: Batch) -> Numbers:
    """The tokens of each group of sequences that are never parted (the options of a question)."""
    return batch.lengths.reshape(-1, batch.together).sum(1)


def sequences_of(batch: Batch, groups: Numbers) -> Numbers:
    """The numbers of the sequences of some groups."""
    return (groups[:, None] * batch.together + np.arange(batch.together)).ravel()


def _asked(batch: Batch, chosen: Numbers, begins: Numbers) -> tuple[Numbers, NDArray[np.int32]]:
    """The positions and targets of chosen sequences, moved to where their tokens went."""
    edges = np.append(batch.starts, len(batch.ids))
    low = np.searchsorted(batch.positions, edges[chosen])
    counts = np.searchsorted(batch.positions, edges[chosen + 1]) - low
    where = np.arange(counts.sum()) + np.repeat(low - (np.cumsum(counts) - counts), counts)
    moved = batch.positions[where] + np.repeat(begins - batch.starts[chosen], counts)
    return moved, batch.targets[where]


def split_ids(ids: Ids, lengths: Numbers) -> list[Ids]:
    """What `encode_batch` gives, text by text."""
    return np.split(ids, np.cumsum(lengths)[:-1]) if len(lengths) else []


def encode_all(tokenizer: Tokenizer, texts: Iterable[str]) -> list[Ids]:
    """The ids of texts, one array each."""
    return split_ids(*tokenizer.encode_batch(list(texts)))


def join_features(parts: Sequence[Features]) -> Features:
    """Features of consecutive examples; each part counts its examples from 0."""
    batches, first, tokens = [], 0, 0
    for part in parts:
        batch = part.batch
        keys = batch.keys + np.uint64(first)
        batches.append(replace(batch, keys=keys, positions=batch.positions + tokens))
        first += int(batch.keys[-1]) + 1 if len(batch) else 0
        tokens += len(batch.ids)
    names = [name for name in Batch.__dataclass_fields__ if name != "together"]
    columns: dict[str, Any] = {n: np.concatenate([getattr(b, n) for b in batches]) for n in names}
    return Features(
        Batch(**columns, together=batches[0].together),
        sum(part.truncated for part in parts),
        sum(part.windowed for part in parts),
        {n: np.concatenate([part.extras[n] for part in parts]) for n in parts[0].extras},
    )

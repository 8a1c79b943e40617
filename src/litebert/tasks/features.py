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

from litebert.base.batches import Batch, concatenate
from litebert.base.ragged import IntArray
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
    def example_of(self) -> IntArray:
        """The number of each sequence's example."""
        return self.batch.keys.astype(np.int64)


class Sequences:
    """Collects sequences and their special tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        special, pair = tokenizer.special, tokenizer.kind != "bpe"
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
        ids = np.concatenate([np.zeros(0, np.int32), *(ids for ids, _, _ in self.rows)])
        types, is_text = np.zeros(len(ids), np.int8), np.zeros(len(ids), bool)
        start = 0
        for row, edge, first in self.rows:
            end = start + len(row)
            types[start + edge : end] = self._second_type
            inside = (start + edge, end - 1) if edge < len(row) else (start + 1, start + 1 + first)
            is_text[slice(*inside)] = True
            start = end
        return Batch(
            ids=ids,
            token_types=types,
            is_text=is_text,
            segment_starts=np.zeros(len(ids), bool),
            lengths=lengths,
            labels=np.array(self.labels, label_type),
            keys=np.array(self.owners, np.uint64),
            group_size=group_size,
        )


def encode_all(tokenizer: Tokenizer, texts: Iterable[str]) -> list[Ids]:
    """The ids of texts, one array each."""
    ids, lengths = tokenizer.encode_batch(list(texts))
    return np.split(ids, np.cumsum(lengths)[:-1]) if len(lengths) else []


def join_features(parts: Sequence[Features]) -> Features:
    """Features of consecutive examples; each part counts its examples from 0."""
    batches, first = [], 0
    for part in parts:
        batches.append(replace(part.batch, keys=part.batch.keys + np.uint64(first)))
        first += int(part.batch.keys[-1]) + 1 if len(part.batch) else 0
    return Features(
        concatenate(batches),
        sum(part.truncated for part in parts),
        sum(part.windowed for part in parts),
        {n: np.concatenate([part.extras[n] for part in parts]) for n in parts[0].extras},
    )


def entropy(labels: NDArray[np.integer], weights: Sequence[float] = ()) -> float:
    """The mean cross-entropy of one who knows only how often each label occurs (and weighs)."""
    found, counts = np.unique(labels, return_counts=True)
    fractions = counts / max(len(labels), 1)
    if weights:
        fractions = fractions * np.array([weights[label] if label >= 0 else 0.0 for label in found])
        fractions = fractions[fractions > 0]
    return float(-(fractions * np.log(fractions / fractions.sum())).sum())

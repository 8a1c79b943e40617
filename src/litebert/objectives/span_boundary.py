"""The span-boundary objective: a span's tokens from the two tokens outside it (SpanBERT, 3.2).

Adjacent masked tokens are one span. A span that touches the edge of its text has no boundary and is
not asked; of a long one only the first tokens are, as in SpanBERT's code, which also divides by one
more than there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from litebert.base.batches import Batch
from litebert.base.ragged import IntArray
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import ACCURACY, Term

MAX_PAIR_TARGETS = 15  # tokens of a span that are predicted


class Boundaries(NamedTuple):
    """For each token that is asked: the tokens outside its span, its place in it, its index."""

    left: IntArray  # into the batch's ids
    right: IntArray
    place: IntArray  # from 0
    masked: IntArray  # into the batch's positions


def boundaries(batch: Batch) -> Boundaries:
    """The spans of a batch that have text on both sides."""
    positions = batch.positions
    if not len(positions):
        return Boundaries(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
    begins = np.ones(len(positions), dtype=bool)
    begins[1:] = np.diff(positions) > 1
    first = np.flatnonzero(begins)
    span = np.cumsum(begins) - 1
    left = positions[first] - 1
    right = positions[np.append(first[1:], len(positions)) - 1] + 1
    whole = batch.is_text[left] & batch.is_text[np.minimum(right, len(batch.ids) - 1)]
    place = positions - positions[first][span]
    asked = np.flatnonzero(whole[span] & (place < MAX_PAIR_TARGETS))
    return Boundaries(left[span[asked]], right[span[asked]], place[asked], asked)


class SpanBoundary:
    """Cross-entropy of the span's tokens, from its boundaries."""

    name = head = "span_boundary"
    weight, counters, count_offset = 1.0, ACCURACY, 1
    negatives: str | None = None

    def count(self, batch: Batch) -> int:
        return len(boundaries(batch).masked)

    def reads(self, batch: Batch) -> IntArray:
        found = boundaries(batch)
        return np.concatenate([found.left, found.right])

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        left, right, place, masked = (
            torch.from_numpy(column).to(inputs.ids.device) for column in boundaries(inputs.batch)
        )
        targets = inputs.targets[masked]
        loss, correct = model.head(self.head).loss(state, left, right, place, targets)
        return Term(loss, (correct,))

"""Masked LM: predict the masked tokens (BERT, section 3.1; ALBERT, section 3.1)."""

from __future__ import annotations

from litebert.base.batches import Batch
from litebert.base.ragged import IntArray
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import ACCURACY, Term


class MaskedLM:
    """Cross-entropy at the masked positions only."""

    name = head = "masked_lm"
    weight, counters, count_offset = 1.0, ACCURACY, 0
    negatives: str | None = None  # any input format will do

    def count(self, batch: Batch) -> int:
        return len(batch.targets)

    def reads(self, batch: Batch) -> IntArray:
        return batch.positions

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        loss, correct = model.head(self.head).loss(state, inputs.positions, inputs.targets)
        return Term(loss, (correct,))

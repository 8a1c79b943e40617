"""Masked language: guess the hidden tokens (BERT, section 3.1; ALBERT, section 3.1)."""

from __future__ import annotations

from litebert.base.batch import Batch, Numbers
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.objectives.base import Term


class MaskedLanguage:
    """Cross-entropy at the masked positions only."""

    name = "masked_language"
    weight = 1.0
    extra = 0

    def count(self, batch: Batch) -> int:
        """Masked tokens."""
        return len(batch.targets)

    def reads(self, batch: Batch) -> Numbers:
        """The masked tokens."""
        return batch.positions

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """Loss and right guesses."""
        return Term(*model.masked_language_loss(state, inputs.positions, inputs.targets))

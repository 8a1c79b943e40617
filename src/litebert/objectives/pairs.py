"""Sentence pairs: in order or swapped (ALBERT, section 3.1), or next or from elsewhere (BERT).

Both are two classes over the pooled [CLS]; which of them is asked, the arrangement of the samples
decides. Samples without a label (a lone sentence under sentence order) are not asked.
"""

from __future__ import annotations

import torch.nn.functional as F

from litebert.base.batch import Batch, Numbers
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.objectives.base import Term


class SentencePair:
    """Cross-entropy of the two classes; 0 is as written."""

    weight = 1.0
    extra = 0

    def __init__(self, name: str) -> None:
        self.name = name  # sentence_order or next_sentence

    def count(self, batch: Batch) -> int:
        """Pairs with a label."""
        return int((batch.labels >= 0).sum())

    def reads(self, batch: Batch) -> Numbers:
        """[CLS]."""
        return batch.starts

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """Loss and right decisions."""
        asked = inputs.labels >= 0
        labels = inputs.labels[asked]
        logits = model.sentence_pair(state)[asked].float()
        loss = F.cross_entropy(logits, labels, reduction="sum")
        return Term(loss, (logits.argmax(-1) == labels).sum())

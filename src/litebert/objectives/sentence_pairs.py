"""Sentence pairs: in order or swapped (ALBERT, section 3.1), or next or from elsewhere (BERT).

Both are two classes over the pooled [CLS]; the input format decides which pairs the samples hold.
Samples without a label (a lone sentence under sentence order) are not asked.
"""

from __future__ import annotations

from litebert.base.batches import Batch
from litebert.base.ragged import IntArray
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import ACCURACY, Term, cross_entropy_term


class SentenceOrder:
    """ALBERT's sentence-order prediction (SOP): 0 as written, 1 swapped."""

    name, head = "sentence_order", "sentence_pair"
    weight, counters, count_offset = 1.0, ACCURACY, 0
    negatives: str | None = "swap"

    def count(self, batch: Batch) -> int:
        return int((batch.labels >= 0).sum())

    def reads(self, batch: Batch) -> IntArray:
        return batch.starts  # [CLS]

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        return cross_entropy_term(model.head(self.head)(state), inputs.labels)


class NextSentence(SentenceOrder):
    """BERT's next-sentence prediction (NSP): 0 the next segment, 1 one of another document."""

    name = "next_sentence"
    negatives: str | None = "random_next"

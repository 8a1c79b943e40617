"""The contract of an objective: what it asks of a batch, and the summed loss of the answers.

A loss is a sum here. The step divides it by the count of the whole global batch (all accumulated
micro-batches, all ranks), so one big batch, its parts and its ranks give one and the same gradient,
whoever happens to hold few masked tokens or no sentence pair at all. Pretraining objectives
(objectives/) and the losses of tasks (tasks/) keep the same contract, so one loop trains both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch.nn.functional as F
from torch import Tensor

from litebert.base.batches import Batch
from litebert.base.ragged import IntArray
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model

ACCURACY: tuple[str, ...] = ("correct",)  # counters of an objective whose accuracy can be told
DETECTION: tuple[str, ...] = ("correct", "true_positives", "positives")  # where one class is rare


@dataclass(frozen=True)
class Term:
    """One loss of one batch: its sum, and the objective's counters, such as correct answers."""

    loss: Tensor
    counts: tuple[Tensor, ...] = ()


class Objective(Protocol):
    """Something to learn from an encoded batch."""

    name: str
    weight: float
    counters: tuple[str, ...]  # what `Term.counts` counts
    count_offset: int  # added to the count when the loss is averaged

    def count(self, batch: Batch) -> int:
        """How many answers a batch asks for."""
        ...

    def reads(self, batch: Batch) -> IntArray | None:
        """The tokens whose encodings it reads, so that the last layer computes no others."""
        ...

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """The loss of a model's answers."""
        ...


def cross_entropy_term(logits: Tensor, labels: Tensor, weights: Sequence[float] = ()) -> Term:
    """Cross-entropy where there is a label (not negative), and how many are predicted correctly.

    `weights` of the labels, where they do not count alike.
    """
    logits, asked = logits.float(), labels >= 0
    weight = logits.new_tensor(weights) if weights else None
    # Nothing is picked out by its value: a GPU would be waited for to learn how much that is.
    targets = labels.clamp(min=-1)
    loss = F.cross_entropy(logits, targets, weight, ignore_index=-1, reduction="sum")
    return Term(loss, ((asked & (logits.argmax(-1) == labels)).sum(),))

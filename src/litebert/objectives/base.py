"""The contract of an objective: how many things a batch asks, and the summed loss of the answers.

A loss is a sum here. The loop divides it by the count of the whole step (all accumulated parts, all
ranks), so one big batch, its parts and its ranks give one and the same gradient, whoever happens
to hold few masked tokens or no sentence pair at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from litebert.base.batch import Batch, Numbers
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model


@dataclass(frozen=True)
class Term:
    """One loss of one batch: its sum, and the number of right answers.

    `found` of `hidden`: where most answers are the same, how many of the others were right.
    """

    loss: Tensor
    right: Tensor
    found: Tensor | None = None
    hidden: Tensor | None = None


class Objective(Protocol):
    """Something to learn from an encoded batch."""

    name: str
    weight: float
    extra: int  # added to the count when the loss is averaged

    def count(self, batch: Batch) -> int:
        """How many answers a batch asks for."""
        ...

    def reads(self, batch: Batch) -> Numbers | None:
        """The tokens whose encodings it looks at; None for all."""
        ...

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """The loss of a model's answers."""
        ...

"""The contract of an objective: how many things a batch asks, and the summed loss of the answers.

A loss is a sum here. The loop divides it by the count of the whole step (all accumulated parts, all
ranks), so one big batch, its parts and its ranks give one and the same gradient, whoever happens
to hold few masked tokens or no sentence pair at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from litebert.corpus.batch import Batch
from litebert.model.layout import State
from litebert.model.model import Model


@dataclass(frozen=True)
class Inputs:
    """A packed batch as tensors on a device. N tokens, B sequences, M masked tokens."""

    batch: Batch
    ids: Tensor  # N
    types: Tensor | None  # N, or None where all are 0
    positions: Tensor  # M, into ids
    targets: Tensor  # M
    labels: Tensor  # B

    def encode(self, model: Model, depth: int | None = None) -> State:
        """The batch through a model's encoder."""
        lengths = self.batch.lengths.tolist()
        return model(self.ids, segments=self.types, lengths=lengths, depth=depth)


def to_inputs(batch: Batch, device: torch.device) -> Inputs:
    """A batch as tensors."""

    def move(array: object) -> Tensor:
        return torch.as_tensor(array).long().to(device)

    types = move(batch.types) if batch.types.any() else None
    return Inputs(
        batch, move(batch.ids), types, move(batch.positions), move(batch.targets),
        move(batch.labels),
    )  # fmt: skip


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

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """The loss of a model's answers."""
        ...

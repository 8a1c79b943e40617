"""One training step: parts forward and backward, gradients added up over ranks, clipped, applied.

Losses are divided by counts of the whole step before the backward pass, so accumulation and ranks
change nothing but the order of additions. Dropout is seeded by (seed, step, rank, part): there is
no random state to lose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Optimizer

from litebert.base.batch import Batch, cut
from litebert.base.runtime import Precision, autocast
from litebert.corpus.chance import For, draw
from litebert.model.inputs import to_inputs
from litebert.objectives.learner import Learner
from litebert.train.gradients import Gradients
from litebert.train.metrics import FIELDS, term_sums
from litebert.train.optimizer import set_rate
from litebert.train.parallel import Group


@dataclass(frozen=True)
class Outcome:
    """What one step gave, equal on all ranks."""

    counts: list[float]  # answers asked, by objective
    values: list[list[float]]  # sums of their terms
    asides: list[float]  # what the ranks had to say beside, summed
    norm: float  # of the gradients, before clipping
    applied: bool  # False where something was not finite


class Stepper:
    """Takes training steps."""

    def __init__(
        self, learner: Learner, optimizer: Optimizer, group: Group, *, clip: float, at_once: int,
        seed: int, precision: Precision,
    ) -> None:  # fmt: skip
        self.learner, self.optimizer, self.group = learner, optimizer, group
        self.clip, self.at_once, self.seed = clip, at_once, seed
        self.precision: Precision = precision
        self.gradients = Gradients(learner, len(learner.objectives) * len(FIELDS))

    def __call__(
        self, batch: Batch, number: int, rate: float, depth: int | None, asides: Sequence[float]
    ) -> Outcome:
        """Step `number` with this rank's share of a batch."""
        counts = self.learner.counts(batch)
        totals = self.group.total([*counts, *asides])
        counts, asides = totals[: len(counts)], totals[len(counts) :]
        self.gradients.clear()
        for place, part in enumerate(cut(batch, self.at_once)):
            self._seed(number, place)
            self._accumulate(part, counts, depth)
        self.group.add_up(self.gradients.flat)
        values = self.gradients.sums.view(len(counts), len(FIELDS)).tolist()
        norm = self.gradients.norm().item()
        finite = math.isfinite(norm) and all(math.isfinite(row[0]) for row in values)
        if finite:
            self.gradients.clip(norm, self.clip)
            set_rate(self.optimizer, rate)
            self.optimizer.step()
        return Outcome(counts, values, asides, norm, finite)

    def _seed(self, number: int, place: int) -> None:
        bits = int(draw(For.DROPOUT, self.seed, number, self.group.rank, place))
        torch.manual_seed(bits >> 1)

    def _accumulate(self, part: Batch, counts: Sequence[float], depth: int | None) -> None:
        inputs = to_inputs(part, self.group.device)
        with autocast(self.precision, self.group.device):
            terms = self.learner(inputs, depth)
        loss: Tensor = self.gradients.sums.new_zeros(())
        for objective, term, count in zip(self.learner.objectives, terms, counts, strict=True):
            if count:
                loss = loss + term.loss * (objective.weight / (count + objective.extra))
        if loss.requires_grad:
            loss.backward()
        sums = [torch.as_tensor(value) for term in terms for value in term_sums(term)]
        self.gradients.sums += torch.stack(
            [value.detach().to(self.gradients.sums) for value in sums]
        )

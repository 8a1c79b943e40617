"""One training step: micro-batches forward and backward, all-reduce, clipping, the update.

Losses are divided by counts of the whole global batch before the backward pass, so accumulation,
threads and ranks change nothing but the order of additions. Dropout is seeded by (seed, step, rank,
micro-batch, part of it): there is no random state to lose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim import Optimizer

from litebert.base.batches import Batch, split_by_tokens, split_evenly
from litebert.base.randomness import Purpose, random_bits
from litebert.base.runtime import Precision, autocast
from litebert.model.dropout import drawing_from
from litebert.model.inputs import to_inputs
from litebert.objectives.learner import Learner
from litebert.train.averaging import update_averages
from litebert.train.distributed import DistributedGroup
from litebert.train.gradients import Gradients
from litebert.train.metrics import Sums, term_values
from litebert.train.optimizer import set_learning_rate
from litebert.train.threads import threads_for


@dataclass(frozen=True)
class StepResult:
    """What one step gave, equal on all ranks."""

    sums: Sums
    scalars: list[float]  # what the ranks had to say beside, summed
    gradient_norm: float  # before clipping
    applied: bool  # False where something was not finite


class TrainingStep:
    """Takes training steps."""

    def __init__(
        self, learner: Learner, optimizer: Optimizer, group: DistributedGroup, *,
        gradient_clipping: float, micro_batch_tokens: int, seed: int, precision: Precision,
    ) -> None:  # fmt: skip
        self.learner, self.optimizer, self.group = learner, optimizer, group
        self.gradient_clipping, self.micro_batch_tokens = gradient_clipping, micro_batch_tokens
        self.seed = seed
        self.precision: Precision = precision
        self.sums = Sums.of(learner.objectives)
        self.gradients = Gradients(learner, self.sums.width)
        self.threads = threads_for(learner, group.device)

    def __call__(
        self, batch: Batch, number: int, learning_rate: float, depth: int | None = None,
        scalars: Sequence[float] = (),
    ) -> StepResult:  # fmt: skip
        """Step `number` with this rank's part of a batch; `scalars` are summed over ranks."""
        counts = self.learner.counts(batch)
        totals = self.group.all_reduce_numbers([*counts, *scalars])
        counts, scalars = totals[: len(counts)], totals[len(counts) :]
        try:
            self.gradients.clear()
            for place, part in enumerate(split_by_tokens(batch, self.micro_batch_tokens)):
                self._accumulate(part, (number, place), counts, depth)
            self.group.all_reduce(self.gradients.flat)
            sums = Sums(self.sums.counters, counts, self.gradients.sums.tolist())
            norm = self.gradients.norm().item()
            losses_are_finite = all(math.isfinite(values["loss"]) for _, _, values in sums.rows())
            applied = math.isfinite(norm) and losses_are_finite
            if applied:
                self.gradients.clip(norm, self.gradient_clipping)
                set_learning_rate(self.optimizer, learning_rate)
                self.optimizer.step()
                update_averages(self.optimizer)
        finally:
            self.threads.release()
        return StepResult(sums, list(scalars), norm, applied)

    def _accumulate(
        self, part: Batch, name: tuple[int, int], counts: Sequence[float], depth: int | None
    ) -> None:
        """Add the gradients and sums of a micro-batch, which is named by step and place."""
        pieces = split_evenly(part, self.threads.parts(len(part.ids)))
        if len(pieces) > 1:
            work = [
                partial(self._gradients, piece, (*name, place), counts, depth)
                for place, piece in enumerate(pieces)
            ]
            for gradients, sums in self.threads.run(work):
                self.gradients.add(gradients)
                self.gradients.sums += sums
            return
        torch.manual_seed(self._dropout_seed(*name))
        loss, sums = self._loss(part, counts, depth)
        if loss.requires_grad:
            loss.backward()
        self.gradients.sums += sums

    def _gradients(
        self, piece: Batch, name: tuple[int, ...], counts: Sequence[float], depth: int | None
    ) -> tuple[list[Tensor | None], Tensor]:
        """What a thread finds for its part of a micro-batch."""
        with drawing_from(self._dropout_seed(*name)):
            loss, sums = self._loss(piece, counts, depth)
        return self.gradients.of(loss), sums

    def _dropout_seed(self, *name: int) -> int:
        return (
            int(random_bits(Purpose.DROPOUT, self.seed, name[0], self.group.rank, *name[1:])) >> 1
        )

    def _loss(
        self, part: Batch, counts: Sequence[float], depth: int | None
    ) -> tuple[Tensor, Tensor]:
        """The loss of some sequences, as part of the whole batch's, and what is summed of it."""
        inputs = to_inputs(part, self.group.device)
        with autocast(self.precision, self.group.device):
            terms = self.learner(inputs, depth)
        loss: Tensor = self.gradients.sums.new_zeros(())
        for objective, term, count in zip(self.learner.objectives, terms, counts, strict=True):
            if count:
                loss = loss + term.loss * (objective.weight / (count + objective.count_offset))
        values = [value for term in terms for value in term_values(term)]
        return loss, torch.stack([value.detach().to(self.gradients.sums) for value in values])

"""Relations between tokens, as the teacher has them (MiniLMv2, Wang et al. 2021, section 3).

How alike two tokens' queries are, and their keys, and their values: a softmax a token over the
tokens of its sequence, in each of several relation heads. The student's last layer learns the
teacher's by Kullback-Leibler divergence. Relation heads are cut anew out of all units, so widths
and numbers of attention heads may differ; only the number of relation heads is one.

The divergence and its gradient are formed together, one of the three at a time: no more than a few
tensors of T x T numbers exist at once, and none is kept.

Shapes: B sequences, T padded length, A relation heads, D units of one, X = 3H.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from litebert.base.batches import Batch
from litebert.base.errors import SettingsError
from litebert.base.ragged import IntArray
from litebert.base.runtime import without_autocast
from litebert.model.config import EncoderConfig
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import Term
from litebert.objectives.distillation import Distillation, Teacher, TeacherSettings

NARROWEST = 24  # units of the teacher's in a relation head, where nobody says how many heads
KINDS = 3  # queries, keys, values


class Relations(Distillation):
    """Divergence of the three relations' rows, averaged over relation heads; a row a token."""

    name = "relations"
    reads_layers = True

    def __init__(self, student: EncoderConfig, teacher: Teacher, settings: TeacherSettings) -> None:
        super().__init__(student, teacher, settings)
        widths = (student.hidden_size, teacher.config.hidden_size)
        self.heads = settings.relation_heads or most_heads(*widths)
        if any(width % self.heads for width in widths):
            raise SettingsError(
                f"teacher.relation_heads {self.heads}: must divide the widths of student and "
                f"teacher, {widths[0]} and {widths[1]}"
            )

    def count(self, batch: Batch) -> int:
        return len(batch.ids)

    def reads(self, batch: Batch) -> IntArray:
        return batch.starts  # nothing behind the last layer's values is looked at

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        depth = (len(state.blocks) - 1) // model.config.inner_group_num
        attention, _ = model.encoder.parts(depth - 1)[-1]
        before = state.blocks[-2]
        ours, real = before.layout.padded(attention.query_key_value(before.x_NH))
        taught = self.teacher.query_key_value(inputs, self.layer)
        theirs, _ = before.layout.padded(taught)
        kinds = zip(ours.chunk(KINDS, -1), theirs.chunk(KINDS, -1), strict=True)
        losses = [relation_divergence(one, other, real, self.heads) for one, other in kinds]
        return Term(torch.stack(losses).sum())


def most_heads(student: int, teacher: int) -> int:
    """The most relation heads that leave the teacher enough units each."""
    common = math.gcd(student, teacher)
    fitting = [n for n in range(1, common + 1) if common % n == 0 and teacher // n >= NARROWEST]
    return max(fitting, default=1)


def relation_divergence(x_BTH: Tensor, taught_BTH: Tensor, real_BT: Tensor, heads: int) -> Tensor:
    """Summed over tokens: the divergence of their relations from the taught ones, of a mean head.

    The widths H of the two may differ.
    """
    result: Any = _Divergence.apply(x_BTH, taught_BTH, real_BT, heads)
    return result


def _scores(x_BTH: Tensor, heads: int, padding: Tensor) -> tuple[Tensor, Tensor]:
    """Rows by relation head, (B, A, T, D), and their products, with none at padding."""
    wide = torch.promote_types(x_BTH.dtype, torch.float32)
    x_BATD = x_BTH.unflatten(-1, (heads, -1)).transpose(1, 2).to(wide)
    x_BATD = x_BATD * x_BATD.shape[-1] ** -0.25  # so that products are divided by its root
    return x_BATD, (x_BATD @ x_BATD.mT).masked_fill_(padding, -1e30)


class _Divergence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, taught: Tensor, real: Tensor, heads: int) -> Tensor:
        with without_autocast(x.device):
            padding = ~real[:, None, None, :]
            rows = real[:, None, :, None] / heads  # which rows count, and how much
            x_BATD, ours = _scores(x, heads, padding)
            _, theirs = _scores(taught, heads, padding)
            # sum p (log p - log q), where log p is a score less the logarithm of all
            constant = theirs.logsumexp(-1, keepdim=True) - ours.logsumexp(-1, keepdim=True)
            target = theirs.softmax(-1)
            apart = theirs.sub_(ours).mul_(target).sum(-1, keepdim=True)
            loss = ((apart - constant) * rows).sum()
            gradient = ours.softmax(-1).sub_(target).mul_(rows)
            gradient = (gradient + gradient.mT) @ x_BATD * x_BATD.shape[-1] ** -0.25
        ctx.save_for_backward(gradient.transpose(1, 2).flatten(2).to(x.dtype))
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (gradient,) = ctx.saved_tensors
        return gradient * grad, None, None, None

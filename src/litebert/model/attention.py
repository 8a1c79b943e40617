"""softmax(QK'/sqrt(D)) V within each sequence, by the kernel that suits the device.

Sequences lie end to end, in runs of one length that go through in one call. Of each, all tokens ask
or only those that are read afterwards, as many for all of a run: where some have fewer, rows of
zeros ask too, and nobody listens (`Asking.places`). Three kernels, the same numbers up to rounding:
- torch's `scaled_dot_product_attention` never holds the T x T probabilities, but its flash kernel
  on CPU takes no dropout and is slow on short sequences;
- plain batched matrix products hold the probabilities and take dropout anywhere;
- the same products with a backward pass of their own, which copies less.

Shapes: N tokens, R that ask, B sequences of T tokens, A heads, D head size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from litebert.model.dropout import dropout as drop

LONGEST_FOR_PRODUCTS = {torch.bfloat16: 256}  # beyond, products gain little and hold T x T values
LONGEST_OTHERWISE = 128
ASKING_STEP = 8  # rows that ask, where sequences differ in them: few shapes, for few kernels


@dataclass(frozen=True)
class Run:
    """So many sequences of one length in a row, each with so many rows that ask."""

    count: int
    length: int
    asking: int


@dataclass(frozen=True)
class Runs:
    """All sequences, and where the tokens that ask stand among the rows that do, if not all do."""

    runs: tuple[Run, ...]
    places_R: Tensor | None = None

    @property
    def rows(self) -> int:
        """How many rows ask."""
        return sum(run.count * run.asking for run in self.runs)

    @property
    def heard(self) -> int:
        """How many of them are tokens."""
        return self.rows if self.places_R is None else len(self.places_R)

    @staticmethod
    def of(lengths: Sequence[int], read_R: Tensor | None) -> Runs:
        """Neighbours of one length are one run; `read_R` are the tokens that ask, in order."""
        counts = [(length, len(list(run))) for length, run in groupby(lengths)]
        if read_R is None:
            return Runs(tuple(Run(count, length, length) for length, count in counts))
        ends = torch.tensor(list(accumulate(lengths)))
        read_R = read_R[read_R < ends[-1]]  # what fills the batch up is nobody's
        owners_R = torch.searchsorted(ends, read_R, right=True)
        asking_B = torch.bincount(owners_R, minlength=len(lengths))
        parts = asking_B.split([count for _, count in counts])
        runs = tuple(
            Run(count, length, _rows(asking, length))
            for (length, count), asking in zip(counts, parts, strict=True)
        )
        rows_B = torch.tensor([run.asking for run in runs for _ in range(run.count)])
        if torch.equal(rows_B, asking_B):
            return Runs(runs)
        shift_B = (rows_B.cumsum(0) - rows_B) - (asking_B.cumsum(0) - asking_B)
        return Runs(runs, torch.arange(len(read_R)) + shift_B[owners_R])


def _rows(asking: Tensor, length: int) -> int:
    """How many rows ask of each sequence of a run: as many as tokens, or some more."""
    least, most = int(asking.min()), int(asking.max())
    return most if least == most else min(-(-most // ASKING_STEP) * ASKING_STEP, length)


def attend(
    projected: Sequence[Tensor], runs: Runs, keys_BT: Tensor | None, dropout: float
) -> Tensor:
    """Attend within each sequence; returns what the asking tokens see, (R, A*D).

    `projected` are query, key and value in one tensor (N, 3, A, D), or the queries of the asking
    tokens (R, 1, A, D) and keys and values (N, 2, A, D). `keys_BT`, where all runs have one length,
    is True at keys that may be seen. Rows after the last sequence's see nothing: zeros.
    """
    asking, *rest = projected
    tokens, places_R = sum(run.count * run.length for run in runs.runs), runs.places_R
    nobodys = len(asking) - runs.heard  # what fills the batch up
    asking, *rest = (_first(asking, runs.heard), *(_first(x, tokens) for x in rest))
    if places_R is None:
        context_RH = _attend([asking, *rest], runs.runs, keys_BT, dropout)
    else:
        rows = asking.new_zeros(runs.rows, *asking.shape[1:]).index_copy(0, places_R, asking)
        context_RH = _attend([rows, *rest], runs.runs, keys_BT, dropout).index_select(0, places_R)
    return F.pad(context_RH, (0, 0, 0, nobodys)) if nobodys else context_RH


def _first(x: Tensor, count: int) -> Tensor:
    return x[:count] if len(x) > count else x


def _attend(
    projected: Sequence[Tensor], runs: tuple[Run, ...], keys_BT: Tensor | None, dropout: float
) -> Tensor:
    """The same where all rows that ask are there."""
    first = projected[0]
    longest = max(run.length for run in runs)
    products = prefers_products(first.device, first.dtype, longest, dropout)
    if products and not dropout and keys_BT is None:
        context_RAD: Any = _Products.apply(runs, *projected)
        return context_RAD.flatten(1)
    kernel = _by_products if products else _by_sdpa
    outputs, sequences = [], 0
    for run, q, k, v in _by_run(projected, runs):
        here = slice(sequences, sequences + run.count)
        mask = None if keys_BT is None else keys_BT[here, None, None, :]
        q, k, v = (_heads_first(x, run.count) for x in (q, k, v))
        context = kernel(q, k, v, mask, dropout)
        outputs.append(context.transpose(1, 2).flatten(2).flatten(0, 1))
        sequences = here.stop
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


def prefers_products(device: torch.device, dtype: torch.dtype, length: int, dropout: float) -> bool:
    """Whether products win: on CPU with dropout, or on short sequences."""
    short = length <= LONGEST_FOR_PRODUCTS.get(dtype, LONGEST_OTHERWISE)
    return device.type == "cpu" and (dropout > 0 or short)


def _by_sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)


def _by_products(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return drop(scores.softmax(-1), dropout) @ v


class _Products(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, runs: tuple[Run, ...], *projected: Tensor) -> Tensor:
        asking = sum(run.count * run.asking for run in runs)
        context_RAD = projected[0].new_empty(asking, *projected[0].shape[2:])
        outputs = context_RAD.split([run.count * run.asking for run in runs])
        kept = []
        for (run, *tokens), output in zip(_by_run(projected, runs), outputs, strict=True):
            q, k, v = (_heads_first(x, run.count).flatten(0, 1) for x in tokens)
            q = q * q.shape[-1] ** -0.5
            probabilities = torch.bmm(q, k.transpose(1, 2)).softmax(-1)
            _write(torch.bmm(probabilities, v), output, run.count)
            kept += [q, k, v, probabilities]
        ctx.save_for_backward(*kept)
        ctx.runs, ctx.shapes = runs, [x.shape for x in projected]
        return context_RAD

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_RAD: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        grads = [grad_RAD.new_empty(shape) for shape in ctx.shapes]
        upstream = grad_RAD.split([run.count * run.asking for run in ctx.runs])
        kept = iter(ctx.saved_tensors)
        for (run, *slots), grad_run in zip(_by_run(grads, ctx.runs), upstream, strict=True):
            q, k, v, probabilities = (next(kept) for _ in range(4))
            grad = _heads_first(grad_run, run.count).flatten(0, 1)
            grad_scores = torch.ops.aten._softmax_backward_data(
                torch.bmm(grad, v.transpose(1, 2)), probabilities, -1, grad.dtype
            )
            grad_q = torch.bmm(grad_scores, k).mul_(q.shape[-1] ** -0.5)
            grad_k = torch.bmm(grad_scores.transpose(1, 2), q)
            grad_v = torch.bmm(probabilities.transpose(1, 2), grad)
            for value, slot in zip((grad_q, grad_k, grad_v), slots, strict=True):
                _write(value, slot, run.count)
        return None, *grads


def _by_run(
    projected: Sequence[Tensor], runs: Sequence[Run]
) -> Iterator[tuple[Run, Tensor, Tensor, Tensor]]:
    """Each run with its queries, keys and values, (tokens, A, D)."""
    q, k, v = (column for tensor in projected for column in tensor.unbind(1))
    asking = [run.count * run.asking for run in runs]
    tokens = [run.count * run.length for run in runs]
    yield from zip(runs, q.split(asking), k.split(tokens), v.split(tokens), strict=True)


def _heads_first(x: Tensor, count: int) -> Tensor:
    """(count x tokens, A, D) as (count, A, tokens, D)."""
    return x.unflatten(0, (count, len(x) // count)).transpose(1, 2)


def _write(value: Tensor, slot: Tensor, count: int) -> None:
    """(count x A, tokens, D) back into (count x tokens, A, D)."""
    heads = len(value) // count
    slot.unflatten(0, (count, len(slot) // count)).copy_(
        value.unflatten(0, (count, heads)).transpose(1, 2)
    )

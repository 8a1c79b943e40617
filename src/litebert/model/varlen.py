"""Attention within sequences of any lengths by one call, as a GPU wants it.

A call for every run of equal lengths (model/attention.py) is right for CPUs; on a GPU each call
costs a launch, whatever it computes. So all sequences go through together: by torch's `varlen_attn`
where its kernel fits, else padded to the longest with a mask over the padding. Nothing here waits
for the GPU: lengths are known on the host, what is read is counted on the device.

Shapes: N tokens, R that ask, B sequences of at most T tokens, A heads, D head size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

KERNEL_TYPES = (torch.bfloat16, torch.float16)
LARGEST_HEAD = 256  # of the kernel


@dataclass(frozen=True)
class Grid:
    """Where the tokens of sequences that lie end to end are in a rectangle of B x T."""

    starts_B1: Tensor  # of each sequence among the tokens, and the end of the last
    places_N: Tensor  # of each token in the flat rectangle
    real_BT: Tensor
    longest: int
    full: bool  # all sequences are as long as the longest: tokens are the rectangle

    @staticmethod
    def of(lengths: Sequence[int], device: torch.device) -> Grid:
        """The rectangle of sequences of these lengths."""
        lengths_B, longest = torch.tensor(lengths, device=device), max(lengths)
        starts_B1 = F.pad(lengths_B.cumsum(0), (1, 0))
        shift_B = torch.arange(len(lengths), device=device) * longest - starts_B1[:-1]
        tokens = sum(lengths)
        shift_N = shift_B.repeat_interleave(lengths_B, output_size=tokens)
        return Grid(
            starts_B1=starts_B1,
            places_N=torch.arange(tokens, device=device) + shift_N,
            real_BT=torch.arange(longest, device=device) < lengths_B[:, None],
            longest=longest,
            full=tokens == longest * len(lengths),
        )

    def pad(self, x: Tensor, places: Tensor | None = None) -> Tensor:
        """Tokens, or those at some places, as (B, T, ...); zeros elsewhere."""
        shape = self.real_BT.shape
        if self.full and places is None:
            return x.unflatten(0, shape)
        at = self.places_N if places is None else places
        rows = x.new_zeros(self.real_BT.numel(), *x.shape[1:]).index_copy(0, at, x)
        return rows.unflatten(0, shape)


def attend_at_once(
    projected: Sequence[Tensor], grid: Grid, keys_BT: Tensor | None, dropout: float,
    read_R: Tensor | None,
) -> Tensor:  # fmt: skip
    """What `attention.attend` returns, (R, A*D), by one call."""
    kernel = _varlen_kernel()
    if kernel is not None and keys_BT is None and fits_kernel(projected[0], dropout):
        return _by_kernel(kernel, projected, grid, read_R)
    return _padded(projected, grid, keys_BT, dropout, read_R)


def fits_kernel(x: Tensor, dropout: float) -> bool:
    """Whether torch's kernel takes these tokens: on an NVIDIA GPU, in half precision, no dropout.

    Under FakeTensorMode too, where tensors only say that they are on one.
    """
    head = x.shape[-1]
    fits = x.dtype in KERNEL_TYPES and head <= LARGEST_HEAD and head % 8 == 0
    return fits and dropout == 0 and x.device.type == "cuda"


def _varlen_kernel() -> Callable[..., Any] | None:
    """torch's, which older ones do not have."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return varlen_attn


def _by_kernel(
    kernel: Callable[..., Any], projected: Sequence[Tensor], grid: Grid, read_R: Tensor | None
) -> Tensor:
    q, k, v = (column for x in projected for column in x.unbind(1))
    starts = grid.starts_B1
    asking = starts if read_R is None else torch.searchsorted(read_R, starts)
    ends = (asking.int(), starts.int())
    return kernel(q, k, v, *ends, grid.longest, grid.longest).flatten(1)


def _padded(
    projected: Sequence[Tensor], grid: Grid, keys_BT: Tensor | None, dropout: float,
    read_R: Tensor | None,
) -> Tensor:  # fmt: skip
    asking = None if read_R is None else grid.places_N.index_select(0, read_R)
    padded = [grid.pad(projected[0], asking), *(grid.pad(x) for x in projected[1:])]
    q, k, v = (column.transpose(1, 2) for x in padded for column in x.unbind(2))
    keys = keys_BT if grid.full else grid.real_BT
    mask = None if keys is None else keys[:, None, None, :]
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
    rows = context.transpose(1, 2).flatten(2).flatten(0, 1)
    if asking is None and grid.full:
        return rows
    return rows.index_select(0, grid.places_N if asking is None else asking)

"""softmax(QK'/sqrt(D)) V, by the kernel that suits the device.

Two kernels, the same numbers up to rounding:
- torch's `scaled_dot_product_attention` never holds the T x T probabilities, but its flash kernel
  on CPU takes no dropout, and on short sequences in bfloat16 plain products are faster there;
- plain batched matrix products hold the probabilities and take dropout anywhere.

Packed sequences of different lengths go through in one call on a GPU, where every call costs its
launch: by torch's kernel for them (bf16 or fp16, no dropout), else padded to the longest with a
mask. On a CPU a call a length is best, without padding (model/layout.py).

Shapes: B sequences, T tokens, N tokens of all sequences, A heads, D head size.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from litebert.base.ragged import offsets, positions_within, row_ids

LONGEST_FOR_PRODUCTS = 256  # beyond, bfloat16 products gain little and hold T x T values


def attend(
    q_BTAD: Tensor, k_BTAD: Tensor, v_BTAD: Tensor, mask: Tensor | None, dropout: float
) -> Tensor:
    """Attend within each sequence; `mask` is True at keys that may be seen. Returns (B*T, A*D)."""
    q, k, v = (x.transpose(1, 2) for x in (q_BTAD, k_BTAD, v_BTAD))
    products = prefers_products(q.device, q.dtype, q.shape[2], dropout)
    kernel = _by_products if products else _by_sdpa
    return kernel(q, k, v, mask, dropout).transpose(1, 2).flatten(2).flatten(0, 1)


class PackedIndex(NamedTuple):
    """Where packed tokens are: offsets of sequences, and row and column of each when padded."""

    offsets_B1: Tensor  # int32, and the end
    rows_N: Tensor
    columns_N: Tensor
    keys_BT: Tensor  # True at tokens
    longest: int


@lru_cache(maxsize=8)
def packed_index(lengths: tuple[int, ...], device: torch.device) -> PackedIndex:
    """Made once a batch: all its layers ask for the same."""
    counts = np.asarray(lengths)
    keys = np.arange(max(lengths)) < counts[:, None]

    def move(array: object) -> Tensor:
        return torch.as_tensor(array).to(device)

    ends, rows = move(offsets(counts).astype(np.int32)), move(row_ids(counts))
    return PackedIndex(ends, rows, move(positions_within(counts)), move(keys), max(lengths))


def attend_packed(
    q_NAD: Tensor, k_NAD: Tensor, v_NAD: Tensor, lengths: tuple[int, ...], dropout: float
) -> Tensor:
    """Attend within each of many packed sequences, in one call. Returns (N, A*D)."""
    index = packed_index(lengths, q_NAD.device)
    kernel = _varlen_kernel() if _fits_varlen(q_NAD, dropout) else None
    if kernel is not None:
        ends, longest = index.offsets_B1, index.longest
        return kernel(q_NAD, k_NAD, v_NAD, ends, ends, longest, longest).flatten(1)
    place = (index.rows_N, index.columns_N)
    shape = (len(lengths), index.longest, *q_NAD.shape[1:])
    q, k, v = (x.new_zeros(shape).index_put(place, x) for x in (q_NAD, k_NAD, v_NAD))
    found = attend(q, k, v, index.keys_BT[:, None, None, :], dropout)
    return found.unflatten(0, shape[:2])[place]


def _fits_varlen(q_NAD: Tensor, dropout: float) -> bool:
    return not dropout and q_NAD.dtype in (torch.bfloat16, torch.float16) and q_NAD.shape[2] <= 256


def _varlen_kernel() -> Any:
    """torch's attention over packed sequences, where this torch has it."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return varlen_attn


def prefers_products(device: torch.device, dtype: torch.dtype, length: int, dropout: float) -> bool:
    """Whether plain products win: on CPU with dropout, or in bfloat16 on short sequences."""
    short = dtype == torch.bfloat16 and length <= LONGEST_FOR_PRODUCTS
    return device.type == "cpu" and (dropout > 0 or short)


def _by_sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)


def _by_products(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return F.dropout(scores.softmax(-1), dropout) @ v

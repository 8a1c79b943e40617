"""softmax(QK'/sqrt(D)) V, by the kernel that suits the device.

Two kernels, the same numbers up to rounding:
- torch's `scaled_dot_product_attention` never holds the T x T probabilities, but its flash kernel
  on CPU takes no dropout, and on short sequences in bfloat16 plain products are faster there;
- plain batched matrix products hold the probabilities and take dropout anywhere.

Shapes: B sequences, T tokens, A heads, D head size.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

LONGEST_FOR_PRODUCTS = 256  # beyond, bfloat16 products gain little and hold T x T values


def attend(
    q_BTAD: Tensor, k_BTAD: Tensor, v_BTAD: Tensor, mask: Tensor | None, dropout: float
) -> Tensor:
    """Attend within each sequence; `mask` is True at keys that may be seen. Returns (B*T, A*D)."""
    q, k, v = (x.transpose(1, 2) for x in (q_BTAD, k_BTAD, v_BTAD))
    products = prefers_products(q.device, q.dtype, q.shape[2], dropout)
    kernel = _by_products if products else _by_sdpa
    return kernel(q, k, v, mask, dropout).transpose(1, 2).flatten(2).flatten(0, 1)


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

"""Packed sequences in one attention call, as a GPU takes them: the numbers of a call a length.

The kernel for packed sequences is replaced by a plain one, as it runs on GPUs alone.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from litebert.model import attention
from litebert.model.layout import Packed


def loops(q: Any, k: Any, v: Any, ends: Any, _ends: Any, most: int, _most: int) -> torch.Tensor:
    """What the kernel computes, a sequence at a time."""
    found = []
    for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        assert end - start <= most
        scores = torch.einsum("qad,kad->aqk", q[start:end], k[start:end]) * q.shape[-1] ** -0.5
        found.append(torch.einsum("aqk,kad->qad", scores.softmax(-1), v[start:end]))
    return torch.cat(found)


@pytest.mark.parametrize("kernel", ["varlen", "padded"])
def test_packed_sequences_in_one_call_give_the_numbers_of_many(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths, chance = (5, 5, 2, 9, 1), torch.Generator().manual_seed(3)
    shape = (sum(lengths), 2, 4)
    one, other = (
        [x.clone().requires_grad_() for x in torch.randn((3, *shape), generator=chance).double()]
        for chance in (chance.clone_state(), chance.clone_state())
    )
    monkeypatch.setattr(attention, "_fits_varlen", lambda *_: kernel == "varlen")
    monkeypatch.setattr(attention, "_varlen_kernel", lambda: loops)
    packed = attention.attend_packed(*one, lengths, 0.0)
    apart = Packed(lengths).attend(*other, 0.0)
    torch.testing.assert_close(packed, apart, rtol=1e-12, atol=1e-12)
    weight = torch.randn(apart.shape, generator=chance).double()
    for found in (packed, apart):
        (found * weight).sum().backward()
    for mine, theirs in zip(one, other, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-12, atol=1e-12)


def test_the_kernel_is_taken_where_it_fits() -> None:
    low = torch.zeros(3, 2, 64, dtype=torch.bfloat16)
    assert attention._fits_varlen(low, 0.0)
    assert not attention._fits_varlen(low, 0.1)
    assert not attention._fits_varlen(low.float(), 0.0)
    assert attention._varlen_kernel() is not None

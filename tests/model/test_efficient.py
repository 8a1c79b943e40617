"""The efficient functions are the plain mathematics: values and gradients agree."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from litebert.model import efficient
from litebert.model.efficient import activate, norm_feed_forward, vocabulary_loss


def _parts(dtype: torch.dtype) -> tuple[Tensor, nn.LayerNorm, nn.Linear, nn.Linear]:
    norm, inner, outer = nn.LayerNorm(8, 1e-12), nn.Linear(8, 20), nn.Linear(20, 8)
    nn.init.normal_(norm.weight, 1.0, 0.3)
    nn.init.normal_(norm.bias)
    for module in (norm, inner, outer):
        module.to(dtype)
    return torch.randn(11, 8, dtype=dtype, requires_grad=True), norm, inner, outer


def _plain(x: Tensor, norm: nn.LayerNorm, inner: nn.Linear, outer: nn.Linear, act: str) -> Tensor:
    u = norm(x)
    return u + outer(activate(inner(u), act))


@pytest.mark.parametrize("act", ["gelu", "gelu_new", "relu"])
def test_feed_forward_equals_plain_autograd(act: str) -> None:
    x, norm, inner, outer = _parts(torch.float64)
    weights = [x, *norm.parameters(), *inner.parameters(), *outer.parameters()]
    upstream = torch.randn(11, 8, dtype=torch.float64)
    efficient = norm_feed_forward(x, norm, inner, outer, act, 0.0)
    plain = _plain(x, norm, inner, outer, act)
    torch.testing.assert_close(efficient, plain)
    mine = torch.autograd.grad(efficient, weights, upstream)
    theirs = torch.autograd.grad(plain, weights, upstream)
    torch.testing.assert_close(mine, theirs)
    with torch.no_grad():
        torch.testing.assert_close(norm_feed_forward(x, norm, inner, outer, act, 0.0), plain)


def test_feed_forward_dropout_drops_its_share_and_its_gradient() -> None:
    x, norm, inner, outer = _parts(torch.float64)
    big = x.detach().repeat(2000, 1).requires_grad_()
    out = norm_feed_forward(big, norm, inner, outer, "gelu", 0.25)
    u = norm(big).detach()
    update, full = (out - u).detach(), outer(activate(inner(u), "gelu")).detach()
    kept = update != 0
    assert abs(kept.double().mean().item() - 0.75) < 0.005  # 176,000 draws: 5 sigma
    torch.testing.assert_close(update[kept], (full / 0.75)[kept])
    (gradient,) = torch.autograd.grad(out.sum(), outer.bias)
    torch.testing.assert_close(gradient, kept.double().sum(0) / 0.75)


def test_feed_forward_under_autocast_is_close_and_keeps_fp32_gradients() -> None:
    x, norm, inner, outer = _parts(torch.float32)
    plain = _plain(x, norm, inner, outer, "gelu_new")
    with torch.autocast("cpu", torch.bfloat16):
        efficient = norm_feed_forward(x, norm, inner, outer, "gelu_new", 0.0)
    assert efficient.dtype == torch.float32
    torch.testing.assert_close(efficient, plain, rtol=0.03, atol=0.03)
    mine = torch.autograd.grad(efficient.sum(), [inner.weight, norm.weight])
    theirs = torch.autograd.grad(plain.sum(), [inner.weight, norm.weight])
    assert mine[0].dtype == torch.float32
    torch.testing.assert_close(mine, theirs, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("count", [1, 300, 513])  # below, above and past two slices
def test_vocabulary_loss_equals_cross_entropy(count: int) -> None:
    x = torch.randn(count, 6, dtype=torch.float64, requires_grad=True)
    table = torch.randn(50, 6, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(50, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(50, (count,))
    loss, correct = vocabulary_loss(x, table, bias, targets)
    logits = x @ table.t() + bias
    plain = F.cross_entropy(logits, targets, reduction="sum")
    torch.testing.assert_close(loss, plain)
    assert correct.item() == (logits.argmax(-1) == targets).sum().item()
    mine = torch.autograd.grad(loss * 0.3, [x, table, bias])
    theirs = torch.autograd.grad(plain * 0.3, [x, table, bias])
    torch.testing.assert_close(mine, theirs)


def test_vocabulary_loss_without_targets_is_zero() -> None:
    x = torch.randn(0, 6, requires_grad=True)
    loss, correct = vocabulary_loss(x, torch.randn(9, 6), torch.zeros(9), torch.empty(0).long())
    assert loss.item() == 0
    assert correct.item() == 0


def test_gelu_of_bfloat16_rounds_once() -> None:
    """Values and slopes of the tanh form, against float64."""
    x = torch.linspace(-6, 6, 4001).bfloat16().reshape(1, -1)
    exact = x.double().requires_grad_()
    values = F.gelu(exact, approximate="tanh")
    (slopes,) = torch.autograd.grad(values.sum(), exact)
    close = {"rtol": 2**-8, "atol": 1e-6}
    torch.testing.assert_close(efficient._activate(x, "gelu_new").double(), values, **close)
    again, slope = efficient._activate_again(x, "gelu_new")
    torch.testing.assert_close(again.double(), values, **close)
    torch.testing.assert_close(slope.double(), slopes, **close)

"""The same mathematics with less to remember: autograd functions that keep small tensors only.

Training memory is what layers keep for their backward pass. Two places keep far more than they
need, and recomputing cheap element-wise values from what is left costs a few percent of nothing:

- LayerNorm + feed-forward: keeps the sum before the norm and the values before the activation;
  the normed tokens (H wide) and the activated ones (4H wide) are made again.
- The softmax over the vocabulary: works through the masked tokens in slices and forms the
  gradient at once, so the logits (masked tokens x V) never exist as a whole.

Each has a plain form beside it, used without gradients; tests hold the two to each other.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from litebert.base.runtime import without_autocast
from litebert.model.dropout import dropout as drop
from litebert.model.dropout import kept as draw_kept

SLICE = 256  # masked tokens whose logits exist at one time
CACHED_VALUES = 2**16  # a quarter megabyte of fp32: what several operations in a row go over
GELU_LINEAR = 2 * math.sqrt(2 / math.pi)  # of the tanh form: see _gelu_argument
GELU_CUBIC = 0.044715 * GELU_LINEAR


def activate(x: Tensor, name: str) -> Tensor:
    """`gelu` (erf), `gelu_new` (Google's tanh form) or `relu`."""
    if name == "relu":
        return F.relu(x)
    return F.gelu(x, approximate="tanh" if name == "gelu_new" else "none")


def _activate(x: Tensor, name: str) -> Tensor:
    """The same without gradients, faster where torch's kernel is slow."""
    if not _by_sigmoid(x, name):
        return activate(x, name)
    result = torch.empty_like(x)
    for part, activated in zip(_cached_parts(x), _cached_parts(result), strict=True):
        wide = _widened(part)
        torch.mul(_gelu_argument(wide).mul_(wide).sigmoid_(), wide, out=activated)
    return result


def _activate_again(x: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """In a backward pass: the activated values, and the derivative (or x, to find it from)."""
    if not _by_sigmoid(x, name):
        return activate(x, name), x
    result, derivative = torch.empty_like(x), torch.empty_like(x)
    parts = (_cached_parts(each) for each in (x, result, derivative))
    for part, activated, slope in zip(*parts, strict=True):
        wide = _widened(part)
        argument = _gelu_argument(wide)
        sigmoid = (argument * wide).sigmoid_()
        values = wide * sigmoid
        activated.copy_(values)
        # x s(z) has the derivative s + x s (1 - s) z', where z = x (c + k x^2), z' = c + 3 k x^2
        argument.mul_(3).sub_(2 * GELU_LINEAR)
        rest = torch.addcmul(values, values, sigmoid, value=-1)
        slope.copy_(torch.addcmul(sigmoid, rest, argument, out=argument))
    return result, derivative


def _by_sigmoid(x: Tensor, name: str) -> bool:
    """Whether the tanh form is computed here: torch's CPU kernel takes several times as long."""
    return name == "gelu_new" and x.device.type == "cpu"


def _widened(x: Tensor) -> Tensor:
    """In fp32 what is bfloat16, in which every step would round."""
    return x.float() if x.dtype == torch.bfloat16 else x


def _gelu_argument(x: Tensor) -> Tensor:
    """c + k x^2: the tanh form is x sigmoid(x (c + k x^2)), as (1 + tanh(z)) / 2 = sigmoid(2z)."""
    return torch.addcmul(x.new_tensor(GELU_LINEAR), x, x, value=GELU_CUBIC)


def _cached_parts(x: Tensor) -> tuple[Tensor, ...]:
    """Rows that stay in the cache while several operations go over them."""
    return x.split(max(CACHED_VALUES // x.shape[-1], 1))


def _activate_backward(grad: Tensor, slope: Tensor, name: str) -> Tensor:
    """The gradient before the activation, in the memory of the one after it."""
    aten = torch.ops.aten
    if _by_sigmoid(slope, name):
        return grad.mul_(slope)
    if name == "relu":
        return aten.threshold_backward.grad_input(grad, slope, 0, grad_input=grad)
    form = "tanh" if name == "gelu_new" else "none"
    return aten.gelu_backward.grad_input(grad, slope, approximate=form, grad_input=grad)


def _compute_dtype(x: Tensor) -> torch.dtype:
    """What matrix products run in: autocast's choice where it is on."""
    device = x.device.type
    if device == "meta":  # which has none: asking would be an error
        return x.dtype
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


def norm_feed_forward(
    x_NH: Tensor,
    norm: nn.LayerNorm,
    inner: nn.Linear,
    outer: nn.Linear,
    activation: str,
    dropout: float,
) -> Tensor:
    """u + Dropout(outer(activation(inner(u)))), u = norm(x): keeps 5H values a token, not 10H."""
    if not torch.is_grad_enabled():
        u_NH = norm(x_NH)
        return u_NH + drop(outer(_activate(inner(u_NH), activation)), dropout)
    weights = (norm.weight, norm.bias, inner.weight, inner.bias, outer.weight, outer.bias)
    result: Any = _NormFeedForward.apply(x_NH, *weights, norm.eps, activation, dropout)
    return result


class _NormFeedForward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, gain: Tensor, shift: Tensor, w1: Tensor, b1: Tensor, w2: Tensor,
        b2: Tensor, eps: float, activation: str, dropout: float,
    ) -> Tensor:  # fmt: skip
        low = _compute_dtype(x)
        with without_autocast(x.device):
            u, mean, rstd = torch.native_layer_norm(x.to(gain.dtype), gain.shape, gain, shift, eps)
            a = torch.addmm(b1.to(low), u.to(low), w1.to(low).t())
            activated = _activate(a, activation)
            kept = None
            if dropout == 0 and low == u.dtype:
                result = u.add_(b2).addmm_(activated, w2.t())  # in u's memory
            else:
                y = torch.addmm(b2.to(low), activated, w2.to(low).t())
                if dropout:
                    kept = draw_kept(y, dropout).bool()  # a byte a value
                    y = y.mul_(kept).div_(1 - dropout)
                result = u.add_(y)
        ctx.save_for_backward(x, mean, rstd, gain, shift, w1, w2, a, kept)
        ctx.settings = eps, activation, dropout
        return result.to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, mean, rstd, gain, shift, w1, w2, a, kept = ctx.saved_tensors
        eps, activation, dropout = ctx.settings
        low, wide = a.dtype, gain.dtype
        x, grad = x.to(wide), grad.to(wide)
        grad_y = (grad if kept is None else grad * kept / (1 - dropout)).to(low)
        activated, slope = _activate_again(a, activation)
        grad_w2, grad_b2 = grad_y.t() @ activated, grad_y.sum(0)
        grad_activated = torch.mm(grad_y, w2.to(low), out=activated)
        grad_a = _activate_backward(grad_activated, slope, activation)
        u = F.layer_norm(x, gain.shape, gain, shift, eps).to(low)
        grad_w1, grad_b1 = grad_a.t() @ u, grad_a.sum(0)
        grad_u = torch.mm(grad_a, w1.to(low)).to(wide).add_(grad)
        grad_x, grad_gain, grad_shift = torch.ops.aten.native_layer_norm_backward(
            grad_u, x, gain.shape, mean, rstd, gain, shift, [True, True, True]
        )
        weights = (grad_gain, grad_shift, grad_w1, grad_b1, grad_w2, grad_b2)
        return grad_x, *(gradient.to(wide) for gradient in weights), None, None, None


def vocabulary_loss(
    x_ME: Tensor, table_VE: Tensor, bias_V: Tensor, targets_M: Tensor
) -> tuple[Tensor, Tensor]:
    """Summed cross-entropy of softmax(x table' + bias), and how many targets score highest."""
    training = torch.is_grad_enabled()
    result: Any = _VocabularyLoss.apply(x_ME, table_VE, bias_V, targets_M, None, training)
    return result[:2]


def sampled_vocabulary_loss(
    x_ME: Tensor, table_VE: Tensor, bias_V: Tensor, targets_M: Tensor, uniform_M: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The same, with a token sampled from each softmax: where its running sum passes a number."""
    training = torch.is_grad_enabled()
    result: Any = _VocabularyLoss.apply(x_ME, table_VE, bias_V, targets_M, uniform_M, training)
    return result


class _VocabularyLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, table: Tensor, bias: Tensor, targets: Tensor, uniform: Tensor | None,
        training: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        low = _compute_dtype(x)
        loss, correct = bias.new_zeros(()), targets.new_zeros(())
        sampled = targets.clone()
        grad_x, grad_table, grad_bias = (torch.zeros_like(t) for t in (x, table, bias))
        with without_autocast(x.device):
            table_low, bias_low = table.to(low), bias.to(low)
            for start in range(0, len(targets), SLICE):
                part = slice(start, start + SLICE)
                x_low, target = x[part].to(low), targets[part, None]
                logits = torch.addmm(bias_low, x_low, table_low.t()).to(bias.dtype)
                score, highest = logits.gather(1, target), logits.amax(-1, keepdim=True)
                correct += _count_correct(logits, targets[part], score == highest)
                # exp(logits - highest): softmax times the sums, by which small tensors are divided
                exps = logits.sub_(highest).exp_()
                sums = exps.sum(-1, keepdim=True)
                loss += (sums.log() + highest - score).sum()
                if uniform is not None:
                    sampled[part] = _sample(exps, uniform[part, None])
                if training:
                    gradient = exps.scatter_add_(1, target, -sums).to(low)
                    inverse = sums.reciprocal_()
                    grad_x[part] = torch.mm(gradient, table_low).mul_(inverse)
                    _add_product(grad_table, gradient.t(), x_low.mul(inverse).to(low))
                    _add_product(grad_bias[:, None], gradient.t(), inverse.to(low))
        ctx.save_for_backward(grad_x, grad_table, grad_bias)
        ctx.mark_non_differentiable(correct, sampled)
        return loss, correct, sampled

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[override]
        ctx: Any, grad_loss: Tensor, _correct: Tensor, _sampled: Tensor
    ) -> tuple[Tensor | None, ...]:
        return *(grad * grad_loss for grad in ctx.saved_tensors), None, None, None


def _add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    """total += a @ b, without the product in between where the types allow it."""
    if a.dtype == total.dtype:
        total.addmm_(a, b)
    else:
        total += a @ b


def _count_correct(logits_MV: Tensor, targets_M: Tensor, highest_M1: Tensor) -> Tensor:
    """How many targets are predicted: have, of all columns with the highest logit, the first."""
    if logits_MV.device.type != "cpu":
        return (logits_MV.argmax(-1) == targets_M).sum()
    # On a CPU finding places is slower than finding values, so only rows that may count are asked.
    rows = highest_M1.squeeze(-1).nonzero().squeeze(-1)
    return (logits_MV[rows].argmax(-1) == targets_M[rows]).sum()


def _sample(probabilities_MV: Tensor, uniform_M1: Tensor) -> Tensor:
    """One column a row by its probability: the distribution of Gumbel-argmax at T = 1."""
    sums = probabilities_MV.cumsum(-1)
    sampled = torch.searchsorted(sums, uniform_M1 * sums[:, -1:], right=True).squeeze(-1)
    return sampled.clamp_(max=probabilities_MV.shape[-1] - 1)

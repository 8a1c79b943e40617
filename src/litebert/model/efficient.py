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

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

SLICE = 256  # masked tokens whose logits exist at one time


def activate(x: Tensor, name: str) -> Tensor:
    """`gelu` (erf), `gelu_new` (Google's tanh form) or `relu`."""
    if name == "relu":
        return F.relu(x)
    return F.gelu(x, approximate="tanh" if name == "gelu_new" else "none")


def _activate_backward(grad: Tensor, x: Tensor, name: str) -> Tensor:
    """The gradient before the activation, in the memory of the one after it."""
    aten = torch.ops.aten
    if name == "relu":
        return aten.threshold_backward.grad_input(grad, x, 0, grad_input=grad)
    form = "tanh" if name == "gelu_new" else "none"
    return aten.gelu_backward.grad_input(grad, x, approximate=form, grad_input=grad)


def _compute_dtype(x: Tensor) -> torch.dtype:
    """What matrix products run in: autocast's choice where it is on."""
    device = x.device.type
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
        return u_NH + F.dropout(outer(activate(inner(u_NH), activation)), dropout)
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
        with torch.autocast(x.device.type, enabled=False):
            u, mean, rstd = torch.native_layer_norm(x.to(gain.dtype), gain.shape, gain, shift, eps)
            a = torch.addmm(b1.to(low), u.to(low), w1.to(low).t())
            activated = activate(a, activation)
            kept = None
            if dropout == 0 and low == u.dtype:
                result = u.add_(b2).addmm_(activated, w2.t())  # in u's memory
            else:
                y = torch.addmm(b2.to(low), activated, w2.to(low).t())
                if dropout:
                    kept = torch.empty_like(y, dtype=torch.bool).bernoulli_(1 - dropout)
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
        activated = activate(a, activation)
        grad_w2, grad_b2 = grad_y.t() @ activated, grad_y.sum(0)
        grad_activated = torch.mm(grad_y, w2.to(low), out=activated)
        grad_a = _activate_backward(grad_activated, a, activation)
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
        with torch.autocast(x.device.type, enabled=False):
            table_low, bias_low = table.to(low), bias.to(low)
            for start in range(0, len(targets), SLICE):
                part = slice(start, start + SLICE)
                x_low, target = x[part].to(low), targets[part, None]
                logits = torch.addmm(bias_low, x_low, table_low.t()).to(bias.dtype)
                correct += (logits.argmax(-1) == targets[part]).sum()
                scores = logits.log_softmax(-1)
                loss -= scores.gather(1, target).sum()
                if uniform is None and not training:
                    continue
                gradient = scores.exp_()
                if uniform is not None:
                    sampled[part] = _sample(gradient, uniform[part, None])
                if training:
                    gradient.scatter_add_(1, target, torch.full_like(target, -1, dtype=bias.dtype))
                    grad_bias += gradient.sum(0)
                    grad_x[part] = gradient.to(low) @ table_low
                    grad_table += gradient.to(low).t() @ x_low
        ctx.save_for_backward(grad_x, grad_table, grad_bias)
        ctx.mark_non_differentiable(correct, sampled)
        return loss, correct, sampled

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[override]
        ctx: Any, grad_loss: Tensor, _correct: Tensor, _sampled: Tensor
    ) -> tuple[Tensor | None, ...]:
        return *(grad * grad_loss for grad in ctx.saved_tensors), None, None, None


def _sample(probabilities_MV: Tensor, uniform_M1: Tensor) -> Tensor:
    """One column a row by its probability: the distribution of Gumbel-argmax at T = 1."""
    sums = probabilities_MV.cumsum(-1)
    sampled = torch.searchsorted(sums, uniform_M1 * sums[:, -1:], right=True).squeeze(-1)
    return sampled.clamp_(max=probabilities_MV.shape[-1] - 1)

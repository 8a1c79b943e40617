"""LAMB exactly as Google's ALBERT code has it (You et al. 2019, with that code's choices).

    m = b1 m + (1 - b1) g                  no bias correction
    v = b2 v + (1 - b2) g^2
    r = m / (sqrt(v) + eps) + decay w      decay and trust: not for biases and norms
    w = w - rate * |w| / |r| * r           no clamp; a ratio of 1 where either norm is 0

The ratio is one a tensor. Query, key and value are one matrix here and three in Google's code, so a
group may say that its tensors are several in one (`parts`), each with a ratio of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from torch import Tensor

from litebert.train.eager import EagerOptimizer


class Lamb(EagerOptimizer):
    """Layer-wise adaptive moments."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
    ) -> None:
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "adapt": True,
            "parts": 1,
        }  # fmt: skip
        super().__init__(params, defaults)

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Update every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._update(weight, weight.grad, group)
        return loss

    def _update(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[weight]
        if not state:
            state["mean"] = torch.zeros_like(weight, memory_format=torch.preserve_format)
            state["square"] = torch.zeros_like(weight, memory_format=torch.preserve_format)
        first, second = group["betas"]
        mean, square = state["mean"], state["square"]
        mean.mul_(first).add_(gradient, alpha=1 - first)
        square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        change = mean / square.sqrt().add_(group["eps"])
        if group["weight_decay"]:
            change.add_(weight, alpha=group["weight_decay"])
        if group["adapt"]:
            scale_by_trust(change, weight, group["parts"])
        weight.add_(change, alpha=-group["lr"])


def scale_by_trust(change: Tensor, weight: Tensor, parts: int) -> None:
    """Multiply each part of a change by the ratio of the weight's norm to its own."""
    for piece, of in zip(change.chunk(parts), weight.chunk(parts), strict=True):
        size, step = of.norm(), piece.norm()
        ratio = torch.where((size > 0) & (step > 0), size / step, torch.ones_like(size))
        piece.mul_(ratio)

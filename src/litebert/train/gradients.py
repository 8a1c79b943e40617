"""All gradients in one run of memory, with a few sums behind them.

Each parameter's `grad` is a view, so clearing, summing over ranks, taking the norm and clipping are
one operation each. The sums (losses, correct answers) ride along in the all-reduce, so that
all ranks know the same numbers after every step.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

LINE = 16  # floats of a cache line: views begin on one


class Gradients:
    """The gradients of a module's parameters, and `extra` sums."""

    def __init__(self, module: nn.Module, extra: int) -> None:
        parameters = [p for p in module.parameters() if p.requires_grad]
        sizes = [-(-p.numel() // LINE) * LINE for p in parameters]
        first = parameters[0]
        self.flat = torch.zeros(sum(sizes) + extra, dtype=first.dtype, device=first.device)
        self.values, self.sums = self.flat[: sum(sizes)], self.flat[sum(sizes) :]
        self.parameters, self.views = parameters, list[Tensor]()
        start = 0
        for parameter, size in zip(parameters, sizes, strict=True):
            view = self.flat[start : start + parameter.numel()].view_as(parameter)
            parameter.grad = view
            self.views.append(view)
            start += size

    def clear(self) -> None:
        """Before a step."""
        self.flat.zero_()

    def of(self, loss: Tensor) -> list[Tensor | None]:
        """The gradients of a loss by themselves; `add` adds them."""
        if not loss.requires_grad:
            return [None for _ in self.parameters]
        return list(torch.autograd.grad(loss, self.parameters, allow_unused=True))

    def add(self, gradients: Sequence[Tensor | None]) -> None:
        """Add what `of` gave."""
        pairs = zip(self.views, gradients, strict=True)
        known = [(view, one) for view, one in pairs if one is not None]
        if known:
            torch._foreach_add_([view for view, _ in known], [one for _, one in known])

    def norm(self) -> Tensor:
        """Of all gradients together."""
        return self.values.norm()

    def clip(self, norm: float, most: float) -> None:
        """Shrink all gradients alike so that their norm is at most `most`; 0 leaves them."""
        if most and norm > most:
            self.values.mul_(most / norm)

"""Averaged weights: an exponential moving average beside the weights, of which models are made.

Noise of the last steps averages out, most where the learning rate is still high, as in a run that
is stopped early. The averages are part of the optimizer's state (beside its moments), so they are
saved and resumed with it, bit for bit. Training goes on with the weights themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.optim import Optimizer

AVERAGE, DECAY = "average", "averaging"  # of a parameter's state, of a group


@torch.no_grad()
def update_averages(optimizer: Optimizer) -> None:
    """After a step, where the optimizer's groups ask for it; the first step begins the average."""
    for group in optimizer.param_groups:
        if not group.get(DECAY):
            continue
        begun = [p for p in group["params"] if AVERAGE in optimizer.state[p]]
        if begun:
            averages = [optimizer.state[p][AVERAGE] for p in begun]
            torch._foreach_lerp_(averages, [p.detach() for p in begun], 1 - group[DECAY])
        for parameter in group["params"]:
            if AVERAGE not in optimizer.state[parameter]:
                optimizer.state[parameter][AVERAGE] = parameter.detach().clone()


@contextmanager
def averaged_weights(optimizer: Optimizer) -> Iterator[None]:
    """The averages in the place of the weights for a while, if there are any."""
    pairs: list[tuple[Tensor, Tensor]] = [
        (parameter, optimizer.state[parameter][AVERAGE])
        for group in optimizer.param_groups
        for parameter in group["params"]
        if AVERAGE in optimizer.state.get(parameter, {})
    ]
    _swap(pairs)
    try:
        yield
    finally:
        _swap(pairs)


def _swap(pairs: list[tuple[Tensor, Tensor]]) -> None:
    for parameter, average in pairs:
        parameter.data, average.data = average.data, parameter.data

"""torch's optimizers without torch's compiler.

At their first call `torch.optim`'s methods load the compiler, to tell it to leave them alone: two
seconds and 50 MB in every process that trains, though nothing here compiles an optimizer. These
classes have the methods underneath.
"""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import torch
from torch.optim import Optimizer


class EagerOptimizer(Optimizer):
    """The base of an optimizer that is never compiled."""

    add_param_group: Any = unwrap(Optimizer.add_param_group)
    load_state_dict: Any = unwrap(Optimizer.load_state_dict)
    state_dict: Any = unwrap(Optimizer.state_dict)
    zero_grad: Any = unwrap(Optimizer.zero_grad)


class AdamW(EagerOptimizer, torch.optim.AdamW):
    """torch's AdamW."""

    step: Any = torch.no_grad()(unwrap(torch.optim.AdamW.step))

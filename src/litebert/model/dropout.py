"""Dropout that threads can draw apart from each other.

torch's dropout draws from the one generator of a device: threads that train at the same time would
take numbers from one another, in an order that no run repeats. Within `drawing_from` a thread draws
from a generator of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

_own = threading.local()


@contextmanager
def drawing_from(seed: int) -> Iterator[None]:
    """Let this thread's dropout be decided by `seed` alone."""
    _own.generator = torch.Generator().manual_seed(seed)
    try:
        yield
    finally:
        _own.generator = None


def dropout(x: Tensor, probability: float) -> Tensor:
    """`x` with some values 0 and the others raised, by torch's generator or the thread's own."""
    if not probability or _generator() is None:
        return F.dropout(x, probability)
    return x * kept(x, probability).div_(1 - probability)


def kept(like: Tensor, probability: float) -> Tensor:
    """1 where a value stays, 0 where it is dropped."""
    return torch.empty_like(like).bernoulli_(1 - probability, generator=_generator())


def _generator() -> torch.Generator | None:
    return getattr(_own, "generator", None)

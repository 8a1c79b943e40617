"""How far tokens move from a layer's input to its output (ALBERT's Figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor


def movements(states_NH: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """L2 distances and cosines, (L, N): of each layer's input and output, token by token."""
    moved = list(pairwise(states_NH))
    distance = [(after - before).norm(dim=-1) for before, after in moved]
    cosine = [F.cosine_similarity(before, after, dim=-1) for before, after in moved]
    return torch.stack(distance), torch.stack(cosine)

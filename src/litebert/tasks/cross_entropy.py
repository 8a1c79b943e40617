"""The loss of labels, which most kinds train on, and what it is by chance."""

from __future__ import annotations

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from litebert.tasks.task import Term


def cross_entropy(logits: Tensor, labels: Tensor) -> Term:
    """The summed cross-entropy of those that have a label, and how many of them are correct."""
    known = labels >= 0
    logits, labels = logits[known].float(), labels[known]
    loss = F.cross_entropy(logits, labels, reduction="sum")
    return Term(loss, (logits.argmax(-1) == labels).sum())


def entropy(labels: NDArray[np.integer]) -> float:
    """The mean cross-entropy of one who knows only how often each label occurs."""
    fractions = np.unique(labels, return_counts=True)[1] / max(len(labels), 1)
    return float(-(fractions * np.log(fractions)).sum())

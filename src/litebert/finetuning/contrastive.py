"""Contrastive pairs of labelled texts: few labels are many pairs (SetFit, Tunstall et al. 2022).

The encoder learns that texts of one label lie near each other (the cosine of their means is 1) and
texts of two labels apart (0); the head is fitted afterwards, on the frozen encoder. SetFit encodes
both texts of every pair. Here a step encodes some texts of some labels once and compares all pairs
of them: 32 texts are 496 pairs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch.nn.functional as F

from litebert.base.batches import Batch, take
from litebert.base.ragged import IntArray
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import Term

OF_A_LABEL = 2  # texts of a label in a step, at least


class ContrastivePairs:
    """An objective: near and apart count alike, however many pairs there are of each.

    The texts of a step are one group of the batch, so that micro-batches never part them.
    """

    name, weight, count_offset = "contrastive", 1.0, 0
    counters: tuple[str, ...] = ()

    def count(self, batch: Batch) -> int:
        return len(batch) // batch.group_size

    def reads(self, batch: Batch) -> IntArray | None:
        return None

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """The mean squared error of the cosines, of each group; summed over groups."""
        size = inputs.batch.group_size
        vectors = F.normalize(state.mean().float(), dim=-1).unflatten(0, (-1, size))
        labels = inputs.labels.unflatten(0, (-1, size))
        cosine = vectors @ vectors.mT
        same = labels[:, :, None] == labels[:, None, :]
        upper = cosine.new_ones(size, size).triu(1)
        near, apart = same * upper, ~same * upper
        error = ((1 - cosine).square() * near).sum((1, 2)) / near.sum((1, 2)).clamp(min=1)
        error = error + (cosine.square() * apart).sum((1, 2)) / apart.sum((1, 2)).clamp(min=1)
        return Term(error.sum() / 2)


class ContrastiveBatches:
    """Texts of several labels, at least two of each where there are two; by seed and step."""

    def __init__(self, features: Batch, batch_size: int, seed: int) -> None:
        self.features, self.batch_size, self.seed = features, batch_size, seed
        self.step = 0
        self._of_label = [
            np.flatnonzero(features.labels == label) for label in np.unique(features.labels)
        ]

    @property
    def per_epoch(self) -> int:
        """Steps in which as many texts are drawn as there are."""
        return -(-len(self.features) // self.batch_size)

    def next(self, progress: float) -> tuple[Batch, int | None]:
        """The next batch, at full depth; like lengths side by side."""
        chance = np.random.default_rng([self.seed, self.step])
        self.step += 1
        labels = min(len(self._of_label), max(self.batch_size // OF_A_LABEL, 2))
        each = max(self.batch_size // labels, OF_A_LABEL)
        chosen = np.concatenate(
            [
                chance.permutation(self._of_label[label])[:each]
                for label in chance.permutation(len(self._of_label))[:labels]
            ]
        )
        chosen = chosen[np.argsort(self.features.lengths[chosen], kind="stable")]
        return replace(take(self.features, chosen), group_size=len(chosen)), None

    def state(self) -> dict[str, Any]:
        """The position."""
        return {"step": self.step}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        self.step = state["step"]

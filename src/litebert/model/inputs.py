"""A batch as tensors, on its way into a model."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from litebert.base.batches import Batch
from litebert.base.ragged import IntArray
from litebert.model.layout import State
from litebert.model.model import Model


@dataclass(frozen=True)
class Inputs:
    """A packed batch as tensors on a device. N tokens, B sequences, M masked tokens."""

    batch: Batch
    ids: Tensor  # N
    token_types: Tensor | None  # N, or None where all are 0
    positions: Tensor  # M, into ids
    targets: Tensor  # M
    labels: Tensor  # B: classes, or numbers to tell

    def encode(self, model: Model, depth: int | None = None, read: IntArray | None = None) -> State:
        """The batch through a model's encoder; `read` are the tokens that matter at its end."""
        lengths = self.batch.lengths.tolist()
        rows = None if read is None else torch.from_numpy(read).to(self.ids.device)
        return model(self.ids, segments=self.token_types, lengths=lengths, depth=depth, read=rows)


def to_inputs(batch: Batch, device: torch.device) -> Inputs:
    """A batch as tensors."""

    def move(array: object) -> Tensor:
        tensor = torch.as_tensor(array)
        return tensor.to(device, torch.float32 if tensor.is_floating_point() else torch.long)

    types = move(batch.token_types) if batch.token_types.any() else None
    return Inputs(
        batch, move(batch.ids), types, move(batch.positions), move(batch.targets),
        move(batch.labels),
    )  # fmt: skip

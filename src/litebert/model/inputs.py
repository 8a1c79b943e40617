"""A batch as tensors, on its way into a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
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

    def encode(
        self, model: Model, depth: int | None = None, read: IntArray | None = None,
        collect: list[State] | None = None,
    ) -> State:  # fmt: skip
        """The batch through a model's encoder; `read` are the tokens that matter at its end.

        `collect` receives the state after each block.
        """
        stop = model.config.num_hidden_layers if depth is None else depth
        if collect is None:
            return model.encoder(
                self.ids, segments=self.token_types, lengths=self.batch.lengths.tolist(),
                depth=stop, read=self._rows(read),
            )  # fmt: skip
        return self.layers(model, self.embed(model), 0, stop, read, collect)

    def embed(self, model: Model) -> State:
        """The batch before the first layer."""
        lengths = self.batch.lengths.tolist()
        return model.encoder.embed(self.ids, segments=self.token_types, lengths=lengths)

    def layers(
        self, model: Model, state: State, start: int, stop: int, read: IntArray | None = None,
        collect: list[State] | None = None,
    ) -> State:  # fmt: skip
        """Further through the layers, from depth `start` to `stop`."""
        return model.encoder.layers(state, start, stop, collect, self._rows(read))

    def _rows(self, read: IntArray | None) -> Tensor | None:
        return None if read is None else torch.from_numpy(read).to(self.ids.device)


def to_inputs(batch: Batch, device: torch.device) -> Inputs:
    """A batch as tensors."""

    def move(array: NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(array)
        tensor = tensor.float() if array.dtype.kind == "f" else tensor.long()
        if device.type == "cpu":
            return tensor
        if device.type == "cuda" and torch.cuda.is_available():
            return tensor.pin_memory().to(device, non_blocking=True)  # while the GPU still works
        return tensor.to(device)

    types = move(batch.token_types) if batch.token_types.any() else None
    return Inputs(
        batch, move(batch.ids), types, move(batch.positions), move(batch.targets),
        move(batch.labels),
    )  # fmt: skip

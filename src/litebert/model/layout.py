"""How a batch of sequences lies in memory: padded to one length, or packed end to end.

Layers see only flat tokens `x_NH`; what needs to know where sequences begin (attention, pooling,
dropping finished sequences) asks the layout. So one encoder serves both, and computes on real
tokens only when given a packed batch.

Shapes: B sequences, T padded length, N tokens (B*T when padded), H hidden, A heads, D head size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import torch
import torch.nn.functional as F
from torch import Tensor

from litebert.model.attention import Runs, attend
from litebert.model.varlen import Grid, attend_at_once


@dataclass(frozen=True)
class Padded:
    """B sequences of T tokens each; `keys_BT` is False where a token is padding."""

    sequences: int
    length: int
    keys_BT: Tensor | None = None

    def attend(
        self, projected: Sequence[Tensor], dropout: float, read_R: Tensor | None = None
    ) -> Tensor:
        """Attention within each sequence, asked by all tokens or by those that are read."""
        lengths, device = (self.length,) * self.sequences, projected[0].device
        if device.type != "cpu":
            grid = Grid.of(lengths, device)
            return attend_at_once(projected, grid, self.keys_BT, dropout, read_R)
        return attend(projected, Runs.of(lengths, read_R), self.keys_BT, dropout)

    def first(self, x_NH: Tensor) -> Tensor:
        """The first token of each sequence, [CLS]."""
        return x_NH.view(self.sequences, self.length, -1)[:, 0]

    def mean(self, x_NH: Tensor) -> Tensor:
        """The mean of each sequence's tokens."""
        x_BTH, real_BT = self.padded(x_NH)
        weight_BT = real_BT.to(x_NH) / real_BT.sum(1, keepdim=True)
        return torch.einsum("bt,bth->bh", weight_BT, x_BTH)

    def select(self, x_NH: Tensor, chosen: Sequence[int]) -> tuple[Tensor, Padded]:
        """Only the chosen sequences."""
        index = torch.tensor(chosen, dtype=torch.long, device=x_NH.device)
        x_BTH = x_NH.view(self.sequences, self.length, -1)
        kept = x_BTH.index_select(0, index).flatten(0, 1)
        keys = None if self.keys_BT is None else self.keys_BT.index_select(0, index)
        return kept, Padded(len(chosen), self.length, keys)

    def join(self, parts: Sequence[tuple[Tensor, Sequence[int]]]) -> Tensor:
        """Put back together what `select` took apart; each part says whose tokens it holds."""
        order = torch.tensor([i for _, chosen in parts for i in chosen]).argsort()
        pieces = [x_NH.view(-1, self.length, x_NH.shape[-1]) for x_NH, _ in parts]
        return torch.cat(pieces).index_select(0, order.to(pieces[0].device)).flatten(0, 1)

    def padded(self, x_NH: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens as (B, T, H), and a mask that is True at real tokens."""
        x_BTH = x_NH.view(self.sequences, self.length, -1)
        if self.keys_BT is not None:
            return x_BTH, self.keys_BT
        return x_BTH, torch.ones(x_BTH.shape[:2], dtype=torch.bool, device=x_NH.device)


@dataclass(frozen=True)
class Packed:
    """Sequences of the given lengths, end to end, without padding."""

    lengths: tuple[int, ...]
    _grids: dict[torch.device, Grid] = field(default_factory=dict, compare=False, repr=False)

    @property
    def sequences(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> list[int]:
        """Where each sequence begins."""
        return [0, *accumulate(self.lengths)][:-1]

    def positions(self, device: torch.device, first: int) -> Tensor:
        """The place of each token in its sequence, counted from a number."""
        if device.type == "cpu":
            counts = [torch.arange(first, first + length) for length in self.lengths]
            return torch.cat(counts)
        grid = self._grid(device)
        return grid.places_N % grid.longest + first

    def attend(
        self, projected: Sequence[Tensor], dropout: float, read_R: Tensor | None = None
    ) -> Tensor:
        """Attention within each sequence, asked by all tokens or by those that are read."""
        device = projected[0].device
        if device.type != "cpu":
            return attend_at_once(projected, self._grid(device), None, dropout, read_R)
        return attend(projected, Runs.of(self.lengths, read_R), None, dropout)

    def _grid(self, device: torch.device) -> Grid:
        """Made once, for all layers."""
        if device not in self._grids:
            self._grids[device] = Grid.of(self.lengths, device)
        return self._grids[device]

    def first(self, x_NH: Tensor) -> Tensor:
        """The first token of each sequence, [CLS]."""
        if len(self.lengths) == 1:
            return x_NH[:1]
        return x_NH.index_select(0, torch.tensor(self.starts, device=x_NH.device))

    def mean(self, x_NH: Tensor) -> Tensor:
        """The mean of each sequence's tokens."""
        if x_NH.device.type == "cpu" and not x_NH.requires_grad:  # all in one call
            rows, starts = torch.arange(len(x_NH)), torch.tensor(self.starts)
            return F.embedding_bag(rows, x_NH, starts, mode="mean")
        if x_NH.device.type == "cpu":
            return torch.stack([part.mean(0) for part in x_NH.split(self.lengths)])
        x_BTH, real_BT = self.padded(x_NH)
        return x_BTH.sum(1) / real_BT.sum(1, keepdim=True)

    def select(self, x_NH: Tensor, chosen: Sequence[int]) -> tuple[Tensor, Packed]:
        """Only the chosen sequences."""
        pieces = x_NH.split(self.lengths)
        return torch.cat([pieces[i] for i in chosen]), Packed(
            tuple(self.lengths[i] for i in chosen)
        )

    def join(self, parts: Sequence[tuple[Tensor, Sequence[int]]]) -> Tensor:
        """Put back together what `select` took apart; each part says whose tokens it holds."""
        pieces: dict[int, Tensor] = {}
        for x_NH, chosen in parts:
            pieces.update(zip(chosen, x_NH.split([self.lengths[i] for i in chosen]), strict=True))
        return torch.cat([pieces[i] for i in range(self.sequences)])

    def padded(self, x_NH: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens as (B, T, H), and a mask that is True at real tokens."""
        if x_NH.device.type != "cpu":
            grid = self._grid(x_NH.device)
            return grid.pad(x_NH), grid.real_BT
        x_BTH = torch.nn.utils.rnn.pad_sequence(list(x_NH.split(self.lengths)), batch_first=True)
        lengths = torch.tensor(self.lengths, device=x_NH.device)
        return x_BTH, torch.arange(x_BTH.shape[1], device=x_NH.device) < lengths[:, None]


Layout = Padded | Packed


@dataclass(frozen=True)
class State:
    """Tokens on their way through the encoder."""

    x_NH: Tensor
    layout: Layout
    blocks: tuple[State, ...] = ()  # before the first block and after each, where asked for

    def select(self, chosen: Sequence[int]) -> State:
        """Only the chosen sequences."""
        return State(*self.layout.select(self.x_NH, chosen))

    def at(self, positions: Tensor | None) -> Tensor:
        """The tokens at flat positions, (M, H); all of them without."""
        return self.x_NH if positions is None else self.x_NH.index_select(0, positions)

    def first(self) -> Tensor:
        """The first token of each sequence, (B, H)."""
        return self.layout.first(self.x_NH)

    def mean(self) -> Tensor:
        """The mean of each sequence's tokens, (B, H)."""
        return self.layout.mean(self.x_NH)

    def padded(self) -> tuple[Tensor, Tensor]:
        """Tokens as (B, T, H) and the mask of real ones."""
        return self.layout.padded(self.x_NH)

"""The encoder with packed weights: the same layers, cut at the same places, no backward pass.

It takes the place of a model's encoder, so that heads and tasks notice nothing. The fp32 weights
that were packed are let go.

Shapes: B sequences, T tokens, N tokens of all, E embedding, H hidden, A heads, D head size.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from litebert.inference.kernels import Pack, Resolved, packer
from litebert.model.encoder import Encoder
from litebert.model.layers import Attention, FeedForward
from litebert.model.layout import Layout, Packed, State
from litebert.model.model import Model


def pack_model(model: Model, precision: Resolved) -> Model:
    """Give a model a packed encoder; it can no longer be trained or saved."""
    device = next(model.parameters()).device
    model.encoder = PackedEncoder(model.encoder, packer(precision, device), precision)
    return model.requires_grad_(False).train(False)


class PackedEncoder(Encoder):
    """An encoder for inference; every part is packed once, however many layers share it."""

    def __init__(self, encoder: Encoder, pack: Pack, precision: Resolved) -> None:
        nn.Module.__init__(self)
        self.config, self.checkpointing = encoder.config, False
        self.embeddings = encoder.embeddings
        self._dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        tables = encoder.embeddings
        # Most sequences are of segment 0 throughout: one table less to add.
        self._places = tables.position.weight.detach() + tables.segment.weight.detach()[0]
        self._segments = tables.segment.weight.detach() - tables.segment.weight.detach()[0]
        projection, width = encoder.projection, encoder.config.embedding_size
        self._project = None if projection is None else pack(projection, None)
        self._width = (width,)
        object.__setattr__(self, "projection", projection is not None)  # whether; not a module
        attentions: Any = [_Attention(part, pack, self._dtype) for part in encoder.attentions]  # type: ignore[arg-type]
        parts: Any = [_FeedForward(part, pack, self._dtype) for part in encoder.feed_forwards]  # type: ignore[arg-type]
        self.attentions, self.feed_forwards = attentions, parts

    def embed(
        self, ids: Tensor, *, mask: Tensor | None = None, segments: Tensor | None = None,
        positions: Tensor | None = None, lengths: Sequence[int] | None = None,
    ) -> State:  # fmt: skip
        """Tokens of a packed batch at width H, before the first layer."""
        assert lengths is not None, "an engine's batches are packed"
        layout = Packed(tuple(lengths))
        self._check_length(layout)
        if positions is None:
            positions = self._positions(ids, layout)
        x_NE = F.embedding(ids, self.embeddings.token.weight)
        x_NE += F.embedding(positions, self._places)
        if segments is not None:
            x_NE += F.embedding(segments, self._segments)
        norm = self.embeddings.norm
        x_NE = F.layer_norm(x_NE, self._width, norm.weight, norm.bias, norm.eps)
        x_NH = x_NE.to(self._dtype) if self._project is None else self._project(x_NE)
        return State(x_NH, layout)

    def _run(self, arguments: tuple[Any, ...]) -> Tensor:
        """One block: with `read`, the tokens that are read afterwards, zeros elsewhere."""
        x_NH, attention, feed_forward, layout, _, read_R = arguments
        if read_R is None:
            return feed_forward(attention(x_NH, x_NH, layout, None))
        residual = x_NH.index_select(0, read_R)
        result = feed_forward(attention(x_NH, residual, layout, read_R))
        return torch.zeros_like(x_NH).index_copy_(0, read_R, result)


class _Norm:
    def __init__(self, norm: nn.LayerNorm, dtype: torch.dtype) -> None:
        self.weight, self.bias = (
            parameter.detach().to(dtype, copy=True) for parameter in (norm.weight, norm.bias)
        )
        self.shape, self.eps = tuple(self.weight.shape), norm.eps

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.shape, self.weight, self.bias, self.eps)


class _Attention:
    def __init__(self, part: Attention, pack: Pack, dtype: torch.dtype) -> None:
        self.heads = part.heads
        self.query_key_value = pack(part.query_key_value, None)
        self.output = pack(part.output, None)
        self.norm = _Norm(part.norm, dtype)

    def __call__(
        self, x_NH: Tensor, residual: Tensor, layout: Layout, read_R: Tensor | None
    ) -> Tensor:
        context = self._attend(self.query_key_value(x_NH), layout)
        if read_R is not None:
            context = context.index_select(0, read_R)
        return self.norm(self.output.plus(context, residual))

    def _attend(self, qkv_NX: Tensor, layout: Layout) -> Tensor:
        """Attention within each sequence; neighbours of one length go through in one call.

        As `Packed.attend`, with fewer views: of a short text they cost as much as the attention.
        """
        assert isinstance(layout, Packed)
        parts, start = [], 0
        for length, run in groupby(layout.lengths):
            count = len(list(run))
            part = qkv_NX[start : start + count * length].view(count, length, 3, self.heads, -1)
            q, k, v = part.permute(2, 0, 3, 1, 4).unbind(0)
            context_BATD = F.scaled_dot_product_attention(q, k, v)
            parts.append(context_BATD.transpose(1, 2).reshape(count * length, -1))
            start += count * length
        return parts[0] if len(parts) == 1 else torch.cat(parts)


class _FeedForward:
    def __init__(self, part: FeedForward, pack: Pack, dtype: torch.dtype) -> None:
        self.inner = pack(part.inner, part.activation)
        self.outer = pack(part.outer, None)
        self.norm = _Norm(part.norm, dtype)

    def __call__(self, x_NH: Tensor) -> Tensor:
        return self.norm(self.outer.plus(self.inner(x_NH), x_NH))

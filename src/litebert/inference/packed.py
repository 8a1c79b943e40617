"""The encoder with packed weights: the same layers, cut at the same places, no backward pass.

It takes the place of a model's encoder, so that heads and tasks notice nothing. The fp32 weights
that were packed are let go.

Shapes: B sequences, T tokens, N tokens of all, E embedding, H hidden, A heads, D head size.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from litebert.base.runtime import kernel_rows, release_freed_memory
from litebert.inference.kernels import Pack, Resolved, channel_scales, first_padded, packer
from litebert.model.encoder import Encoder
from litebert.model.layers import Attention, FeedForward
from litebert.model.layout import Packed, State
from litebert.model.model import Model


def pack_model(model: Model, precision: Resolved) -> Model:
    """Give a model a packed encoder; it can no longer be trained or saved."""
    device = next(model.parameters()).device
    decodes = any(getattr(head, "needs_token_table", False) for head in model.heads.values())
    model.encoder = PackedEncoder(
        model.encoder, packer(precision, device), precision,
        bytes_of_tokens=precision == "int8" and not decodes,
    )  # fmt: skip
    for parameter in model.parameters():  # a tensor of the file would keep all of it in memory
        parameter.data = parameter.data.clone()
    release_freed_memory()
    return model.requires_grad_(False).train(False)


class PackedEncoder(Encoder):
    """An encoder for inference; every part is packed once, however many layers share it."""

    def __init__(
        self, encoder: Encoder, pack: Pack, precision: Resolved, *, bytes_of_tokens: bool = False
    ) -> None:
        nn.Module.__init__(self)
        self.config, self.checkpointing = encoder.config, False
        self.embeddings = encoder.embeddings
        self._dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        largest = encoder.config.hidden_size * encoder.config.intermediate_size
        device = encoder.embeddings.token.weight.device
        self._padded_from = first_padded(precision, device, largest)
        self._first = compiled(_FirstStates(encoder, pack, self._dtype, bytes_of_tokens))
        attentions: Any = [
            compiled(_Attention(part, pack, self._dtype))  # type: ignore[arg-type]
            for part in encoder.attentions
        ]
        feed_forwards: Any = [
            compiled(_FeedForward(part, pack, self._dtype))  # type: ignore[arg-type]
            for part in encoder.feed_forwards
        ]
        self.attentions, self.feed_forwards = attentions, feed_forwards
        if bytes_of_tokens:
            tokens = self.embeddings.token
            tokens.weight = nn.Parameter(tokens.weight[:0].clone(), requires_grad=False)
        self._repeat: Any = None
        self._whole: Any = None
        if len(attentions) == len(feed_forwards) == 1:
            self._repeat = compiled(_Repeat(attentions[0], feed_forwards[0]))
            self._whole = compiled(_Whole(self._first, self._repeat))

    def embed(
        self, ids: Tensor, *, mask: Tensor | None = None, segments: Tensor | None = None,
        positions: Tensor | None = None, lengths: Sequence[int] | None = None,
    ) -> State:  # fmt: skip
        """Tokens of a packed batch at width H, before the first layer."""
        assert lengths is not None, "an engine's batches are packed"
        layout = Packed(tuple(lengths))
        self._check_length(layout)
        x_NH = self._first(ids, layout.lengths, positions, segments, self.embeddings.token.weight)
        return State(x_NH, layout)

    def forward(
        self, ids: Tensor, *, mask: Tensor | None = None, segments: Tensor | None = None,
        positions: Tensor | None = None, lengths: Sequence[int] | None = None,
        depth: int | Sequence[int] | None = None, read: Tensor | None = None,
    ) -> State:  # fmt: skip
        """As the plain encoder does; a shared one without Python between tokens and result."""
        stop = self.config.num_hidden_layers if depth is None else depth
        if self._whole is None or not isinstance(stop, int) or positions is not None:
            return super().forward(
                ids, mask=mask, segments=segments, positions=positions, lengths=lengths,
                depth=depth, read=read,
            )  # fmt: skip
        assert lengths is not None, "an engine's batches are packed"
        layout = Packed(tuple(lengths))
        self._check_length(layout)
        self.check_depth(stop)
        token_VE, more = self.embeddings.token.weight, self._missing_rows(len(ids))
        x_NH = self._whole(ids, layout.lengths, segments, token_VE, stop, more, read)
        return State(x_NH, layout)

    def layers(
        self, state: State, start: int, stop: int, collect: list[State] | None = None,
        read: Tensor | None = None,
    ) -> State:  # fmt: skip
        """As the plain encoder does; a shared layer is repeated without Python in between."""
        if collect is not None:
            return super().layers(state, start, stop, collect, read)
        rows, layout = len(state.x_NH), state.layout
        assert isinstance(layout, Packed)
        x_NH = self._padded(state.x_NH)
        if self._repeat is None:
            x_NH = super().layers(State(x_NH, layout), start, stop, None, read).x_NH
        else:
            self.check_depth(stop)
            x_NH = self._repeat(x_NH, layout.lengths, stop - start, read)
        return State(x_NH[:rows] if len(x_NH) > rows else x_NH, layout)

    def _padded(self, x_NH: Tensor) -> Tensor:
        """As many rows as products want: the first ones again, so that no range of bytes changes.

        Once before the layers, where every product would do it otherwise.
        """
        more = self._missing_rows(len(x_NH))
        return torch.cat([x_NH, x_NH[:more]]) if more else x_NH

    def _missing_rows(self, rows: int) -> int:
        return kernel_rows(rows) - rows if rows >= self._padded_from else 0

    def _run(self, arguments: tuple[Any, ...]) -> Tensor:
        """One block: with `read`, the tokens that are read afterwards, zeros elsewhere."""
        x_NH, attention, feed_forward, layout, _, read_R = arguments
        result = feed_forward(attention(x_NH, layout.lengths, read_R))
        return result if read_R is None else _spread(result, read_R, x_NH)


class _Repeat(nn.Module):
    """A shared layer, so many times; the last one for the tokens that are read, where some are."""

    def __init__(self, attention: nn.Module, feed_forward: nn.Module) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward

    def forward(
        self, x_NH: Tensor, lengths: list[int], times: int, read_R: Tensor | None
    ) -> Tensor:
        whole = times if read_R is None else times - 1
        for _ in range(whole):
            x_NH = self.feed_forward(self.attention(x_NH, lengths, None))
        if read_R is None:
            return x_NH
        return _spread(self.feed_forward(self.attention(x_NH, lengths, read_R)), read_R, x_NH)


class _Whole(nn.Module):
    """A shared encoder from tokens to the result: of one short text, Python took a third."""

    def __init__(self, first: nn.Module, repeat: nn.Module) -> None:
        super().__init__()
        self.first, self.repeat = first, repeat

    def forward(
        self, ids: Tensor, lengths: list[int], segments: Tensor | None, token_VE: Tensor,
        times: int, more: int, read_R: Tensor | None,
    ) -> Tensor:  # fmt: skip
        x_NH = self.first(ids, lengths, None, segments, token_VE)
        if more > 0:
            x_NH = torch.cat([x_NH, x_NH.narrow(0, 0, more)])
        x_NH = self.repeat(x_NH, lengths, times, read_R)
        return x_NH.narrow(0, 0, ids.shape[0]) if more > 0 else x_NH


def _spread(x_RH: Tensor, read_R: Tensor, all_NH: Tensor) -> Tensor:
    """The tokens that were read, at their places among all; zeros elsewhere."""
    return torch.zeros_like(all_NH).index_copy_(0, read_R, x_RH)


class _FirstStates(nn.Module):
    """Tokens before the first layer.

    The token table is handed over, as heads borrow it too; where none does, and it is the largest
    part of a small model, it is kept as bytes with a scale for each token.
    """

    def __init__(
        self, encoder: Encoder, pack: Pack, dtype: torch.dtype, bytes_of_tokens: bool
    ) -> None:
        super().__init__()
        tables = encoder.embeddings
        self.has_bytes = bytes_of_tokens
        token = tables.token.weight.detach()[: None if bytes_of_tokens else 0]
        self.scales = channel_scales(token)[:, None] if bytes_of_tokens else token.float()
        self.bytes = (token / self.scales).round_().to(torch.int8) if bytes_of_tokens else token
        # Most sequences are of segment 0 throughout: one table less to add.
        segments = tables.segment.weight.detach()
        self.places = tables.position.weight.detach() + segments[0]
        self.segments = segments - segments[0]
        self.counting = torch.arange(
            encoder.config.first_position, len(self.places), device=segments.device
        )
        self.norm = _Norm(tables.norm, torch.float32)
        projection = encoder.projection
        self.project = nn.Identity() if projection is None else pack(projection, None)
        self.dtype = dtype

    def forward(
        self, ids: Tensor, lengths: list[int], positions: Tensor | None, segments: Tensor | None,
        token_VE: Tensor,
    ) -> Tensor:  # fmt: skip
        if self.has_bytes:
            token_NE = F.embedding(ids, self.bytes) * F.embedding(ids, self.scales)
        else:
            token_NE = F.embedding(ids, token_VE)
        if positions is None:
            counts = [self.counting.narrow(0, 0, length) for length in lengths]
            positions = counts[0] if len(counts) == 1 else torch.cat(counts)
        x_NE = token_NE + F.embedding(positions, self.places)
        if segments is not None:
            x_NE = x_NE + F.embedding(segments, self.segments)
        return self.project(self.norm(x_NE)).to(self.dtype)


class _Norm(nn.Module):
    def __init__(self, norm: nn.LayerNorm, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight, self.bias = (
            parameter.detach().to(dtype, copy=True) for parameter in (norm.weight, norm.bias)
        )
        self.width, self.eps = len(self.weight), float(norm.eps)

    def forward(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, [self.width], self.weight, self.bias, self.eps)


class _Attention(nn.Module):
    """LayerNorm(x + Attention(x)), of all tokens or of those that are read."""

    def __init__(self, part: Attention, pack: Pack, dtype: torch.dtype) -> None:
        super().__init__()
        self.heads, self.width = part.heads, part.output.out_features
        self.query_key_value = pack(part.query_key_value, None)
        self.output = pack(part.output, None)
        self.norm = _Norm(part.norm, dtype)

    def forward(self, x_NH: Tensor, lengths: list[int], read_R: Tensor | None) -> Tensor:
        context_NH = self.attend(self.query_key_value(x_NH), lengths)
        if read_R is not None:
            context_NH, x_NH = context_NH.index_select(0, read_R), x_NH.index_select(0, read_R)
        return self.norm(self.output.plus(context_NH, x_NH))

    def attend(self, qkv_NX: Tensor, lengths: list[int]) -> Tensor:
        """Attention within each sequence; neighbours of one length go through in one call."""
        parts: list[Tensor] = []
        place, start = 0, 0
        while place < len(lengths):
            length, count = lengths[place], 1
            while place + count < len(lengths) and lengths[place + count] == length:
                count += 1
            tokens = count * length
            part = qkv_NX.narrow(0, start, tokens).view(count, length, 3, self.heads, -1)
            q, k, v = part.permute(2, 0, 3, 1, 4).unbind(0)
            context_BATD = F.scaled_dot_product_attention(q, k, v)
            parts.append(context_BATD.transpose(1, 2).reshape(tokens, self.width))
            place, start = place + count, start + tokens
        context_NH = parts[0] if len(parts) == 1 else torch.cat(parts)
        more = qkv_NX.shape[0] - start
        if more > 0:  # the rows that were added are the first ones again
            context_NH = torch.cat([context_NH, context_NH.narrow(0, 0, more)])
        return context_NH


class _FeedForward(nn.Module):
    """LayerNorm(x + feed-forward of x)."""

    def __init__(self, part: FeedForward, pack: Pack, dtype: torch.dtype) -> None:
        super().__init__()
        self.inner = pack(part.inner, part.activation)
        self.outer = pack(part.outer, None)
        self.norm = _Norm(part.norm, dtype)

    def forward(self, x_NH: Tensor) -> Tensor:
        return self.norm(self.outer.plus(self.inner(x_NH), x_NH))


def compiled(module: nn.Module) -> Any:
    """Without Python between its operators, which takes as long as they do on a short text."""
    with warnings.catch_warnings():  # TorchScript is to be replaced, by what needs a C++ compiler
        warnings.simplefilter("ignore")
        return torch.jit.script(module.eval())

"""The encoder: factorised embeddings, then blocks whose parts may be shared between layers.

    embed    token + position + segment, E wide -> LayerNorm -> dropout -> E->H   (paper, 3.1)
    layers   blocks start..stop; with everything shared, any number of them
    forward  both, at one depth for all or one per sequence

BERT, RoBERTa and ELECTRA are the same with E = H, or nothing shared, or positions counted from
another number: see `EncoderConfig`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from litebert.base.errors import SettingsError
from litebert.base.runtime import kernel_rows
from litebert.model.config import EncoderConfig, group_of_layer
from litebert.model.dropout import dropout
from litebert.model.layers import Attention, FeedForward, block
from litebert.model.layout import Layout, Packed, Padded, State


class Embeddings(nn.Module):
    """Token, position and segment tables of width E, summed and normalised at width E."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width = config.embedding_size
        self.config = config
        self.token = nn.Embedding(config.vocab_size, width)
        self.position = nn.Embedding(config.max_position_embeddings, width)
        self.segment = nn.Embedding(config.type_vocab_size, width)
        self.norm = nn.LayerNorm(width, config.layer_norm_eps)

    def forward(self, ids: Tensor, segments: Tensor | None, positions: Tensor) -> Tensor:
        # One token in many has another segment than 0, so a row is cheaper than a look-up.
        segment = self.segment.weight[0] if segments is None else self.segment(segments)
        x = self.norm(self.token(ids) + self.position(positions) + segment)
        return dropout(x, self.config.hidden_dropout_prob if self.training else 0.0)


class Encoder(nn.Module):
    """The stack, cut where progressive depth, early exit and packed batches need it."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.checkpointing = False  # keep only block inputs, recompute the rest: less memory
        self.embeddings = Embeddings(config)
        self.projection = (
            nn.Linear(config.embedding_size, config.hidden_size) if config.has_projection else None
        )
        inner = config.inner_group_num
        self.attentions = nn.ModuleList(
            Attention(config) for _ in range(config.attention_groups * inner)
        )
        self.feed_forwards = nn.ModuleList(
            FeedForward(config) for _ in range(config.ffn_groups * inner)
        )

    def forward(
        self,
        ids: Tensor,
        *,
        mask: Tensor | None = None,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
        lengths: Sequence[int] | None = None,
        depth: int | Sequence[int] | None = None,
        read: Tensor | None = None,
    ) -> State:
        """Encode a padded batch `ids` (B, T) with its `mask`, or a packed one (N,) with `lengths`.

        `depth` is the number of layers to run: one for all, or one per sequence. `read` are the
        flat positions that will be read, if not all: the last layer is computed there only.
        """
        state = self.embed(ids, mask=mask, segments=segments, positions=positions, lengths=lengths)
        if depth is None or isinstance(depth, int):
            stop = self.config.num_hidden_layers if depth is None else depth
            return self.layers(state, 0, stop, read=read)
        return self._mixed_depth(state, depth)

    def embed(
        self,
        ids: Tensor,
        *,
        mask: Tensor | None = None,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
        lengths: Sequence[int] | None = None,
    ) -> State:
        """Tokens at width H, before the first layer."""
        layout = _layout(ids, mask, lengths)
        self._check_length(layout)
        if positions is None:
            positions = self._positions(ids, layout)
        x = self.embeddings(ids, segments, positions).flatten(0, -2)
        return State(x if self.projection is None else self.projection(x), layout)

    def layers(
        self, state: State, start: int, stop: int, collect: list[State] | None = None,
        read: Tensor | None = None,
    ) -> State:  # fmt: skip
        """Run layers start..stop; `collect` receives the state after each block.

        With `read`, the last block computes these tokens only, and leaves zeros elsewhere.
        """
        self.check_depth(stop)
        x_NH, read = _filled(state, read)
        layout, tokens = state.layout, len(state.x_NH)
        dropout = self.config.hidden_dropout_prob if self.training else 0.0
        blocks = [parts for layer in range(start, stop) for parts in self.parts(layer)]
        for number, (attention, feed_forward) in enumerate(blocks, 1):
            wanted = read if number == len(blocks) else None
            x_NH = self._run((x_NH, attention, feed_forward, layout, dropout, wanted))
            if collect is not None:
                collect.append(State(x_NH[:tokens], layout))
        return State(x_NH[:tokens], layout)

    def _run(self, arguments: tuple[Any, ...]) -> Tensor:
        if self.checkpointing and torch.is_grad_enabled():
            return checkpoint(block, *arguments, use_reentrant=False)  # type: ignore[return-value]
        return block(*arguments)

    def parts(self, layer: int) -> list[tuple[Attention, FeedForward]]:
        """The attention and feed-forward parts of a layer, in the order they run."""
        config, inner = self.config, self.config.inner_group_num
        attention = self._group(layer, config.attention_groups) * inner
        feed_forward = self._group(layer, config.ffn_groups) * inner
        return [
            (self.attentions[attention + i], self.feed_forwards[feed_forward + i])  # type: ignore[misc]
            for i in range(inner)
        ]

    def _group(self, layer: int, groups: int) -> int:
        if groups == 1:
            return 0  # layers past the configured depth are the same layer again
        return group_of_layer(layer, groups, self.config.num_hidden_layers)

    def _mixed_depth(self, state: State, depths: Sequence[int]) -> State:
        """Sequences leave when they are done, so that no layer runs for nothing."""
        if len(depths) != state.layout.sequences:
            raise SettingsError(
                f"depth has {len(depths)} entries for a batch of {state.layout.sequences} sequences"
            )
        layout, running, level = state.layout, list(range(len(depths))), 0
        done: list[tuple[Tensor, Sequence[int]]] = []
        for depth in sorted(set(depths)):
            state, level = self.layers(state, level, depth), depth
            here = [i for i in running if depths[i] == depth]
            left = [i for i in running if depths[i] != depth]
            done.append((state.select([running.index(i) for i in here]).x_NH, here))
            if left:
                state = state.select([running.index(i) for i in left])
            running = left
        return State(layout.join(done), layout)

    def _positions(self, ids: Tensor, layout: Layout) -> Tensor:
        first = self.config.first_position
        if isinstance(layout, Packed):
            return layout.positions(ids.device, first)
        if first == 0:
            return torch.arange(layout.length, device=ids.device).expand(ids.shape)
        # RoBERTa counts real tokens only, wherever the padding is.
        real = ids.ne(self.config.pad_token_id).long()
        return real.cumsum(1) * real + self.config.pad_token_id

    def _check_length(self, layout: Layout) -> None:
        longest = layout.length if isinstance(layout, Padded) else max(layout.lengths)
        if longest > self.config.longest_sequence:
            raise SettingsError(
                f"a sequence of {longest} tokens is too long for this encoder, which has positions "
                f"for {self.config.longest_sequence}; shorten it or raise max_position_embeddings"
            )

    def check_depth(self, depth: int) -> None:
        """Refuse a depth that this encoder does not have."""
        if depth < 1:
            raise SettingsError(f"depth {depth}: an encoder runs at least one layer")
        if depth > self.config.num_hidden_layers and not self.config.depth_is_free:
            raise SettingsError(
                f"depth {depth}: this encoder has {self.config.num_hidden_layers} layers of its "
                "own; only one whose layers are all shared can be run deeper"
            )


def _filled(state: State, read: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Tokens, and those that are read, with more at the end: products see few numbers of rows.

    Where they are bfloat16 on a CPU. What is added belongs to no sequence.
    """
    x_NH = state.x_NH
    if not (isinstance(state.layout, Packed) and _compiles_kernels(x_NH)):
        return x_NH, read
    tokens, more = len(x_NH), 0 if read is None else kernel_rows(len(read)) - len(read)
    added = kernel_rows(tokens + more) - tokens
    if read is not None:
        read = torch.cat([read, torch.arange(tokens, tokens + more)])
    return F.pad(x_NH, (0, 0, 0, added)) if added else x_NH, read


def _compiles_kernels(x_NH: Tensor) -> bool:
    return x_NH.device.type == "cpu" and torch.is_autocast_enabled("cpu")


def _layout(ids: Tensor, mask: Tensor | None, lengths: Sequence[int] | None) -> Layout:
    if lengths is None:
        if ids.dim() != 2:
            raise SettingsError(
                f"ids of shape {tuple(ids.shape)}: give (sequences, length), or `lengths` too"
            )
        return Padded(ids.shape[0], ids.shape[1], None if mask is None else mask.bool())
    if ids.dim() != 1 or sum(lengths) != ids.shape[0] or min(lengths, default=0) < 1:
        raise SettingsError(
            f"packed ids of shape {tuple(ids.shape)} do not fit lengths that sum to "
            f"{sum(lengths)}; each length must be at least 1"
        )
    if mask is not None:
        raise SettingsError("a packed batch has no padding, so it takes `lengths` and no `mask`")
    return Packed(tuple(lengths))

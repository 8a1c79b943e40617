"""The encoder as an ONNX graph: the mathematics of `model/encoder.py`, node by node.

Layers see flat tokens, as ours do, and attention sees sequences. Attention's scores are scaled in
the query's weights, so that no node does it.

Shapes: B sequences, T tokens, N = B*T tokens, H hidden, A heads, D head size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from litebert.convert.onnx_graph import GraphBuilder
from litebert.model.config import EncoderConfig
from litebert.model.encoder import Encoder
from litebert.model.layers import Attention, FeedForward

IDS, MASK, TYPES = "input_ids", "attention_mask", "token_type_ids"
TOKEN_TABLE = "encoder.embeddings.token"


@dataclass(frozen=True)
class Inputs2D:
    """The inputs of the graph, each (B, T)."""

    ids: str
    mask: str  # 1 at real tokens
    types: str | None


@dataclass(frozen=True)
class Encoded:
    """Values of the graph after the last layer."""

    x_NH: str  # (B, H) where only the first tokens were computed
    mask_BT: str
    shape_BT: str


def input_names(config: EncoderConfig) -> list[str]:
    """As transformers' exporters have them: RoBERTa has no segments, unless trained with some."""
    plain = config.family == "roberta" and config.type_vocab_size == 1
    return [IDS, MASK] if plain else [IDS, MASK, TYPES]


class EncoderGraph:
    """Adds an encoder's nodes to a graph."""

    def __init__(self, graph: GraphBuilder, encoder: Encoder) -> None:
        self.graph, self.encoder, self.config = graph, encoder, encoder.config
        self._names = {module: f"encoder.{name}" for name, module in encoder.named_modules()}

    def build(self, inputs: Inputs2D, *, first_only: bool = False, tied: bool = False) -> Encoded:
        """All layers.

        With `first_only` the last layer computes the first tokens alone, which is all that some
        heads read; with `tied` the token table lies as the decoder of masked tokens reads it.
        """
        shape_BT = self.graph.add("Shape", inputs.ids)
        x_NH = self._embed(inputs, shape_BT, tied)
        bias_B11T = self._attention_bias(inputs.mask)
        heads = self.graph.integers(self.config.num_attention_heads, self.config.head_size)
        shape_BTAD = self.graph.add("Concat", shape_BT, heads, axis=0)
        layers = range(self.config.num_hidden_layers)
        blocks = [parts for layer in layers for parts in self.encoder.parts(layer)]
        for number, (attention, feed_forward) in enumerate(blocks, 1):
            first = first_only and number == len(blocks)
            context = self._attend(attention, x_NH, shape_BTAD, bias_B11T, first)
            x_NH = self._first(x_NH, shape_BT) if first else x_NH
            x_NH = self._after_attention(attention, feed_forward, x_NH, context)
        return Encoded(x_NH, inputs.mask, shape_BT)

    def _embed(self, inputs: Inputs2D, shape_BT: str, tied: bool) -> str:
        graph, tables = self.graph, self.encoder.embeddings
        look_up = graph.columns if tied else graph.rows
        x = look_up(TOKEN_TABLE, tables.token, inputs.ids)
        x = graph.add("Add", x, self._positions(inputs, shape_BT))
        segment = graph.weight("encoder.embeddings.segment.weight", tables.segment.weight)
        if inputs.types is None:
            x = graph.add("Add", x, graph.take(segment, 0, axis=0))
        else:
            x = graph.add("Add", x, graph.add("Gather", segment, inputs.types))
        x = graph.norm(x, "encoder.embeddings.norm", tables.norm)
        x = graph.reshape(x, -1, self.config.embedding_size)
        projection = self.encoder.projection
        return x if projection is None else graph.linear(x, "encoder.projection", projection)

    def _positions(self, inputs: Inputs2D, shape_BT: str) -> str:
        """Rows of the position table: by the place, or for RoBERTa by the count of real tokens."""
        graph = self.graph
        table = graph.weight(
            "encoder.embeddings.position.weight", self.encoder.embeddings.position.weight
        )
        if self.config.first_position == 0:
            length = graph.add("Slice", shape_BT, *(graph.integers(i) for i in (1, 2)))
            return graph.add("Slice", table, graph.integers(0), length, graph.integers(0))
        pad = graph.constant(self.config.pad_token_id, np.int64)
        real = graph.integer(graph.add("Not", graph.add("Equal", inputs.ids, pad)))
        count = graph.add("CumSum", real, graph.constant(1, np.int64))
        return graph.add("Gather", table, graph.add("Add", graph.add("Mul", count, real), pad))

    def _attention_bias(self, mask_BT: str) -> str:
        """0 at real tokens, next to minus infinity at padding, as (B, 1, 1, T)."""
        graph = self.graph
        padding = graph.add("Sub", graph.constant(1), graph.float(mask_BT))
        bias_BT = graph.add("Mul", padding, graph.constant(np.finfo(np.float32).min))
        return graph.add("Unsqueeze", bias_BT, graph.integers(1, 2))

    def _attend(
        self, attention: Attention, x_NH: str, shape_BTAD: str, bias: str, first: bool
    ) -> str:
        """softmax(QK' / sqrt(D)) V as (N, H), before the output projection."""
        graph, width = self.graph, self.config.hidden_size
        scale = np.repeat(np.array([self.config.head_size**-0.5, 1, 1], np.float32), width)
        name = f"{self._names[attention]}.query_key_value"
        thirds = graph.add_several(
            "Split", graph.linear(x_NH, name, attention.query_key_value, scale),
            graph.integers(width, width, width), outputs=3, axis=-1,
        )  # fmt: skip
        q, k, v = (graph.add("Reshape", third, shape_BTAD) for third in thirds)
        if first:
            q = graph.add("Slice", q, *(graph.integers(i) for i in (0, 1, 1)))
        q, v = (graph.add("Transpose", value, perm=[0, 2, 1, 3]) for value in (q, v))
        k = graph.add("Transpose", k, perm=[0, 2, 3, 1])
        scores = graph.add("Add", graph.add("MatMul", q, k), bias)
        context = graph.add("MatMul", graph.add("Softmax", scores, axis=-1), v)
        return graph.reshape(graph.add("Transpose", context, perm=[0, 2, 1, 3]), -1, width)

    def _first(self, x_NH: str, shape_BT: str) -> str:
        return first_tokens(self.graph, x_NH, shape_BT, self.config.hidden_size)

    def _after_attention(
        self, attention: Attention, feed_forward: FeedForward, x_NH: str, context: str
    ) -> str:
        graph = self.graph
        one, two = self._names[attention], self._names[feed_forward]
        attended = graph.linear(context, f"{one}.output", attention.output)
        u_NH = graph.norm(graph.add("Add", x_NH, attended), f"{one}.norm", attention.norm)
        inner = graph.linear(u_NH, f"{two}.inner", feed_forward.inner)
        inner = graph.activation(inner, feed_forward.activation)
        outer = graph.linear(inner, f"{two}.outer", feed_forward.outer)
        return graph.norm(graph.add("Add", u_NH, outer), f"{two}.norm", feed_forward.norm)


def sequences(graph: GraphBuilder, x_NH: str, shape_BT: str, width: int) -> str:
    """Flat tokens as (B, T, width)."""
    shape = graph.add("Concat", shape_BT, graph.integers(width), axis=0)
    return graph.add("Reshape", x_NH, shape)


def first_tokens(graph: GraphBuilder, x_NH: str, shape_BT: str, width: int) -> str:
    """The first token of each sequence, (B, width)."""
    return graph.take(sequences(graph, x_NH, shape_BT, width), 0, axis=1)

"""Heads as ONNX graphs, and a whole model: `build_model(model, "classification")`.

Inputs and outputs have the names and shapes of transformers' exporters: `logits`, `start_logits`
and `end_logits`, `last_hidden_state`; options of multiple choice are a middle axis of the inputs.
Heads of our own follow suit: a bi-encoder's two texts are a middle axis of two, and SQuAD 2.0's
conditional head takes `p_mask` (1 where no answer may be) as XLNet's does, and gives the ends of
its best starts.

Shapes: B sequences of T tokens, H hidden, V vocabulary, K beams; C options, or a pair's two texts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from litebert.base.errors import SettingsError
from litebert.convert.onnx_encoder import (
    IDS,
    MASK,
    TOKEN_TABLE,
    TYPES,
    Encoded,
    EncoderGraph,
    Inputs2D,
    first_tokens,
    input_names,
    sequences,
)
from litebert.convert.onnx_graph import GraphBuilder, Shape
from litebert.model.heads import NEVER
from litebert.model.model import Model

if TYPE_CHECKING:
    from onnx import ModelProto

FEATURES = "features"  # no head: the encoder's last hidden states
P_MASK = "p_mask"
BEAMS = 5  # starts that the conditional head continues from, as in tasks/spans.py
B, T = "batch_size", "sequence_length"

Outputs = dict[str, tuple[str, Shape]]


@dataclass(frozen=True)
class Context:
    """What a head's builder is given."""

    graph: GraphBuilder
    model: Model
    name: str  # of the head
    encoded: Encoded
    inputs: dict[str, Shape]

    @property
    def width(self) -> int:
        return self.model.config.hidden_size

    @property
    def head(self) -> Any:
        return self.model.head(self.name)

    def linear(self, x: str, part: str) -> str:
        """A dense layer of the head."""
        return self.graph.linear(x, f"heads.{self.name}.{part}", getattr(self.head, part))

    def sequences(self, x: str, width: int) -> str:
        """Flat tokens as (B, T, width)."""
        return sequences(self.graph, x, self.encoded.shape_BT, width)

    def pooled(self) -> str:
        """The pooler over the first tokens, which are all that was computed."""
        pooler, graph = self.model.pooler, self.graph
        assert pooler is not None, "a model gives its pooler to the heads that need one"
        x = graph.linear(self.encoded.x_NH, "pooler.dense", pooler.dense)
        tanh = pooler.activation == "tanh"
        return graph.add("Tanh", x) if tanh else graph.activation(x, "gelu")

    def mean(self) -> str:
        """The mean of each sequence's real tokens, (B, H)."""
        graph = self.graph
        real_BT1 = graph.add("Unsqueeze", graph.float(self.encoded.mask_BT), graph.integers(2))
        x_BTH = graph.add("Mul", self.sequences(self.encoded.x_NH, self.width), real_BT1)
        total = graph.add("ReduceSum", x_BTH, graph.integers(1), keepdims=0)
        return graph.add(
            "Div", total, graph.add("ReduceSum", real_BT1, graph.integers(1), keepdims=0)
        )


def _features(context: Context) -> Outputs:
    graph, encoded = context.graph, context.encoded
    states = context.sequences(encoded.x_NH, context.width)
    outputs: Outputs = {"last_hidden_state": (states, [B, T, context.width])}
    settings = context.model.sentence_encoder
    if settings is not None and not settings.unknown:
        vectors = context.mean() if settings.pooling == "mean" else graph.take(states, 0, axis=1)
        if settings.normalize:
            length = graph.add("ReduceL2", vectors, axes=[-1], keepdims=1)
            vectors = graph.add("Div", vectors, graph.add("Max", length, graph.constant(1e-12)))
        outputs["sentence_embedding"] = (vectors, [B, context.width])
    return outputs


def _masked_lm(context: Context) -> Outputs:
    graph, head, config = context.graph, context.head, context.model.config
    x = graph.activation(context.linear(context.encoded.x_NH, "dense"), head.activation)
    x = graph.norm(x, f"heads.{context.name}.norm", head.norm)
    table = head.token_table.detach().numpy().T
    logits = graph.product(x, f"{TOKEN_TABLE}.weight", table)
    logits = graph.plus(logits, f"heads.{context.name}.bias", head.bias)
    return {"logits": (context.sequences(logits, config.vocab_size), [B, T, config.vocab_size])}


def _pooled_labels(context: Context) -> Outputs:
    logits = context.linear(context.pooled(), "dense")
    return {"logits": (logits, [B, context.head.dense.out_features])}


def _mean_labels(context: Context) -> Outputs:
    logits = context.linear(context.mean(), "dense")
    return {"logits": (logits, [B, context.head.dense.out_features])}


def _bi_encoder(context: Context) -> Outputs:
    graph = context.graph
    pairs = graph.reshape(context.mean(), -1, 2, context.width)
    u, v = (graph.take(pairs, place, axis=1) for place in (0, 1))
    apart, product = graph.add("Abs", graph.add("Sub", u, v)), graph.add("Mul", u, v)
    x = graph.add("Concat", u, v, apart, product, axis=-1)
    return {"logits": (context.linear(x, "dense"), [B, context.head.dense.out_features])}


def _choice(context: Context) -> Outputs:
    graph = context.graph
    shape = graph.add("Slice", graph.add("Shape", IDS), graph.integers(0), graph.integers(2))
    logits = graph.add("Reshape", context.linear(context.pooled(), "dense"), shape)
    return {"logits": (logits, [B, "num_choices"])}


def _token_labels(context: Context) -> Outputs:
    labels = context.head.dense.out_features
    logits = context.sequences(context.linear(context.encoded.x_NH, "dense"), labels)
    return {"logits": (logits, [B, T, labels])}


def _replaced_token(context: Context) -> Outputs:
    graph = context.graph
    x = context.linear(context.encoded.x_NH, "dense")
    x = context.linear(graph.activation(x, context.head.activation), "output")
    return {"logits": (graph.add("Reshape", x, context.encoded.shape_BT), [B, T])}


def _span(context: Context) -> Outputs:
    graph = context.graph
    logits = context.sequences(context.linear(context.encoded.x_NH, "dense"), 2)
    sides = (("start_logits", 0), ("end_logits", 1))
    return {name: (graph.take(logits, side, axis=2), [B, T]) for name, side in sides}


def _conditional_span(context: Context) -> Outputs:
    graph, encoded, width = context.graph, context.encoded, context.width
    context.inputs[P_MASK] = context.inputs[IDS]
    x_BTH = context.sequences(encoded.x_NH, width)
    hidden_BT = graph.add(
        "Or", graph.boolean(P_MASK), graph.add("Not", graph.boolean(encoded.mask_BT))
    )
    never = graph.constant(NEVER)
    start_BT = graph.add("Reshape", context.linear(encoded.x_NH, "start"), encoded.shape_BT)
    start_BT = graph.add("Where", hidden_BT, never, start_BT)
    probability_BT = graph.add("Softmax", start_BT, axis=-1)
    length = graph.add("Slice", encoded.shape_BT, graph.integers(1), graph.integers(2))
    beams = graph.add("Min", length, graph.integers(BEAMS))
    _, best_BK = graph.add_several("TopK", probability_BT, beams, outputs=2, axis=-1)
    end_BKT = _ends(context, x_BTH, best_BK)
    end_BKT = graph.add(
        "Where", graph.add("Unsqueeze", hidden_BT, graph.integers(1)), never, end_BKT
    )
    weights_B1T = graph.add("Unsqueeze", probability_BT, graph.integers(1))
    summary = graph.reshape(graph.add("MatMul", weights_B1T, x_BTH), -1, width)
    first = first_tokens(graph, encoded.x_NH, encoded.shape_BT, width)
    doubt = context.linear(graph.add("Concat", summary, first, axis=-1), "answerable_hidden")
    doubt = graph.reshape(context.linear(graph.add("Tanh", doubt), "answerable"), -1)
    return {
        "start_logits": (start_BT, [B, T]),
        "end_logits": (end_BKT, [B, "beams", T]),
        "start_top_index": (graph.float(best_BK), [B, "beams"]),
        "cls_logits": (doubt, [B]),
    }


def _ends(context: Context, x_BTH: str, best_BK: str) -> str:
    """The logits of ends for each of the best starts, (B, K, T)."""
    graph, width = context.graph, context.width
    chosen_BKH = graph.add("GatherND", x_BTH, graph.add("Unsqueeze", best_BK, graph.integers(2)),
                           batch_dims=1)  # fmt: skip
    shape_BK = graph.add("Shape", best_BK)
    length = graph.add("Slice", context.encoded.shape_BT, graph.integers(1), graph.integers(2))
    shape_BKT = graph.add("Concat", shape_BK, length, axis=0)
    shape = graph.add("Concat", shape_BKT, graph.integers(width), axis=0)
    tokens = graph.add("Expand", graph.add("Unsqueeze", x_BTH, graph.integers(1)), shape)
    starts = graph.add("Expand", graph.add("Unsqueeze", chosen_BKH, graph.integers(2)), shape)
    both = graph.reshape(graph.add("Concat", tokens, starts, axis=-1), -1, 2 * width)
    hidden = graph.add("Tanh", context.linear(both, "end_hidden"))
    hidden = graph.norm(hidden, f"heads.{context.name}.end_norm", context.head.end_norm)
    return graph.add("Reshape", context.linear(hidden, "end"), shape_BKT)


@dataclass(frozen=True)
class HeadGraph:
    """How a head is built, and what it asks of the encoder's graph."""

    build: Callable[[Context], Outputs]
    first_only: bool = False  # whether it reads the first tokens only
    tied: bool = False  # whether it decodes with the token table
    pretraining: bool = False  # whether it is there to train an encoder
    middle: int | str | None = None  # an axis of the inputs between batch and length


# Heads that have an ONNX form; of several that a model has, the first is exported by default.
HEAD_GRAPHS: dict[str, HeadGraph] = {
    "classification": HeadGraph(_pooled_labels, first_only=True),
    "mean_classification": HeadGraph(_mean_labels),
    "bi_encoder_classification": HeadGraph(_bi_encoder, middle=2),
    "token_classification": HeadGraph(_token_labels),
    "multiple_choice": HeadGraph(_choice, first_only=True, middle="num_choices"),
    "span": HeadGraph(_span),
    "conditional_span": HeadGraph(_conditional_span),
    "masked_lm": HeadGraph(_masked_lm, tied=True, pretraining=True),
    "replaced_token": HeadGraph(_replaced_token, pretraining=True),
    "sentence_pair": HeadGraph(_pooled_labels, first_only=True, pretraining=True),
    FEATURES: HeadGraph(_features),
}


def build_model(model: Model, head: str, *, quantized: bool = False) -> ModelProto:
    """The whole graph of a model and one of its heads."""
    row = head_graph(model, head)
    graph = GraphBuilder(quantized=quantized)
    shape: Shape = [B, T] if row.middle is None else [B, row.middle, T]
    inputs = dict.fromkeys(input_names(model.config), shape)
    flat = {name: _flat(graph, name, row) for name in inputs}
    encoder = EncoderGraph(graph, model.encoder)
    encoded = encoder.build(
        Inputs2D(flat[IDS], flat[MASK], flat.get(TYPES)), first_only=row.first_only, tied=row.tied
    )
    outputs = row.build(Context(graph, model, head, encoded, inputs))
    return graph.model(inputs, outputs)


def default_head(model: Model) -> str:
    """A task's head, else that of pretraining; of a sentence encoder without a task, features."""
    found = next((name for name in HEAD_GRAPHS if name in model.heads), FEATURES)
    apart = HEAD_GRAPHS[found].pretraining and model.sentence_encoder is not None
    return FEATURES if apart else found


def head_graph(model: Model, head: str) -> HeadGraph:
    """The row of a head that this model has."""
    if head not in HEAD_GRAPHS:
        raise SettingsError(
            f"a {head} head has no ONNX form; choose one of {', '.join(HEAD_GRAPHS)}"
        )
    if head != FEATURES:
        model.head(head)
    return HEAD_GRAPHS[head]


def _flat(graph: GraphBuilder, name: str, row: HeadGraph) -> str:
    """An input as (B, T): options and texts of a pair become sequences of their own."""
    if row.middle is None:
        return name
    length = graph.add("Slice", graph.add("Shape", name), graph.integers(2), graph.integers(3))
    shape = graph.add("Concat", graph.integers(-1), length, axis=0)
    return graph.add("Reshape", name, shape)

"""The exported graphs say what torch says, in onnxruntime: every kind of head, every family."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from litebert.convert.onnx_check import compared, example_feeds
from litebert.convert.onnx_heads import FEATURES, build_model
from litebert.model.config import EncoderConfig
from litebert.model.model import Model

BAR = 1e-4
SIZE: dict[str, Any] = {
    "vocab_size": 99, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 514, "num_hidden_layers": 4,
}  # fmt: skip
ALBERT = {"family": "albert", "embedding_size": 16}
UNSHARED = {"embedding_size": 32, "sharing": "none", "hidden_act": "gelu"}
ENCODERS: dict[str, dict[str, Any]] = {
    "albert": ALBERT,
    "albert-attention": {**ALBERT, "sharing": "attention"},
    "albert-ffn": {**ALBERT, "sharing": "ffn"},
    "albert-none": {**ALBERT, "sharing": "none", "hidden_act": "relu"},
    "albert-groups": {**ALBERT, "num_hidden_groups": 2, "inner_group_num": 2},
    "albert-e-is-h": {**ALBERT, "embedding_size": 32},
    "bert": {**UNSHARED, "family": "bert"},
    "roberta": {**UNSHARED, "family": "roberta", "type_vocab_size": 1, "pad_token_id": 1},
    "roberta-segments": {**UNSHARED, "family": "roberta", "type_vocab_size": 2, "pad_token_id": 1},
    "electra": {**UNSHARED, "family": "electra", "embedding_size": 16},
}
FAMILIES = ("albert", "bert", "roberta", "electra")
HEADS = (
    "classification", "mean_classification", "bi_encoder_classification", "token_classification",
    "multiple_choice", "span", "conditional_span", "masked_lm", "sentence_pair", "replaced_token",
)  # fmt: skip
LENGTHS = ((1, 1), (7, 3), (1, 37), (7, 64), (1, 512))


def make_model(config: EncoderConfig, heads: tuple[str, ...] = (), labels: int = 3) -> Model:
    """A model whose every parameter is random, norms and biases included."""
    model = Model.create(config, heads, [f"L{i}" for i in range(labels)], seed=1).eval()
    torch.manual_seed(0)
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            nn.init.normal_(parameter, std=0.15 if parameter.dim() > 1 else 0.1)
            if isinstance(module, nn.LayerNorm) and name == "weight":
                parameter.data.add_(1.0)
    return model.requires_grad_(False)


def open_graph(model: Model, head: str, **options: Any) -> onnxruntime.InferenceSession:
    content = build_model(model, head, **options).SerializeToString()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])


def differences(model: Model, head: str, session: Any, sequences: int, length: int) -> list[float]:
    names = [value.name for value in session.get_inputs()]
    feeds = example_feeds(model, head, names, sequences, length)
    pairs = compared(model, head, feeds, session.run(None, feeds))
    return [float(np.abs(mine - other).max(initial=0)) for mine, other in pairs]


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_of_every_family_and_sharing(name: str) -> None:
    model = make_model(EncoderConfig(**SIZE, **ENCODERS[name]))
    session = open_graph(model, FEATURES)
    for sequences, length in LENGTHS:
        assert max(differences(model, FEATURES, session, sequences, length)) <= BAR


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("family", FAMILIES)
def test_heads_of_every_kind(family: str, head: str) -> None:
    model = make_model(
        EncoderConfig(**{**SIZE, **ENCODERS[family], "num_hidden_layers": 2}), (head,)
    )
    session = open_graph(model, head)
    for sequences, length in LENGTHS:
        assert max(differences(model, head, session, sequences, length)) <= BAR


@pytest.mark.parametrize("head", [*HEADS, FEATURES])
def test_integers_stay_near(head: str) -> None:
    """Not random: within a few percent of the values' norm, whatever the head."""
    heads = () if head == FEATURES else (head,)
    model = make_model(EncoderConfig(**SIZE, **ALBERT), heads)
    session = open_graph(model, head, quantized=True)
    names = [value.name for value in session.get_inputs()]
    feeds = example_feeds(model, head, names, 7, 24)
    for mine, other in compared(model, head, feeds, session.run(None, feeds))[:1]:
        assert np.linalg.norm(mine - other) <= 0.1 * np.linalg.norm(other)

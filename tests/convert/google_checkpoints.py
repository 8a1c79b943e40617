"""Google's checkpoints of ALBERT and BERT, too small to train: names, shapes, random values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy

from litebert.convert.bundle import list_variables, read_variable, write_bundle

VOCABULARY, EMBEDDING, HIDDEN, INNER = 11, 4, 6, 10
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": INNER,
    "max_position_embeddings": 8,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.2,
    "initializer_range": 0.02,
}
ALBERT = SIZES | {"embedding_size": EMBEDDING, "num_hidden_groups": 1, "inner_group_num": 1}
Arrays = dict[str, numpy.ndarray]


def dense(name: str, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}/kernel": (inputs, outputs), f"{name}/bias": (outputs,)}


def norm(name: str, size: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}/gamma": (size,), f"{name}/beta": (size,)}


def embeddings(size: int) -> dict[str, tuple[int, ...]]:
    return {
        "bert/embeddings/word_embeddings": (VOCABULARY, size),
        "bert/embeddings/position_embeddings": (8, size),
        "bert/embeddings/token_type_embeddings": (2, size),
        **norm("bert/embeddings/LayerNorm", size),
    }


def block(attention: str, first: str, up: str, down: str, last: str) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for part in ("query", "key", "value"):
        shapes |= dense(f"{attention}/self/{part}", HIDDEN, HIDDEN)
    shapes |= dense(f"{attention}/output/dense", HIDDEN, HIDDEN) | norm(first, HIDDEN)
    return shapes | dense(up, HIDDEN, INNER) | dense(down, INNER, HIDDEN) | norm(last, HIDDEN)


def albert_shapes(groups: int = 1, inner: int = 1) -> dict[str, tuple[int, ...]]:
    shapes = embeddings(EMBEDDING) | dense("bert/pooler/dense", HIDDEN, HIDDEN)
    shapes |= dense("bert/encoder/embedding_hidden_mapping_in", EMBEDDING, HIDDEN)
    for group in range(groups):
        for number in range(inner):
            base = f"bert/encoder/transformer/group_{group}/inner_group_{number}"
            shapes |= block(
                f"{base}/attention_1",
                f"{base}/LayerNorm",
                f"{base}/ffn_1/intermediate/dense",
                f"{base}/ffn_1/intermediate/output/dense",
                f"{base}/LayerNorm_1",
            )
    return shapes


def bert_shapes() -> dict[str, tuple[int, ...]]:
    shapes = embeddings(HIDDEN) | dense("bert/pooler/dense", HIDDEN, HIDDEN)
    for layer in range(2):
        base = f"bert/encoder/layer_{layer}"
        shapes |= block(
            f"{base}/attention",
            f"{base}/attention/output/LayerNorm",
            f"{base}/intermediate/dense",
            f"{base}/output/dense",
            f"{base}/output/LayerNorm",
        )
    return shapes


def pretraining(size: int) -> dict[str, tuple[int, ...]]:
    return {
        **dense("cls/predictions/transform/dense", HIDDEN, size),
        **norm("cls/predictions/transform/LayerNorm", size),
        "cls/predictions/output_bias": (VOCABULARY,),
        "cls/seq_relationship/output_weights": (2, HIDDEN),
        "cls/seq_relationship/output_bias": (2,),
    }


CLASSIFIER = {"output_weights": (3, HIDDEN), "output_bias": (3,)}
CHOICE = {"output_weights": (1, HIDDEN), "output_bias": (1,)}
SQUAD = {"cls/squad/output_weights": (2, HIDDEN), "cls/squad/output_bias": (2,)}
SQUAD2 = {
    **dense("start_logits/dense", HIDDEN, 1),
    **dense("end_logits/dense_0", 2 * HIDDEN, HIDDEN),
    **norm("end_logits/LayerNorm", HIDDEN),
    **dense("end_logits/dense_1", HIDDEN, 1),
    **dense("answer_class/dense_0", 2 * HIDDEN, HIDDEN),
    "answer_class/dense_1/kernel": (HIDDEN, 1),
}


def values(shapes: dict[str, tuple[int, ...]], seed: int = 0) -> Arrays:
    source = numpy.random.default_rng(seed)
    return {name: source.normal(size=shape).astype("float32") for name, shape in shapes.items()}


def checkpoint(folder: Path, arrays: Arrays, settings: dict[str, Any], name: str) -> Path:
    write_bundle(folder / "model.ckpt-best", arrays)
    (folder / name).write_text(json.dumps({"hidden_act": "gelu"} | settings))
    return folder


def read_arrays(folder: Path) -> Arrays:
    prefix = folder / "model.ckpt"
    return {name: read_variable(prefix, entry) for name, entry in list_variables(prefix).items()}


def same(found: Arrays, expected: Arrays) -> bool:
    return found.keys() == expected.keys() and all(
        numpy.array_equal(found[name], expected[name]) for name in expected
    )

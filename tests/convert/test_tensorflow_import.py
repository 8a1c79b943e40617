"""Google's names and settings read: what becomes of each variable, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from litebert.base.errors import FileError, FormatError
from litebert.convert.bundle import write_bundle
from litebert.convert.tensorflow import read_checkpoint
from tests.convert.google_checkpoints import (
    ALBERT,
    CHOICE,
    EMBEDDING,
    HIDDEN,
    SIZES,
    SQUAD2,
    albert_shapes,
    bert_shapes,
    checkpoint,
    pretraining,
    values,
)


def pairs(*names: str) -> set[str]:
    return {f"{name}.{part}" for name in names for part in ("weight", "bias")}


def embedding_names(family: str) -> set[str]:
    tables = ("word_embeddings", "position_embeddings", "token_type_embeddings")
    norms = pairs(f"{family}.embeddings.LayerNorm")
    return {f"{family}.embeddings.{table}.weight" for table in tables} | norms


def albert_names(groups: int, inner: int) -> set[str]:
    """The state of transformers' AlbertForPreTraining, without the second names of tied tensors."""
    names = embedding_names("albert") | {"predictions.bias"}
    names |= pairs("albert.encoder.embedding_hidden_mapping_in", "albert.pooler")
    names |= pairs("predictions.dense", "predictions.LayerNorm", "sop_classifier.classifier")
    parts = "attention.query attention.key attention.value attention.dense attention.LayerNorm"
    for group in range(groups):
        for number in range(inner):
            base = f"albert.encoder.albert_layer_groups.{group}.albert_layers.{number}"
            for part in (*parts.split(), "ffn", "ffn_output", "full_layer_layer_norm"):
                names |= pairs(f"{base}.{part}")
    return names


def bert_names() -> set[str]:
    """The same of BertForPreTraining."""
    names = embedding_names("bert") | {"cls.predictions.bias"} | pairs("bert.pooler.dense")
    names |= pairs("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm")
    names |= pairs("cls.seq_relationship")
    attention = "self.query self.key self.value output.dense output.LayerNorm"
    parts = [f"attention.{part}" for part in attention.split()]
    for layer in range(2):
        for part in (*parts, "intermediate.dense", "output.dense", "output.LayerNorm"):
            names |= pairs(f"bert.encoder.layer.{layer}.{part}")
    return names


@pytest.mark.parametrize(("groups", "inner"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_albert_comes_out_under_the_names_of_transformers(
    tmp_path: Path, groups: int, inner: int
) -> None:
    arrays = values(albert_shapes(groups, inner) | pretraining(EMBEDDING))
    settings = ALBERT | {"num_hidden_groups": groups, "inner_group_num": inner}
    config, tensors = read_checkpoint(checkpoint(tmp_path, arrays, settings, "albert_config.json"))
    assert config == settings | {
        "model_type": "albert",
        "architectures": ["AlbertForPreTraining"],
        "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-12,
    }
    assert set(tensors) == albert_names(groups, inner)
    last = f"group_{groups - 1}/inner_group_{inner - 1}"
    own = f"albert.encoder.albert_layer_groups.{groups - 1}.albert_layers.{inner - 1}"
    kernel = arrays[f"bert/encoder/transformer/{last}/ffn_1/intermediate/dense/kernel"]
    assert numpy.array_equal(tensors[f"{own}.ffn.weight"].numpy(), kernel.T)
    gamma = arrays[f"bert/encoder/transformer/{last}/LayerNorm_1/gamma"]
    assert numpy.array_equal(tensors[f"{own}.full_layer_layer_norm.weight"].numpy(), gamma)
    table = arrays["bert/embeddings/word_embeddings"]
    assert numpy.array_equal(tensors["albert.embeddings.word_embeddings.weight"].numpy(), table)
    assert all(tensor.dtype == torch.float32 for tensor in tensors.values())


def test_bert_comes_out_under_the_names_of_transformers(tmp_path: Path) -> None:
    arrays = values(bert_shapes() | pretraining(HIDDEN))
    folder = checkpoint(tmp_path, arrays, SIZES | {"pooler_type": "first"}, "bert_config.json")
    config, tensors = read_checkpoint(folder)
    assert config["model_type"] == "bert"
    assert config["architectures"] == ["BertForPreTraining"]
    assert "pooler_type" not in config
    assert set(tensors) == bert_names()
    kernel = arrays["bert/encoder/layer_1/output/dense/kernel"]
    assert numpy.array_equal(tensors["bert.encoder.layer.1.output.dense.weight"].numpy(), kernel.T)
    head = arrays["cls/seq_relationship/output_weights"]
    assert numpy.array_equal(tensors["cls.seq_relationship.weight"].numpy(), head)


def test_the_head_of_squad_2_is_turned_the_right_way(tmp_path: Path) -> None:
    arrays = values(albert_shapes() | SQUAD2)
    _, tensors = read_checkpoint(checkpoint(tmp_path, arrays, ALBERT, "albert_config.json"))
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items() if "span" in name}
    assert shapes == {
        "conditional_span.start.weight": (1, HIDDEN),
        "conditional_span.start.bias": (1,),
        "conditional_span.end_hidden.weight": (HIDDEN, 2 * HIDDEN),
        "conditional_span.end_hidden.bias": (HIDDEN,),
        "conditional_span.end_norm.weight": (HIDDEN,),
        "conditional_span.end_norm.bias": (HIDDEN,),
        "conditional_span.end.weight": (1, HIDDEN),
        "conditional_span.end.bias": (1,),
        "conditional_span.answerable_hidden.weight": (HIDDEN, 2 * HIDDEN),
        "conditional_span.answerable_hidden.bias": (HIDDEN,),
        "conditional_span.answerable.weight": (1, HIDDEN),
    }


def test_one_output_can_be_a_regression(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, values(albert_shapes() | CHOICE), ALBERT, "albert_config.json")
    config, _ = read_checkpoint(folder, regression=True)
    assert config["architectures"] == ["AlbertForSequenceClassification"]
    assert config["id2label"] == {"0": "LABEL_0"}


def test_hub_prefixes_and_the_state_of_training_are_dropped(tmp_path: Path) -> None:
    arrays = values(albert_shapes())
    stored = {f"module/{name}": array for name, array in arrays.items()}
    for ending in ("adam_m", "adam_v", "LAMB", "LAMB_1", "AdamWeightDecayOptimizer_1", "Adam"):
        stored[f"module/bert/pooler/dense/kernel/{ending}"] = numpy.zeros((6, 6), "float32")
    stored |= {"global_step": numpy.array(7, "int64"), "beta1_power": numpy.array(0.9, "float32")}
    _, plain = read_checkpoint(checkpoint(tmp_path, arrays, ALBERT, "albert_config.json"))
    _, found = read_checkpoint(checkpoint(tmp_path, stored, ALBERT, "albert_config.json"))
    assert found.keys() == plain.keys()
    assert all(torch.equal(found[name], plain[name]) for name in plain)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("bert/embeddings/word_embeddings_2", "word_embeddings_2"),
        (
            "bert/encoder/transformer/group_0_2/layer_2/inner_group_0/layer_normalization_5/beta",
            "#241",
        ),
        ("module/bert/pooler/dense/bias", "twice"),
        ("bert/encoder/transformer/group_0/inner_group_0/adam_mode", "adam_mode"),
    ],
)
def test_unknown_variables_are_named(tmp_path: Path, extra: str, message: str) -> None:
    arrays = values(albert_shapes()) | {extra: numpy.zeros(HIDDEN, "float32")}
    with pytest.raises(FormatError, match=message):
        read_checkpoint(checkpoint(tmp_path, arrays, ALBERT, "albert_config.json"))


def test_other_models_and_kernels_of_other_ranks_are_named(tmp_path: Path) -> None:
    arrays = {"electra/encoder/layer_0/kernel": numpy.zeros((2, 2), "float32")}
    with pytest.raises(FormatError, match="ALBERT or BERT"):
        read_checkpoint(checkpoint(tmp_path, arrays, ALBERT, "albert_config.json"))
    arrays = values(albert_shapes() | {"bert/pooler/dense/kernel": (2, 3, 6)})
    with pytest.raises(FormatError, match="shape"):
        read_checkpoint(checkpoint(tmp_path, arrays, ALBERT, "albert_config.json"))


def test_the_ways_to_name_a_checkpoint(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, values(bert_shapes()), SIZES, "my_bert_config_v2.json")
    names = ("", "model.ckpt-best", "model.ckpt-best.index", "model.ckpt-best.data-00000-of-00001")
    results = [read_checkpoint(folder / name)[1] for name in names]
    write_bundle(folder / "model.ckpt-9", values(bert_shapes(), seed=1))
    with pytest.raises(FileError, match=r"model\.ckpt-9, model\.ckpt-best"):
        read_checkpoint(folder)
    note = 'model_checkpoint_path: "/gone/model.ckpt-best"\nall_model_checkpoint_paths: "x"\n'
    (folder / "checkpoint").write_text(note)
    results.append(read_checkpoint(folder)[1])
    first = results[0]
    assert all(torch.equal(result[name], first[name]) for result in results for name in first)


def test_a_folder_without_checkpoint_or_config_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="found none"):
        read_checkpoint(tmp_path)
    write_bundle(tmp_path / "model.ckpt", values(bert_shapes()))
    with pytest.raises(FileError, match=r"bert_config\.json"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_act": "swish"}, "swish"),
        ({"hidden_act": ["gelu"]}, "hidden_act"),
        ({"net_structure_type": 1}, "net_structure_type"),
        ({"vocab_size": None}, "vocab_size"),
    ],
)
def test_settings_that_are_not_read(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    settings = {"hidden_act": "gelu"} | ALBERT | change
    settings = {key: value for key, value in settings.items() if value is not None}
    folder = checkpoint(tmp_path, values(albert_shapes()), settings, "albert_config.json")
    with pytest.raises(FormatError, match=message):
        read_checkpoint(folder)

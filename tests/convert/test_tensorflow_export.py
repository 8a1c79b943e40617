"""Google's names and settings written, and read again: the same tensors, or a refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from litebert.base.errors import FormatError
from litebert.convert.tensorflow import read_checkpoint, write_checkpoint
from tests.convert.google_checkpoints import (
    ALBERT,
    CHOICE,
    CLASSIFIER,
    EMBEDDING,
    HIDDEN,
    SIZES,
    SQUAD,
    SQUAD2,
    VOCABULARY,
    albert_shapes,
    bert_shapes,
    checkpoint,
    pretraining,
    read_arrays,
    same,
    values,
)


@pytest.mark.parametrize(
    ("head", "family", "architecture", "names"),
    [
        (CLASSIFIER, "albert", "AlbertForSequenceClassification", {"classifier"}),
        (CLASSIFIER, "bert", "BertForSequenceClassification", {"classifier"}),
        (CHOICE, "albert", "AlbertForMultipleChoice", {"classifier"}),
        (SQUAD, "albert", "AlbertForQuestionAnswering", {"qa_outputs"}),
        (SQUAD, "bert", "BertForQuestionAnswering", {"qa_outputs"}),
        (SQUAD2, "albert", "AlbertModel", {"conditional_span"}),
        ({}, "albert", "AlbertModel", set()),
        ({}, "bert", "BertModel", set()),
    ],
)
def test_heads_there_and_back(
    tmp_path: Path,
    head: dict[str, tuple[int, ...]],
    family: str,
    architecture: str,
    names: set[str],
) -> None:
    shapes = albert_shapes() if family == "albert" else bert_shapes()
    arrays = values(shapes | head)
    settings = ALBERT if family == "albert" else SIZES
    folder = checkpoint(tmp_path, arrays, settings, f"{family}_config.json")
    config, tensors = read_checkpoint(folder)
    assert config["architectures"] == [architecture]
    assert {name.split(".")[0] for name in tensors} == {family} | names
    assert len(config.get("id2label", {})) == (3 if head is CLASSIFIER else 0)
    (tmp_path / "back").mkdir()
    write_checkpoint(tmp_path / "back", config, tensors)
    assert same(read_arrays(tmp_path / "back"), arrays)
    google = json.loads((tmp_path / "back" / f"{family}_config.json").read_text())
    assert google["hidden_act"] == "gelu"
    assert settings.items() <= google.items()
    again, tensors_again = read_checkpoint(tmp_path / "back")
    assert again == config
    assert all(torch.equal(tensors_again[name], tensors[name]) for name in tensors)


def test_chinese_albert_keeps_its_relu(tmp_path: Path) -> None:
    settings = ALBERT | {"hidden_act": "relu"}
    config, tensors = read_checkpoint(
        checkpoint(tmp_path, values(albert_shapes()), settings, "albert_config.json")
    )
    assert config["hidden_act"] == "relu"
    write_checkpoint(tmp_path, config, tensors)
    assert json.loads((tmp_path / "albert_config.json").read_text())["hidden_act"] == "relu"


@pytest.fixture
def model(tmp_path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    arrays = values(albert_shapes() | pretraining(EMBEDDING))
    return read_checkpoint(checkpoint(tmp_path, arrays, ALBERT, "albert_config.json"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_act": "gelu"}, "tanh form"),
        ({"layer_norm_eps": 1e-5}, "1e-12"),
        ({"model_type": "roberta"}, "roberta"),
        ({"architectures": ["AlbertForTokenClassification"]}, "AlbertForTokenClassification"),
    ],
)
def test_settings_that_google_cannot_express(
    tmp_path: Path,
    model: tuple[dict[str, Any], dict[str, torch.Tensor]],
    change: dict[str, Any],
    message: str,
) -> None:
    config, tensors = model
    with pytest.raises(FormatError, match=message):
        write_checkpoint(tmp_path, config | change, tensors)


def test_tensors_that_google_does_not_have(
    tmp_path: Path, model: tuple[dict[str, Any], dict[str, torch.Tensor]]
) -> None:
    config, tensors = model
    with pytest.raises(FormatError, match="span_boundary"):
        write_checkpoint(tmp_path, config, tensors | {"span_boundary.weight": torch.zeros(1)})
    untied = {"predictions.decoder.weight": torch.zeros(VOCABULARY, EMBEDDING)}
    with pytest.raises(FormatError, match="ties"):
        write_checkpoint(tmp_path, config, tensors | untied)


def test_tied_names_buffers_and_bare_models_are_understood(
    tmp_path: Path, model: tuple[dict[str, Any], dict[str, torch.Tensor]]
) -> None:
    config, tensors = model
    write_checkpoint(tmp_path, config, tensors)
    expected = read_arrays(tmp_path)
    saved = {name.removeprefix("albert."): tensor for name, tensor in tensors.items()}
    saved["predictions.decoder.weight"] = saved["embeddings.word_embeddings.weight"]
    saved["predictions.decoder.bias"] = saved.pop("predictions.bias")
    saved["embeddings.position_ids"] = torch.arange(8)
    write_checkpoint(tmp_path, config, saved)
    assert same(read_arrays(tmp_path), expected)


def test_an_identity_map_is_left_out_and_another_refused(
    tmp_path: Path, model: tuple[dict[str, Any], dict[str, torch.Tensor]]
) -> None:
    config, tensors = model
    name = "albert.encoder.embedding_hidden_mapping_in"
    config = config | {"embedding_size": HIDDEN}
    square = tensors | {f"{name}.weight": torch.eye(HIDDEN), f"{name}.bias": torch.zeros(HIDDEN)}
    write_checkpoint(tmp_path, config, square)
    assert not [key for key in read_arrays(tmp_path) if "mapping" in key]
    assert not [key for key in read_checkpoint(tmp_path / "model.ckpt")[1] if "mapping" in key]
    for change in ({f"{name}.bias": torch.ones(HIDDEN)}, {f"{name}.weight": -torch.eye(HIDDEN)}):
        with pytest.raises(FormatError, match="not the identity"):
            write_checkpoint(tmp_path, config, square | change)


@pytest.mark.filterwarnings("ignore")
def test_real_tensorflow_agrees(
    tmp_path: Path, model: tuple[dict[str, Any], dict[str, torch.Tensor]]
) -> None:
    """TensorFlow reads what we write, and we read what its Saver writes."""
    tensorflow = pytest.importorskip("tensorflow")
    v1 = tensorflow.compat.v1
    config, tensors = model
    (tmp_path / "ours").mkdir()
    write_checkpoint(tmp_path / "ours", config, tensors)
    reader = tensorflow.train.load_checkpoint(str(tmp_path / "ours" / "model.ckpt"))
    arrays = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    assert same(arrays, read_arrays(tmp_path / "ours"))

    (tmp_path / "theirs").mkdir()
    with tensorflow.Graph().as_default(), v1.Session() as session:
        for name, array in arrays.items():
            v1.get_variable(name, initializer=array)
            v1.get_variable(f"{name}/adam_m", initializer=numpy.zeros_like(array))
        v1.get_variable("global_step", initializer=numpy.array(3, "int64"))
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(tmp_path / "theirs" / "model.ckpt"), global_step=3)
    google = (tmp_path / "ours" / "albert_config.json").read_text()
    (tmp_path / "theirs" / "albert_config.json").write_text(google)
    config_back, tensors_back = read_checkpoint(tmp_path / "theirs")
    assert config_back == config
    assert tensors_back.keys() == tensors.keys()
    assert all(torch.equal(tensors_back[name], tensors[name]) for name in tensors)
    print(f"TensorFlow {tensorflow.__version__}: {len(tensors)} tensors equal in both directions")

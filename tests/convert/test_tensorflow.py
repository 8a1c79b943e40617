"""Google's names and settings, both directions, on checkpoints too small to train."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from litebert.base.errors import FileError, FormatError
from litebert.convert.bundle import list_variables, read_variable, write_bundle
from litebert.convert.tensorflow import read_checkpoint, write_checkpoint

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

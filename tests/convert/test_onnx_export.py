"""`litebert export --format onnx`: the folder, what is checked, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch import nn

import litebert
from litebert.base.errors import LitebertError, MissingExtraError, SettingsError
from litebert.convert.onnx_check import check_file
from litebert.convert.onnx_graph import LARGEST_WEIGHT, GraphBuilder, quantize_columns
from litebert.convert.onnx_heads import build_model
from litebert.convert.onnx_score import Exam
from litebert.inference.embed import embed_texts
from litebert.inference.run import predict_examples
from litebert.model.config import EncoderConfig
from litebert.model.model import Model
from litebert.model.sentence_encoder import SentenceEncoderSettings, read_sentence_encoder
from litebert.tasks.registry import build_task
from litebert.text.tokenizer import load_tokenizer
from tests.convert.test_onnx_parity import ALBERT, ENCODERS, SIZE, make_model
from tests.tasks.small import TASKS, recipe, sentence, write_start
from tests.test_cli import run


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("start"))


@pytest.fixture(scope="module")
def tuned(start: Path) -> Path:
    """A classifier of two labels, not trained."""
    settings, _, _ = TASKS["classify"]
    model = make_model(Model.load(start).config, ("classification",), 2)
    model.labels = settings.labels
    model.metadata["litebert_task"] = settings.model_dump(mode="json")
    model.save(start.parent / "tuned", tokenizer=start)
    return start.parent / "tuned"


@pytest.mark.parametrize("name", TASKS)
def test_every_kind_decodes_what_a_file_says(name: str, start: Path, tmp_path: Path) -> None:
    settings, examples, _ = TASKS[name]
    task = build_task(settings).configured(recipe(name).model_dump(), examples, lambda _: None)
    model = make_model(Model.load(start).config, (task.head,), max(1, len(settings.labels)))
    features = task.features(examples, load_tokenizer(start))
    (tmp_path / "m.onnx").write_bytes(build_model(model, task.head).SerializeToString())
    exam = Exam(task, examples, features, model.config.pad_token_id)
    expected = predict_examples(task, model, examples, features, precision="fp32")
    for mine, other in zip(exam.predict(tmp_path / "m.onnx"), expected, strict=True):
        assert _rounded(mine.to_json()) == _rounded(other.to_json())
    assert set(exam.score(tmp_path / "m.onnx")) == set(task.settings.metrics)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, tuple | list) else value


def test_the_folder_and_what_is_said(
    tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "dev.csv"
    data.write_text(f"text,label\n{sentence(1)},yes\n{sentence(2)},no\n")
    out = tmp_path / "web"
    assert run(monkeypatch, "export", tuned, out, "--format", "onnx", "--check", data) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if "11 products with weights, all of floats" in line]
    assert [line for line in said if "11 products with weights, all of integers" in line]
    assert all("accuracy" in line for line in said if "model" in line.split(":")[0])
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert files == {
        "README.md", "config.json", "manifest.json", "onnx/model.onnx",
        "onnx/model_quantized.onnx", "tokenizer.json", "tokenizer_config.json", "vocab.txt",
    }  # fmt: skip
    config = json.loads((out / "config.json").read_text())
    assert config["architectures"] == ["AlbertForSequenceClassification"]
    assert config["id2label"] == {"0": "no", "1": "yes"}
    tokenizer = json.loads((out / "tokenizer_config.json").read_text())
    assert tokenizer["tokenizer_class"] == "BertTokenizer"  # or transformers.js has no segments


def test_labels_of_mean_pooling_are_told_as_transformers_tells_them(tmp_path: Path) -> None:
    make_model(EncoderConfig(**SIZE, **ALBERT), ("mean_classification",), 3).save(tmp_path / "m")
    litebert.export_model(tmp_path / "m", tmp_path / "out", "onnx", precision="int8")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["architectures"] == ["AlbertForSequenceClassification"]
    assert config["id2label"] == {"0": "L0", "1": "L1", "2": "L2"}
    assert [path.name for path in (tmp_path / "out" / "onnx").iterdir()] == ["model_quantized.onnx"]


def test_a_pretrained_folder_fills_masks_or_gives_features(start: Path, tmp_path: Path) -> None:
    for head, outputs in ((None, "logits"), ("features", "last_hidden_state")):
        out = tmp_path / str(head)
        litebert.export_model(start, out, "onnx", precision="fp32", head=head)
        session = onnxruntime.InferenceSession(out / "onnx" / "model.onnx")
        assert [value.name for value in session.get_outputs()] == [outputs]
        assert [value.name for value in session.get_inputs()] == [
            "input_ids", "attention_mask", "token_type_ids",
        ]  # fmt: skip


@pytest.mark.parametrize(("pooling", "normalize"), [("mean", True), ("first", False)])
def test_a_sentence_encoder_gives_its_vectors(
    pooling: Any, normalize: bool, start: Path, tmp_path: Path
) -> None:
    model = make_model(Model.load(start).config, ("masked_lm",))
    model.sentence_encoder = SentenceEncoderSettings(pooling=pooling, normalize=normalize)
    model.save(tmp_path / "model", tokenizer=start)
    litebert.export_model(tmp_path / "model", tmp_path / "out", "onnx")
    session = onnxruntime.InferenceSession(tmp_path / "out" / "onnx" / "model.onnx")
    assert [value.name for value in session.get_outputs()] == [
        "last_hidden_state", "sentence_embedding",
    ]  # fmt: skip
    assert read_sentence_encoder(tmp_path / "out") == read_sentence_encoder(tmp_path / "model")
    tokenizer = load_tokenizer(start)
    ids = np.array([[tokenizer.special.cls, *tokenizer.encode(sentence(1)), tokenizer.special.sep]])
    feeds = {"input_ids": ids, "attention_mask": ids**0, "token_type_ids": ids * 0}
    expected = embed_texts(model, tokenizer, [sentence(1)])
    assert (abs(np.linalg.norm(expected) - 1) < 1e-5) == normalize
    assert np.abs(session.run(["sentence_embedding"], feeds)[0] - expected).max() <= 1e-5


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("head", ["classification", "masked_lm"])
def test_depth_adds_no_weights(head: str, quantized: bool) -> None:
    def stored(depth: int) -> dict[str, int]:
        config = EncoderConfig(**{**SIZE, **ALBERT, "num_hidden_layers": depth})
        graph = build_model(Model.create(config, (head,)), head, quantized=quantized).graph
        operators = {node.op_type for node in graph.node if node.input[0] in names(graph)}
        assert "Transpose" not in operators
        return {tensor.name: len(tensor.raw_data) for tensor in graph.initializer}

    def names(graph: Any) -> set[str]:
        return {tensor.name for tensor in graph.initializer}

    assert stored(12) == stored(1)


@pytest.mark.parametrize("family", ["albert-none", "bert", "roberta", "electra"])
def test_unshared_weights_are_all_there(family: str, tmp_path: Path) -> None:
    model = make_model(EncoderConfig(**SIZE, **ENCODERS[family]), ("classification",), 3)
    for quantized in (False, True):
        graph = build_model(model, "classification", quantized=quantized)
        onnx.checker.check_model(graph, full_check=True)
        (tmp_path / "m.onnx").write_bytes(graph.SerializeToString())
        found = check_file(model, "classification", tmp_path / "m.onnx", "m", quantized=quantized)
        assert found.products == 16 + (model.config.has_projection) + 2


@pytest.mark.parametrize(
    ("width", "heads"),
    [(768, 12), pytest.param(4096, 64, marks=pytest.mark.extra)],
    ids=["base", "xxlarge"],
)
def test_sizes_of_files(width: int, heads: int) -> None:
    config = EncoderConfig(
        hidden_size=width, num_attention_heads=heads, intermediate_size=4 * width
    )
    model = Model.skeleton(config, ("classification",))
    ones = {name: torch.ones(1).expand(t.shape) for name, t in model.state_dict().items()}
    model.load_state_dict(ones, assign=True)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    size = build_model(model, "classification").ByteSize()
    assert size <= 1.02 * 4 * parameters
    if width == 768:
        assert size <= 48.5e6
        assert build_model(model, "classification", quantized=True).ByteSize() <= 13.5e6


# ------------------------------------------------------------------------------ integers


@given(arrays.arrays(np.float32, (5, 4), elements=st.floats(-1e4, 1e4, width=32)))
def test_columns_come_back_within_half_a_step(matrix: np.ndarray) -> None:
    integers, scales = quantize_columns(matrix)
    assert integers.dtype == np.int8
    assert np.abs(integers).max() <= LARGEST_WEIGHT
    assert (np.abs(integers * scales - matrix) <= 0.501 * scales + 1e-30).all()


def test_extreme_activations_do_not_saturate() -> None:
    """All products at their largest: what overflows 16 bits where two are added without VNNI."""
    layer = nn.Linear(512, 8)
    nn.init.ones_(layer.weight)
    nn.init.zeros_(layer.bias)
    graph = GraphBuilder(quantized=True)
    value = graph.linear(graph.float("x"), "layer", layer)
    content = graph.model({"x": ["n", 512]}, {"y": (value, ["n", 8])}).SerializeToString()
    session = onnxruntime.InferenceSession(content)
    x = np.full((3, 512), 1000, np.int64)
    assert np.allclose(session.run(None, {"x": x})[0], 512_000, rtol=1e-3)
    # What such a CPU adds in 16 bits, two products of u8 and s8, stays inside.
    assert 2 * 255 * LARGEST_WEIGHT < 2**15


# ------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"precision": "int9"}, "did you mean 'int8'"),
        ({"head": "span_boundary"}, "has no ONNX form"),
        ({"head": "span"}, "no span head"),
        ({"head": "features", "check": "dev.csv"}, "answered by its classification head"),
        ({"check": "nowhere.csv"}, "nowhere.csv"),
        ({"format": "huggingface", "head": "features"}, "--format onnx"),
        ({"format": "tensorflow", "check": "dev.csv"}, "--format onnx"),
    ],
)
def test_mistakes(options: dict[str, Any], words: str, tuned: Path, tmp_path: Path) -> None:
    with pytest.raises(LitebertError, match=words) as caught:
        litebert.export_model(tuned, tmp_path / "out", **{"format": "onnx", **options})
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_task_cannot_be_scored(start: Path, tmp_path: Path) -> None:
    with pytest.raises(LitebertError, match="not a"):
        litebert.export_model(start, tmp_path / "out", "onnx", check="dev.csv")


def test_a_graph_that_differs_is_not_written(
    tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("litebert.convert.onnx_check.LARGEST_DIFFERENCE", -1.0)
    with pytest.raises(LitebertError, match="differs from the model by"):
        litebert.export_model(tuned, tmp_path / "out", "onnx")
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra(tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    litebert.export_model(tuned, tmp_path / "out", "onnx", say=said.append)
    assert all("not compared with torch" in line for line in said)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"litebert\[onnx\]"):
        litebert.export_model(tuned, tmp_path / "again", "onnx")
    with pytest.raises(SettingsError):
        litebert.export_model(tuned, tmp_path / "again", "onnx", precision="")

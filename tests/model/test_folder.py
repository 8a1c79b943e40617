"""The model folder: what is saved is what is loaded, and it is saved whole or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

import litebert
from litebert.base.errors import FileError, FormatError
from litebert.model.folder import CONFIG, EXTRA_WEIGHTS, INDEX, TOKENIZER_FILES, WEIGHTS
from litebert.model.heads import HEADS
from tests.parity.families import build, config

FAMILIES = ("albert", "bert", "roberta", "electra")
TINY: dict[str, Any] = {
    "vocab_size": 23,
    "embedding_size": 8,
    "hidden_size": 12,
    "num_hidden_layers": 6,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 10,
}
LABELS = ("no", "yes", "maybe")


def tiny(family: str = "albert", **changes: Any) -> litebert.EncoderConfig:
    values = TINY | {"family": family}
    if family in ("bert", "roberta"):
        values["embedding_size"] = values["hidden_size"]
    if family != "albert":
        values["sharing"] = "none"
    return litebert.EncoderConfig(**values | changes)


def random_model(encoder: litebert.EncoderConfig, *heads: str, seed: int = 0) -> litebert.Model:
    """Every number is random, biases and norms too, so that no two tensors can be confused."""
    model = litebert.Model.create(encoder, heads, LABELS, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.data.normal_(generator=generator)
    return model


def assert_same_tensors(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor), name


def assert_same_model(found: litebert.Model, expected: litebert.Model) -> None:
    assert found.config == expected.config
    assert found.labels == expected.labels
    assert set(found.heads) == set(expected.heads)
    assert_same_tensors(found.state_dict(), expected.state_dict())


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("head", [None, *HEADS])
def test_every_head_comes_back(family: str, head: str | None, tmp_path: Path) -> None:
    model = random_model(tiny(family), *([head] if head else []))
    model.save(tmp_path / "saved")
    assert_same_model(litebert.load(tmp_path / "saved"), model)


@pytest.mark.parametrize(
    "heads",
    [
        ("masked_lm", "span_boundary"),
        ("masked_lm", "sentence_pair", "conditional_span"),
        ("classification", "token_classification"),
        ("span", "conditional_span", "multiple_choice"),
        tuple(HEADS),
    ],
    ids="+".join,
)
@pytest.mark.parametrize("family", FAMILIES)
def test_heads_come_back_together(family: str, heads: tuple[str, ...], tmp_path: Path) -> None:
    model = random_model(tiny(family), *heads)
    model.save(tmp_path / "saved")
    assert_same_model(litebert.load(tmp_path / "saved"), model)


@pytest.mark.parametrize("head", ["span_boundary", "conditional_span"])
def test_heads_that_transformers_lacks_lie_in_the_second_file(head: str, tmp_path: Path) -> None:
    model = random_model(tiny(), "masked_lm", head)
    model.save(tmp_path / "saved")
    own = {
        name: tensor for name, tensor in model.state_dict().items()
        if name.startswith(f"heads.{head}.") or name.startswith("pooler.")
    }  # fmt: skip
    assert_same_tensors(load_file(tmp_path / "saved" / EXTRA_WEIGHTS), own)
    first = load_file(tmp_path / "saved" / WEIGHTS)
    assert not [name for name in first if head in name]
    assert json.loads((tmp_path / "saved" / CONFIG).read_text())["architectures"] == [
        "AlbertForMaskedLM"
    ]


def test_without_such_heads_there_is_no_second_file(tmp_path: Path) -> None:
    random_model(tiny(), "masked_lm", "sentence_pair").save(tmp_path / "saved")
    assert sorted(files(tmp_path / "saved")) == [
        "README.md", CONFIG, "manifest.json", WEIGHTS
    ]  # fmt: skip


@pytest.mark.parametrize("sharing", ["all", "attention", "ffn", "none"])
@pytest.mark.parametrize(("groups", "inner"), [(1, 1), (3, 1), (1, 2), (4, 2)])
@pytest.mark.parametrize("width", [8, 12], ids=["E<H", "E=H"])
def test_every_sharing_comes_back(
    sharing: str, groups: int, inner: int, width: int, tmp_path: Path
) -> None:
    encoder = tiny(
        sharing=sharing, num_hidden_groups=groups, inner_group_num=inner, embedding_size=width
    )
    model = random_model(encoder, "masked_lm")
    model.save(tmp_path / "saved")
    again = litebert.load(tmp_path / "saved")
    assert_same_model(again, model)
    ids = torch.arange(10).view(2, 5)
    with torch.no_grad():
        assert torch.equal(again(ids).x_NH, model.train(False)(ids).x_NH)


def test_a_pair_of_numbers_where_transformers_rounds_comes_back(tmp_path: Path) -> None:
    model = random_model(tiny(num_hidden_layers=18, num_hidden_groups=14))
    model.save(tmp_path / "saved")
    assert_same_model(litebert.load(tmp_path / "saved"), model)


def test_a_real_square_map_comes_back(tmp_path: Path) -> None:
    model = random_model(tiny(embedding_size=12, projection=True))
    model.save(tmp_path / "saved")
    again = litebert.load(tmp_path / "saved")
    assert "encoder.projection.weight" in again.state_dict()
    assert_same_model(again, model)


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_act": "gelu"},
        {"hidden_act": "relu"},
        {"layer_norm_eps": 1e-5, "initializer_range": 0.5},
        {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.3},
        {"classifier_dropout_prob": 0.4, "pad_token_id": 7, "type_vocab_size": 5},
    ],
    ids=lambda changes: ",".join(changes),
)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_setting_comes_back(family: str, changes: dict[str, Any], tmp_path: Path) -> None:
    model = random_model(tiny(family, **changes))
    model.save(tmp_path / "saved")
    again = litebert.load(tmp_path / "saved")
    assert again.config == model.config
    for key, value in changes.items():
        assert getattr(again.config, key) == value


def test_the_manifest_lists_every_file(tmp_path: Path) -> None:
    random_model(tiny(), "span_boundary").save(tmp_path / "saved")
    there = files(tmp_path / "saved")
    manifest = json.loads(there.pop("manifest.json"))
    assert manifest["files"] == {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in there.items()
    }
    assert {CONFIG, WEIGHTS, EXTRA_WEIGHTS, "README.md"} == set(there)


def test_saving_twice_writes_the_same_bytes(tmp_path: Path) -> None:
    model = random_model(tiny(), "masked_lm", "span_boundary")
    for name in ("one", "two"):
        model.save(tmp_path / name)
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_saving_over_a_model_must_be_asked_for(tmp_path: Path) -> None:
    old, new = (random_model(tiny(), "masked_lm", seed=seed) for seed in (1, 2))
    old.save(tmp_path / "saved")
    before = files(tmp_path / "saved")
    with pytest.raises(FileError, match="saved: already exists"):
        new.save(tmp_path / "saved")
    assert files(tmp_path / "saved") == before
    new.save(tmp_path / "saved", overwrite=True)
    assert_same_model(litebert.load(tmp_path / "saved"), new)
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


@pytest.mark.parametrize(
    "step",
    [
        "litebert.model.folder.write_json",
        "litebert.model.folder.write_tensors",
        "litebert.base.files.write_manifest",
        "os.fsync",
    ],
)
@pytest.mark.parametrize("there", [True, False], ids=["over an old one", "fresh"])
def test_a_save_that_fails_leaves_what_was(
    step: str, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if there:
        random_model(tiny(), seed=1).save(tmp_path / "saved")
    before = files(tmp_path / "saved") if there else {}

    def fail(*_: object) -> None:
        raise RuntimeError("in the middle")

    monkeypatch.setattr(step, fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        random_model(tiny(), seed=2).save(tmp_path / "saved", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == (["saved"] if there else [])
    assert (files(tmp_path / "saved") if there else {}) == before


# ---------------------------------------------------------------------------- folders of others


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ALBERT that transformers saved."""
    folder = tmp_path_factory.mktemp("foreign") / "albert"
    build("AlbertForPreTraining", config("albert")).save_pretrained(folder)
    return folder


@pytest.fixture
def copy(foreign: Path, tmp_path: Path) -> Path:
    """A copy of it to change."""
    return Path(shutil.copytree(foreign, tmp_path / "copy"))


def rewrite(folder: Path, change: Callable[[str, Tensor], tuple[str, Tensor]]) -> None:
    tensors = load_file(folder / WEIGHTS)
    changed = dict(change(name, tensor) for name, tensor in tensors.items())
    save_file(changed, folder / WEIGHTS, metadata={"format": "pt"})


def test_parts_listed_in_an_index_are_one_model(foreign: Path, tmp_path: Path) -> None:
    theirs = transformers.AlbertForPreTraining.from_pretrained(foreign)
    theirs.save_pretrained(tmp_path / "parts", max_shard_size="20KB")
    parts = list((tmp_path / "parts").glob("model-*.safetensors"))
    assert len(parts) > 1
    assert (tmp_path / "parts" / INDEX).exists()
    assert not (tmp_path / "parts" / WEIGHTS).exists()
    assert_same_model(litebert.load(tmp_path / "parts"), litebert.load(foreign))


def test_a_missing_part_is_named(foreign: Path, tmp_path: Path) -> None:
    theirs = transformers.AlbertForPreTraining.from_pretrained(foreign)
    theirs.save_pretrained(tmp_path / "parts", max_shard_size="20KB")
    gone = sorted((tmp_path / "parts").glob("model-*.safetensors"))[-1]
    gone.unlink()
    with pytest.raises(FileError, match="no such file") as caught:
        litebert.load(tmp_path / "parts")
    assert str(gone) in str(caught.value)


def test_old_names_of_norms_are_read(foreign: Path, copy: Path) -> None:
    renamed = []

    def old(name: str, tensor: Tensor) -> tuple[str, Tensor]:
        if "LayerNorm." in name:
            renamed.append(name)
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
            name = name.replace("LayerNorm.bias", "LayerNorm.beta")
        return name, tensor

    rewrite(copy, old)
    assert len(renamed) == 6  # of the embeddings, of attention, of the head
    assert_same_model(litebert.load(copy), litebert.load(foreign))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions_are_read_as_float32(
    dtype: torch.dtype, foreign: Path, copy: Path
) -> None:
    rewrite(copy, lambda name, tensor: (name, tensor.to(dtype)))
    expected = {
        name: tensor.to(dtype).to(torch.float32)
        for name, tensor in litebert.load(foreign).state_dict().items()
    }
    assert_same_tensors(litebert.load(copy).state_dict(), expected)


def test_old_position_buffers_are_left_behind(foreign: Path, copy: Path) -> None:
    tensors = load_file(copy / WEIGHTS)
    tensors["albert.embeddings.position_ids"] = torch.arange(514)[None]
    save_file(tensors, copy / WEIGHTS)
    assert_same_model(litebert.load(copy), litebert.load(foreign))


def test_tokenizer_files_come_along_and_others_do_not(copy: Path, tmp_path: Path) -> None:
    expected = {name: f"content of {name}".encode() for name in TOKENIZER_FILES}
    others = ("notes.txt", "training_args.bin", "modeling_custom.py")
    for name, content in expected.items():
        (copy / name).write_bytes(content)
    for name in others:
        (copy / name).write_bytes(b"stays")
    litebert.import_model(copy, tmp_path / "ours")
    litebert.export_model(tmp_path / "ours", tmp_path / "out")
    litebert.export_model(tmp_path / "ours", tmp_path / "google", "tensorflow")
    litebert.import_model(tmp_path / "google", tmp_path / "back")
    for folder in ("ours", "out", "google", "back"):
        there = files(tmp_path / folder)
        assert {name: there.get(name) for name in expected} == expected
        assert set(there).isdisjoint(others)
        assert set(expected) <= set(json.loads(there["manifest.json"])["files"])


def test_unknown_keys_survive_import_and_export(copy: Path, tmp_path: Path) -> None:
    unknown = {
        "my_note": "kept", "nested": {"a": [1, None, 2.5]}, "bos_token_id": 17,
        "task_specific_params": {"x": {"y": True}},
    }  # fmt: skip
    raw = json.loads((copy / CONFIG).read_text()) | unknown
    (copy / CONFIG).write_text(json.dumps(raw))
    litebert.import_model(copy, tmp_path / "ours")
    litebert.export_model(tmp_path / "ours", tmp_path / "out")
    written = json.loads((tmp_path / "out" / CONFIG).read_text())
    assert {key: written.get(key) for key in unknown} == unknown
    assert {key: written.get(key) for key in raw} == raw


def test_labels_given_anew_in_transformers_are_read(tmp_path: Path) -> None:
    """transformers carries our key along in config.json; what it says itself counts."""
    random_model(tiny(), "masked_lm", "sentence_pair").save(tmp_path / "ours")
    names = dict(enumerate(("red", "green", "blue", "grey")))
    theirs = transformers.AlbertForSequenceClassification.from_pretrained(
        tmp_path / "ours", id2label=names, label2id={name: i for i, name in names.items()}
    )
    theirs.save_pretrained(tmp_path / "theirs")
    again = litebert.load(tmp_path / "theirs")
    assert again.labels == ("red", "green", "blue", "grey")
    assert list(again.heads) == ["classification"]


def test_a_map_trained_in_transformers_is_not_dropped(tmp_path: Path) -> None:
    """At E = H ours has no map and theirs an identity, which they may train."""
    random_model(tiny(embedding_size=12)).save(tmp_path / "ours")
    theirs = transformers.AlbertModel.from_pretrained(tmp_path / "ours").eval()
    torch.nn.init.normal_(theirs.encoder.embedding_hidden_mapping_in.weight)
    theirs.save_pretrained(tmp_path / "theirs")
    again = litebert.load(tmp_path / "theirs")
    ids = torch.arange(5)[None]
    with torch.no_grad():
        expected = theirs(input_ids=ids).last_hidden_state[0]
        assert torch.allclose(again(ids).x_NH, expected, atol=1e-5)


@pytest.mark.parametrize("sharing", ["attention", "ffn"])
def test_layers_trained_apart_in_transformers_are_refused(sharing: str, tmp_path: Path) -> None:
    random_model(tiny(sharing=sharing)).save(tmp_path / "ours")
    theirs = transformers.AlbertModel.from_pretrained(tmp_path / "ours")
    layer: Any = theirs.encoder.albert_layer_groups[4].albert_layers[0]
    shared = layer.attention.query if sharing == "attention" else layer.ffn
    torch.nn.init.normal_(shared.weight)
    theirs.save_pretrained(tmp_path / "theirs")
    name = "attention.query" if sharing == "attention" else "ffn"
    with pytest.raises(FormatError, match=rf"groups\.4\.albert_layers\.0\.{name}\.weight.*differs"):
        litebert.load(tmp_path / "theirs")

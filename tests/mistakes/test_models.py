"""Models that cannot be read or called: damaged folders, impossible depths and lengths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import litebert
from litebert.base.errors import FormatError, SettingsError
from tests.mistakes.conftest import Refused
from tests.mistakes.model_damage import DAMAGES, KEY, content, gone, index, pickle_only, tensors
from tests.test_cli import run

SMALL = "model.vocab_size=9"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_is_refused_and_nothing_written(
    damage: str, source: Path, refused: Refused, tmp_path: Path
) -> None:
    change, words = DAMAGES[damage]
    change(source)
    before = sorted(path.name for path in tmp_path.iterdir())
    sentence = refused("import", source, tmp_path / "out")
    for word in words:
        assert word in sentence
    assert str(source) in sentence
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_folder_is_good_before_it_is_damaged(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, "import", source, tmp_path / "out") == 0


def test_an_absolute_path_in_an_index_is_refused(
    source: Path, refused: Refused, tmp_path: Path
) -> None:
    index({KEY: str(tmp_path / "evil.safetensors")})(source)
    assert "outside" in refused("import", source, tmp_path / "out")


def test_a_square_map_without_its_bias_is_refused(refused: Refused, tmp_path: Path) -> None:
    shape = {"embedding_size": 12, "hidden_size": 12, "num_attention_heads": 2, "vocab_size": 9}
    encoder = litebert.EncoderConfig(**shape, intermediate_size=8)  # type: ignore[arg-type]
    litebert.Model.create(encoder).save(tmp_path / "source")
    (tmp_path / "source" / "manifest.json").unlink()
    name = "encoder.embedding_hidden_mapping_in.bias"
    tensors(lambda t: {n: x for n, x in t.items() if n != name})(tmp_path / "source")
    assert name in refused("import", tmp_path / "source", tmp_path / "out")


@pytest.mark.parametrize("form", ["huggingface", "tensorflow"])
@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("model.safetensors", "flip", ["does not match its checksum"]),
        ("model.safetensors", "cut", ["manifest.json says", "truncated"]),
        ("config.json", "flip", ["does not match its checksum"]),
        ("model.safetensors", "remove", ["missing"]),
    ],
)
def test_the_manifest_finds_damage(
    name: str, change: str, words: list[str], form: str, refused: Refused, tmp_path: Path,
    source: Path,
) -> None:  # fmt: skip
    ours, out = tmp_path / "ours", tmp_path / "out"
    litebert.import_model(source, ours)
    data = bytearray((ours / name).read_bytes())
    if change == "flip":
        data[-3] ^= 1
    (ours / name).write_bytes(data[:-1] if change == "cut" else data)
    if change == "remove":
        (ours / name).unlink()
    sentence = refused("export", ours, out, "--format", form)
    for word in [str(ours / name), *words]:
        assert word in sentence
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ours", "source"]


def test_shared_layers_that_differ_are_refused(refused: Refused, tmp_path: Path) -> None:
    preset = litebert.load_preset("albert-tiny", ["model.sharing=ffn", SMALL])
    litebert.Model.create(preset.model).save(tmp_path / "source")
    (tmp_path / "source" / "manifest.json").unlink()
    name = "encoder.albert_layer_groups.1.albert_layers.0.ffn.bias"
    tensors(lambda t: t | {name: t[name] + 1})(tmp_path / "source")
    sentence = refused("import", tmp_path / "source", tmp_path / "out")
    assert name in sentence
    assert "differs from its copies" in sentence
    assert not (tmp_path / "out").exists()


def test_a_pickle_handed_in_by_itself_is_refused(
    source: Path, refused: Refused, tmp_path: Path
) -> None:
    pickle_only("pytorch_model.bin")(source)
    sentence = refused("import", source / "pytorch_model.bin", tmp_path / "out")
    assert str(source / "pytorch_model.bin") in sentence
    assert "save_pretrained" in sentence


# ---------------------------------------------------------------------------- in Python


@pytest.mark.parametrize("sharing", ["all", "none"])
@pytest.mark.parametrize("depth", [0, -1, [1, 0], [0, 0]])
def test_depth_zero_is_refused(sharing: str, depth: Any) -> None:
    preset = litebert.load_preset("albert-tiny", [f"model.sharing={sharing}", SMALL])
    model = litebert.Model.create(preset.model)
    with pytest.raises(SettingsError, match=r"depth (0|-1): .* at least one layer"):
        model(torch.ones(2, 3, dtype=torch.long), depth=depth)


def test_more_depth_than_layers_needs_shared_ones() -> None:
    preset = litebert.load_preset("albert-tiny", ["model.sharing=attention", SMALL])
    model = litebert.Model.create(preset.model)
    with pytest.raises(SettingsError, match="depth 5: this encoder has 2 layers"):
        model(torch.ones(1, 3, dtype=torch.long), depth=5)


@pytest.mark.parametrize("packed", [False, True])
def test_a_sequence_too_long_is_refused(packed: bool) -> None:
    few = ["model.max_position_embeddings=8", "data.max_length=8", SMALL]
    model = litebert.Model.create(litebert.load_preset("albert-tiny", few).model)
    ids = torch.ones(9, dtype=torch.long)
    with pytest.raises(SettingsError, match=r"9 tokens is too long.*positions for 8"):
        model(ids, lengths=[9]) if packed else model(ids[None])


def test_an_unknown_head_offers_the_nearest() -> None:
    preset = litebert.load_preset("albert-tiny")
    with pytest.raises(SettingsError, match="unknown head 'clasification'") as caught:
        litebert.Model.create(preset.model, ["clasification"])
    assert "did you mean 'classification'?" in str(caught.value)


def test_every_refusal_can_be_caught_at_the_root(source: Path) -> None:
    gone("config.json")(source)
    with pytest.raises(litebert.LitebertError, match=r"config\.json"):
        litebert.load(source)
    content("config.json", b"[]")(source)
    with pytest.raises(FormatError, match="JSON list"):
        litebert.load(source)

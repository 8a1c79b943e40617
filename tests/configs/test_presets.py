"""The shipped presets: the paper's numbers, exactly, and the ways to change them."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import litebert
from litebert.base.errors import FileError, SettingsError
from litebert.model.heads import HEADS
from litebert.objectives.registry import OBJECTIVES
from litebert.train.plan import plan

FILES = sorted(
    Path(str(file)) for file in resources.files("litebert.configs").iterdir()
    if file.name.endswith(".toml")
)  # fmt: skip
NAMES = sorted(file.stem for file in FILES)

# Encoder and pooler; and with the heads of pretraining, where the paper's code has been counted.
TOTALS = {
    "albert-base": 11_683_584,
    "albert-large": 17_683_968,
    "albert-xlarge": 58_724_864,
    "albert-xxlarge": 222_595_584,
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
}
WITH_HEADS = {
    "albert-base": 11_813_810,
    "albert-large": 17_847_474,
    "albert-xlarge": 59_021_490,
    "albert-xxlarge": 223_158_450,
}
# The paper's Table 4 (and 3): ALBERT-base by embedding size and by what the layers share.
ABLATIONS = {
    64: {"all": 9_681_408, "none": 87_648_000, "attention": 61_645_056, "ffn": 35_684_352},
    128: {"all": 11_683_584, "none": 89_650_176, "attention": 63_647_232, "ffn": 37_686_528},
    256: {"all": 15_687_936, "none": 93_654_528, "attention": 67_651_584, "ffn": 41_690_880},
    768: {"all": 31_114_752, "none": 109_081_344, "attention": 83_078_400, "ffn": 57_117_696},
}
CELLS = [(size, sharing, n) for size, row in ABLATIONS.items() for sharing, n in row.items()]


def parameters(name: str, *overrides: str) -> dict[str, int]:
    (found,) = plan(name, overrides=overrides, batch_size=1, max_length=8)
    return found.parameters


def test_the_list_is_the_folder() -> None:
    assert list(litebert.presets()) == NAMES
    assert {*TOTALS, *WITH_HEADS} <= set(NAMES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_shipped_file_builds_and_says_what_it_is(file: Path) -> None:
    written = tomllib.loads(file.read_text(encoding="utf-8"))
    preset = litebert.load_preset(file.stem)
    assert preset.title == written["title"]
    if "objectives" in written:  # else those of the preset that it extends
        assert preset.objectives == tuple(written["objectives"])
    assert set(preset.objectives) <= set(OBJECTIVES)
    assert preset.heads
    assert set(preset.heads) <= set(HEADS)
    for key, value in written["model"].items():
        assert getattr(preset.model, key) == value
    for key, value in written.get("generator", {}).items():
        assert getattr(preset.generator, key) == value
    assert litebert.load_preset(str(file)) == preset  # a path works like a name


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("-v2")])
def test_v2_differs_from_v1_by_its_dropouts_which_are_zero(name: str) -> None:
    second, first = (litebert.load_preset(n).model for n in (name, name.removesuffix("-v2")))
    zero = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    assert second == first.model_copy(update=zero)
    dropout = 0.0 if "xxlarge" in name else 0.1
    assert first.hidden_dropout_prob == first.attention_probs_dropout_prob == dropout


def test_there_is_a_v2_of_each_size_of_the_paper() -> None:
    sizes = [f"albert-{size}-v2" for size in ("base", "large", "xlarge", "xxlarge")]
    assert [name for name in NAMES if name.endswith("-v2")] == sizes


@pytest.mark.parametrize(("name", "count"), TOTALS.items())
def test_exact_parameters_of_encoder_and_pooler(name: str, count: int) -> None:
    assert parameters(name)["total"] == count


@pytest.mark.parametrize(("name", "count"), WITH_HEADS.items())
def test_exact_parameters_with_pretraining_heads(name: str, count: int) -> None:
    assert parameters(name)["with_heads"] == count


@pytest.mark.parametrize(("size", "sharing", "count"), CELLS)
def test_exact_parameters_of_every_ablation(size: int, sharing: str, count: int) -> None:
    overrides = (f"model.embedding_size={size}", f"model.sharing={sharing}")
    found = parameters("albert-base", *overrides)
    assert found["total"] == count
    assert ("projection" in found) == (size != 768)


@pytest.mark.parametrize("size", ["base", "large", "xlarge", "xxlarge"])
def test_v1_is_another_name_of_the_papers_models(size: str) -> None:
    assert litebert.load_preset(f"albert-{size}-v1") == litebert.load_preset(f"albert-{size}")


def test_v1_is_a_name_of_albert_only() -> None:
    with pytest.raises(
        SettingsError, match="unknown preset 'bert-base-v1'; did you mean"
    ) as caught:
        litebert.load_preset("bert-base-v1")
    assert "did you mean 'bert-base'?" in str(caught.value)


def test_xlarge_has_the_16_heads_of_the_released_weights_and_takes_the_papers_32() -> None:
    assert litebert.load_preset("albert-xlarge").model.num_attention_heads == 16
    changed = litebert.load_preset("albert-xlarge", ["model.num_attention_heads=32"]).model
    assert changed.num_attention_heads == 32
    assert changed.head_size == 64
    totals = [parameters("albert-xlarge", *s) for s in ((), ("model.num_attention_heads=32",))]
    assert totals[0] == totals[1]


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_what_is_said_later_wins(tmp_path: Path) -> None:
    """Shipped < grandparent < parent < file < first --set < second --set."""
    lines = "\n".join(f"{key} = {{}}" for key in ("vocab_size", "num_hidden_layers"))
    grand = write(
        tmp_path, "grand.toml",
        'extends = "albert-tiny"\ntitle = "grand"\n[model]\ntype_vocab_size = 3\n'
        + lines.format(100, 2),
    )  # fmt: skip
    parent = write(
        tmp_path, "parent.toml",
        f'extends = "{grand}"\ntitle = "parent"\n[model]\n' + lines.format(200, 3),
    )  # fmt: skip
    own = write(tmp_path, "own.toml", f'extends = "{parent}"\n[model]\nvocab_size = 300')
    preset = litebert.load_preset(own, ["model.pad_token_id=4", "model.pad_token_id=5"])
    tiny = litebert.load_preset("albert-tiny")
    assert preset.title.startswith("parent; ")
    assert preset.objectives == tiny.objectives
    assert preset.heads == tiny.heads
    changes: dict[str, Any] = {
        "type_vocab_size": 3, "num_hidden_layers": 3, "vocab_size": 300, "pad_token_id": 5
    }  # fmt: skip
    assert preset.model == tiny.model.model_copy(update=changes)
    assert litebert.load_preset(own, ["model.vocab_size=400"]).model.vocab_size == 400


def test_extends_finds_a_file_beside_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "presets").mkdir()
    write(tmp_path / "presets", "base.toml", 'extends = "albert-tiny"\ntitle = "beside"')
    own = write(tmp_path / "presets", "own.toml", 'extends = "base.toml"')
    monkeypatch.chdir(tmp_path)  # not the folder of the presets
    assert litebert.load_preset(own).title == "beside"


def test_a_set_reaches_objectives_and_generator() -> None:
    overrides = ['objectives=["masked_lm"]', "generator.hidden_size=128"]
    preset = litebert.load_preset("electra-small", overrides)
    assert preset.objectives == ("masked_lm",)
    assert preset.heads == ("masked_lm",)
    assert preset.generator is not None
    assert preset.generator.hidden_size == 128
    assert preset.model.hidden_size == 256


def test_a_generator_says_only_where_it_differs() -> None:
    preset = litebert.load_preset("electra-small", ["model.vocab_size=123"])
    assert preset.generator == preset.model.model_copy(
        update={"hidden_size": 64, "num_attention_heads": 1, "intermediate_size": 256}
    )


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.toml")
    with pytest.raises(FileError, match=r"gone\.toml: no such preset file"):
        litebert.load_preset(gone)
    child = write(tmp_path, "child.toml", f'extends = "{gone}"')
    with pytest.raises(FileError, match=r"gone\.toml: no such preset file"):
        litebert.load_preset(child)


def test_a_title_says_what_was_changed_about_the_model() -> None:
    plain = litebert.load_preset("albert-tiny").title
    overrides = ["model.num_hidden_layers=3", "data.max_length=64"]
    changed = litebert.load_preset("albert-tiny", overrides)
    assert changed.title == f"{plain}; model.num_hidden_layers=3"
    assert changed.model.num_hidden_layers == 3
    assert litebert.load_preset("albert-tiny", overrides[1:]).title == plain

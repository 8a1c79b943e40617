"""Messages and settings: short printable lines, whatever the names and values are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import litebert
from litebert.base import errors
from litebert.base.errors import FileError, FormatError, LitebertError, SettingsError
from litebert.base.files import read_json
from litebert.base.settings import parse_overrides
from litebert.finetuning.recipe import load_recipe
from tests.hostile.small import edit

# ---------------------------------------------------------------------------- what errors say


def test_messages_are_short_printable_lines() -> None:
    message = str(FormatError("file.json: " + "x\n\x1b[31m\udcff" * 50_000 + "; copy it again"))
    assert len(message) <= errors.LONGEST_MESSAGE
    assert message.isprintable()
    assert message.startswith("file.json: x ")
    assert message.endswith("; copy it again")
    assert str(FileError("a  b")) == "a  b"  # a path with two spaces stays


def test_a_value_of_100_000_characters_is_not_echoed(model_folder: Path) -> None:
    edit(model_folder / "config.json", hidden_act="x" * 100_000)
    with pytest.raises(FormatError, match=r"hidden_act 'xxx.* … .*known: gelu") as caught:
        litebert.load(model_folder)
    assert len(str(caught.value)) <= errors.LONGEST_MESSAGE


@pytest.mark.parametrize("key", [".".join("a" * 3000), "model." + "b" * 100_000])
def test_settings_of_endless_names(key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        litebert.load_preset("albert-tiny", [f"{key}=1"])
    assert len(str(caught.value)) <= errors.LONGEST_MESSAGE


def test_json_nested_too_deep(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": ' * 500 + "1" + "}" * 500)
    with pytest.raises(FormatError, match="100 deep"):
        read_json(tmp_path / "x.json")
    with pytest.raises(SettingsError, match="100 deep"):
        parse_overrides(["a=" + "[" * 150 + "]" * 150])


# ---------------------------------------------------------------------------- settings


@pytest.mark.parametrize("row", ["any = 5", "classify = [1]", "[any]\nwithout_dropout = 'x'"])
def test_rows_of_a_recipe_are_tables(row: str, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(row)
    with pytest.raises(SettingsError, match="expected a table"):
        load_recipe(str(tmp_path / "own.toml"), "classify", without_dropout=True)


def test_a_preset_that_extends_itself_through_a_detour(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "own.toml").write_text("extends = '../here/own.toml'")
    with pytest.raises(SettingsError, match="circle"):
        litebert.load_preset(str(tmp_path / "here" / "own.toml"))


@pytest.mark.parametrize("name", ["a" * 5000, "a" * 5000 + ".toml", "a\0.toml"])
def test_names_that_no_file_can_have(name: str, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(f"extends = {json.dumps(name)}")
    uses: list[Callable[[], Any]] = [
        lambda: litebert.load_preset(name),
        lambda: litebert.load_preset(str(tmp_path / "own.toml")),
        lambda: load_recipe(name, "classify"),
        lambda: litebert.load_tokenizer(name),
        lambda: litebert.load(name),
        lambda: litebert.open_store(name),
        lambda: litebert.plot([name], out=tmp_path / "x.png"),
        lambda: litebert.scores([name]),
        lambda: litebert.import_model(name, tmp_path / "out"),
    ]
    for use in uses:
        with pytest.raises(LitebertError) as caught:
            use()
        assert len(str(caught.value)) <= errors.LONGEST_MESSAGE


@pytest.mark.parametrize("change", [{"sequences": 0}, {"max_length": -4}])
def test_impossible_evaluations(change: Any, finished: tuple[Path, Path]) -> None:
    with pytest.raises(SettingsError, match=r"--sequences 0|--max-length -4"):
        litebert.evaluate(finished[1], corpus=finished[0], **change)

"""Settings from files and from --set, and the budgets beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import Field, ValidationError

from litebert.base.budget import Budget, parse_budget
from litebert.base.errors import FileError, LitebertError, SettingsError, did_you_mean
from litebert.base.settings import Settings, known_keys, merge, parse_overrides, read_toml


class Inner(Settings):
    width: int = Field(4, ge=1)
    name: str = "plain"


class Outer(Settings):
    title: str
    inner: Inner = Inner()
    other: Inner | None = None


def test_settings_are_built_from_plain_values_and_frozen() -> None:
    built = Outer.build({"title": "t", "inner": {"width": 7}}, "here")
    assert built == Outer(title="t", inner=Inner(width=7, name="plain"), other=None)
    with pytest.raises(ValidationError, match="frozen"):
        built.title = "u"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({}, "here: 'title' is missing"),
        ({"titel": "t"}, "here: 'title' is missing; unknown key 'titel'; did you mean 'title'?"),
        (
            {"title": "t", "inner": {"widht": 1}},
            "here: unknown key 'inner.widht'; did you mean 'inner.width'?",
        ),
        (
            {"title": "t", "other": {"nmae": 1}},
            "here: unknown key 'other.nmae'; did you mean 'other.name'?",
        ),
        (
            {"title": "t", "inner": {"width": 0}},
            "here: inner.width = 0: input should be greater than or equal to 1",
        ),
        ({"title": 3}, "here: title = 3: input should be a valid string"),
    ],
)
def test_a_mistake_names_the_place_the_key_and_the_value(
    tree: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        Outer.build(tree, "here")
    assert str(caught.value) == message


def test_every_dotted_key_is_known() -> None:
    assert known_keys(Outer) == ["title", "inner.width", "inner.name", "other.width", "other.name"]


def test_merging_goes_table_by_table_and_changes_neither_side() -> None:
    base = {"a": {"b": 1, "c": {"d": 2}}, "e": [1, 2], "f": 3}
    over = {"a": {"c": {"d": 5}}, "e": [9], "f": {"g": 1}}
    assert merge(base, over) == {"a": {"b": 1, "c": {"d": 5}}, "e": [9], "f": {"g": 1}}
    assert base == {"a": {"b": 1, "c": {"d": 2}}, "e": [1, 2], "f": 3}
    assert over == {"a": {"c": {"d": 5}}, "e": [9], "f": {"g": 1}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("256", 256),
        ("0.5", 0.5),
        ("1e-5", 1e-5),
        ("true", True),
        ("word", "word"),
        ('"256"', "256"),
        ('["a", "b"]', ["a", "b"]),
        ("a=b", "a=b"),
        ("", ""),
        ("[1", "[1"),
    ],
)
def test_a_set_value_is_toml_or_else_a_word(text: str, value: object) -> None:
    (found,) = parse_overrides([f"key={text}"]).values()
    assert found == value
    assert type(found) is type(value)


def test_sets_nest_by_dots_and_the_last_one_wins() -> None:
    sets = ["a.b=1", " a.c = 2 ", "a.b=3", "d=4"]
    assert parse_overrides(sets) == {"a": {"b": 3, "c": 2}, "d": 4}


@pytest.mark.parametrize("text", ["model.hidden_size", "=5", " = 5", ""])
def test_a_set_without_key_or_value_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="expected key=value") as caught:
        parse_overrides([text])
    assert f"--set {text}:" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["[" * 5000 + "]" * 5000, "9" * 5000],
    ids=["deeply nested", "a number of 5000 digits"],
)
def test_toml_that_overwhelms_the_parser_is_a_mistake_of_the_user(
    text: str, tmp_path: Path
) -> None:
    file = tmp_path / "wild.toml"
    file.write_text(f"value = {text}")
    with pytest.raises(LitebertError, match=r"wild\.toml"):
        read_toml(file)
    # On the command line a value that TOML cannot read is a word, so it fails as one later.
    assert parse_overrides([f"value={text}"]) == {"value": text}


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (None, FileError, "no such file"),
        (b"\xff\xfe", SettingsError, "not valid TOML"),
        (b"a = [", SettingsError, "not valid TOML"),
        (b"a = 1\na = 2", SettingsError, "not valid TOML"),
    ],
)
def test_a_toml_file_that_cannot_be_read_is_named(
    content: bytes | None, kind: type[Exception], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "run.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(kind, match=message) as caught:
        read_toml(file)
    assert str(file) in str(caught.value)


def test_the_nearest_word_is_offered_or_else_all() -> None:
    assert did_you_mean("heigth", ["width", "height"]) == "did you mean 'height'?"
    assert did_you_mean("zzz", ["width", "height"]) == "known: height, width"


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("90s", Budget("seconds", 90)),
        ("30m", Budget("seconds", 1800)),
        ("1.5h", Budget("seconds", 5400)),
        ("2d", Budget("seconds", 172_800)),
        ("200Mtok", Budget("tokens", 200e6)),
        ("1.5 Gtokens", Budget("tokens", 1.5e9)),
        ("7tok", Budget("tokens", 7)),
        ("2Ttok", Budget("tokens", 2e12)),
        ("125_000steps", Budget("steps", 125_000)),
        ("125ksteps", Budget("steps", 125_000)),
        ("1step", Budget("steps", 1)),
    ],
)
def test_budgets(text: str, budget: Budget) -> None:
    assert parse_budget(text) == budget


@pytest.mark.parametrize(
    "text",
    ["", "5", "tok", "0tok", "-5tok", "5kh", "1e5tok", "5 parsecs", "2h30m", "1.5.5tok", "_tok",
     "nantok", pytest.param("9" * 400 + "tok", id="more than a float holds")],
)  # fmt: skip
def test_a_budget_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="write a time") as caught:
        parse_budget(text)
    assert repr(text) in str(caught.value)

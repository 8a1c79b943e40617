"""Settings: frozen, validated classes <-> TOML <-> `--set a.b=value`.

One documented class feeds the file, the command line and the docs. An unknown key is an error that
names the nearest known one; values that do not fit together are refused when settings are built,
not hours later.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from litebert.base.errors import FormatError, SettingsError, did_you_mean
from litebert.base.files import DEEPEST, is_too_deep, read_bytes

Tree = dict[str, Any]
LARGEST_TOML = 2**20
MOST_PROBLEMS = 8  # told at once
T = TypeVar("T")


class Settings(BaseModel):
    """The base of every settings class: immutable, and strict about names."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )

    @classmethod
    def build(cls, tree: Mapping[str, Any], where: str) -> Self:
        """Settings from plain values; `where` (a file, a preset) goes into the error message."""
        if not isinstance(tree, Mapping):
            raise SettingsError(f"{where}: expected a table of settings, found {tree!r}")
        try:
            return cls.model_validate(dict(tree))
        except ValidationError as error:
            problems = "; ".join(
                _explain(cls, problem) for problem in error.errors()[:MOST_PROBLEMS]
            )
            raise SettingsError(f"{where}: {problems}") from None


def load_record(kind: type[T], content: Any, where: str) -> T:
    """A dataclass from what a file of ours should hold; `where` goes into the error message."""
    try:
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(map(str, problem["loc"])) or "all of it"
        raise FormatError(
            f"{where}: damaged, or written by another version ({name}: {problem['msg']})"
        ) from None


def _explain(settings: type[Settings], problem: Any) -> str:
    path = [str(step) for step in problem["loc"]]
    name = ".".join(path)
    if problem["type"] == "extra_forbidden":
        return f"unknown key {name!r}; {did_you_mean(name, known_keys(settings))}"
    if problem["type"] == "missing":
        return f"{name!r} is missing"
    message = problem["msg"].removeprefix("Value error, ")
    if not path:
        return message
    if problem["type"] == "value_error":  # of values that do not fit together: it names them itself
        return f"{name}: {message}"
    return f"{name} = {problem['input']!r}: {message[0].lower()}{message[1:]}"


def known_keys(settings: type[Settings], prefix: str = "") -> list[str]:
    """Every dotted key a settings class understands."""
    keys = []
    for name, field in settings.model_fields.items():
        nested = _nested(field.annotation)
        if nested is None:
            keys.append(prefix + name)
        else:
            keys += known_keys(nested, f"{prefix}{name}.")
    return keys


def _nested(annotation: Any) -> type[Settings] | None:
    """The settings class inside an annotation such as `EncoderConfig | None`, if there is one."""
    for option in getattr(annotation, "__args__", (annotation,)):
        if isinstance(option, type) and issubclass(option, Settings):
            return option
    return None


def read_toml(path: Path) -> Tree:
    """A TOML file as plain values."""
    try:
        tree = tomllib.loads(read_bytes(path, LARGEST_TOML).decode())
    except (ValueError, RecursionError) as error:  # also numbers too long, tables too deep
        raise SettingsError(f"{path}: not valid TOML ({error})") from None
    if is_too_deep(tree):
        raise SettingsError(f"{path}: not valid TOML (nested more than {DEEPEST} deep)")
    return tree


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Tree:
    """`base` with the values of `over` on top, table by table."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            value = merge(below, value)
        merged[key] = value
    return merged


def flatten(tree: Mapping[str, Any], prefix: str = "") -> Tree:
    """A tree as dotted keys and values."""
    flat: Tree = {}
    for name, value in tree.items():
        nested = isinstance(value, Mapping)
        flat |= flatten(value, f"{prefix}{name}.") if nested else {prefix + name: value}
    return flat


def first_difference(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """The first setting that two trees disagree on, as a reader would name it."""
    old, new = flatten(there), flatten(wanted)
    for name in [*new, *old]:
        if old.get(name) != new.get(name):
            return f"{name}: {old.get(name)} there, {new.get(name)} wanted"
    return None


def parse_overrides(assignments: Iterable[str]) -> Tree:
    """`["model.hidden_size=256"]` as a tree. Values are TOML; a bare word is a string."""
    tree: Tree = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise SettingsError(
                f"--set {assignment}: expected key=value, as in model.hidden_size=256"
            )
        branch: Tree = _toml_value(value.strip())
        for step in reversed(key.strip().split(".")):
            branch = {step: branch}
        if is_too_deep(branch):
            raise SettingsError(f"--set {assignment}: nested more than {DEEPEST} deep")
        tree = merge(tree, branch)
    return tree


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # TOMLDecodeError, numbers too long, lists too deep
        return text

"""Presets: whole runs as TOML files, shipped beside this module or written by the user.

A preset may start from another with `extends = "albert-base"`; what it says itself goes on top, and
`--set` goes on top of that. `[generator]` (ELECTRA) says only where it differs from `[model]`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from litebert.base.errors import FileError, SettingsError, did_you_mean
from litebert.base.settings import Tree, merge, parse_overrides, read_toml
from litebert.configs.schema import Preset


def preset_names() -> list[str]:
    """The shipped presets."""
    files = resources.files("litebert.configs").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def presets() -> dict[str, str]:
    """List the shipped presets: whole pretraining runs of published and small encoders."""
    return {name: load_preset(name).title for name in preset_names()}


def load_preset(name: str, overrides: Iterable[str] = ()) -> Preset:
    """Open a preset.

    Args:
        name: A shipped preset, or the path of a TOML file.
        overrides: Settings on top, as in `--set`: "model.hidden_size=256".
    """
    overrides = tuple(overrides)
    preset = Preset.build(merge(_read(name), parse_overrides(overrides)), where=name)
    reshaped = [change for change in overrides if change.startswith("model.")]
    if not reshaped:
        return preset
    return preset.model_copy(update={"title": f"{preset.title}; {', '.join(reshaped)}"})


def _read(name: str, seen: tuple[Path, ...] = ()) -> Tree:
    path = _locate(name).resolve()
    if path in seen:
        circle = " -> ".join(each.name for each in (*seen, path))
        raise SettingsError(f"{name}: `extends` goes in a circle: {circle}")
    tree = read_toml(path)
    parent = tree.pop("extends", None)
    if parent is None:
        return tree
    if not isinstance(parent, str):
        raise SettingsError(f"{name}: extends = {parent!r}: expected the name of a preset or file")
    if parent.endswith(".toml"):
        parent = str(path.parent / parent)  # a file is looked for beside the one that names it
    return merge(_read(parent, (*seen, path)), tree)


def _locate(name: str) -> Path:
    if name.endswith(".toml"):
        if not os.path.isfile(name):
            raise FileError(f"{name}: no such preset file")
        return Path(name)
    # The paper's models are the v1 release, so both names mean the same file.
    shipped = name.removesuffix("-v1") if name.startswith("albert-") else name
    if shipped not in preset_names():
        raise SettingsError(
            f"unknown preset {name!r}; {did_you_mean(name, preset_names())} "
            "(a file of your own must end in .toml)"
        )
    return Path(str(resources.files("litebert.configs") / f"{shipped}.toml"))

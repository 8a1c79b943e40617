"""Load all that the installed package ships: every module, preset, recipe and table.

`check_wheel.py` runs this with the Python of an environment that has the core dependencies only, so
a module that needs an extra when it is imported is found here.
"""

from __future__ import annotations

import tomllib
from importlib import import_module, metadata, resources
from pathlib import Path
from types import ModuleType

import litebert
from litebert.finetuning import recipe as recipes
from litebert.reproduction.table import load_tables

# The service's own modules need its extra; `serve` imports them once it has checked for it.
OF_THE_SERVICE = {"fastapi", "prometheus_client", "starlette", "uvicorn"}
PACKAGE = Path(str(resources.files("litebert")))


def main() -> None:
    """Load everything, and say how much it was."""
    _check_version()
    modules = _import_modules()
    recipe_files = sorted(recipes.FOLDER.glob("*.toml"))
    table_files = sorted((PACKAGE / "reproduction" / "tables").glob("*.toml"))
    presets = sorted(set(PACKAGE.rglob("*.toml")) - {*recipe_files, *table_files})
    for file in presets:
        litebert.load_preset(file.stem)
    rows = sum(_load_rows(file) for file in recipe_files)
    tables = len(load_tables(["all"]))
    if not presets or not rows or tables != len(table_files):
        raise SystemExit(f"{len(presets)} presets, {rows} rows of recipes, {tables} tables shipped")
    shipped = f"{len(presets)} presets, {rows} rows of {len(recipe_files)} recipes, {tables} tables"
    print(f"{modules} modules, {shipped}")


def _check_version() -> None:
    if litebert.__version__ != metadata.version("litebert"):
        raise SystemExit(f"litebert.__version__ is {litebert.__version__}, unlike the metadata")


def _import_modules() -> int:
    files = [file.relative_to(PACKAGE.parent) for file in PACKAGE.rglob("*.py")]
    names = [".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files]
    for name in names:
        if name.endswith(".__main__"):
            continue
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in OF_THE_SERVICE or not name.startswith("litebert.serving."):
                raise
    hidden = [name for name in litebert.__all__ if isinstance(getattr(litebert, name), ModuleType)]
    if hidden:  # importing litebert.x.y puts the package x where the function x should be
        raise SystemExit(f"packages hide the public names {', '.join(hidden)}")
    return len(names)


def _load_rows(file: Path) -> int:
    """Load every row of a recipe, also as it is for encoders without dropout."""
    rows = tomllib.loads(file.read_text())
    for row in rows:
        for without_dropout in (False, True):
            recipes.load_recipe(file.stem, row, without_dropout=without_dropout)
    return len(rows)


if __name__ == "__main__":
    main()

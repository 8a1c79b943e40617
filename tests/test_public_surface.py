"""The public surface: commands are functions, arguments are documented, names are unique."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from pathlib import Path

import pytest

import litebert
from litebert.cli.commands import COMMANDS
from litebert.cli.signature import IN_PYTHON_ONLY, describe, parse_docstring

SOURCE = Path(litebert.__file__).parent
FUNCTIONS = [name for name in litebert.__all__ if name.islower() and name != "__version__"]


def test_every_public_name_is_there() -> None:
    assert sorted(litebert.HOMES) == sorted(set(litebert.__all__) - {"__version__"})
    for name in litebert.__all__:
        assert getattr(litebert, name) is not None


def test_importing_every_module_hides_no_public_name() -> None:
    """A package named like a function would take its place in `litebert` once it is imported."""
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages.isdisjoint(litebert.__all__)


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_a_command_is_a_public_function_with_the_same_arguments(row) -> None:
    assert row.function in litebert.__all__
    described = describe(row.function)
    signature = inspect.signature(getattr(litebert, row.function))
    expected = [name for name in signature.parameters if name not in IN_PYTHON_ONLY]
    assert [parameter.name for parameter in described.parameters] == expected
    for parameter in described.parameters:
        assert described.texts.get(parameter.name), f"{row.name}: {parameter.name} is unexplained"
    assert described.help.partition("\n")[0].endswith(".")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_of_a_public_function_is_documented(name: str) -> None:
    function = getattr(litebert, name)
    _, texts = parse_docstring(inspect.getdoc(function) or "")
    assert set(texts) == set(inspect.signature(function).parameters)


def test_no_two_public_classes_have_one_name() -> None:
    names = Counter(
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_rooms_are_small_and_have_a_subject() -> None:
    for path in SOURCE.rglob("*.py"):
        assert path.name not in ("utils.py", "common.py", "helpers.py", "misc.py")
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= 400, f"{path}: {lines} lines"

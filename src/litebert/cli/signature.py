"""A command from a public function: its parameters become options, its docstring the help.

So a command cannot have other names, defaults or explanations than the Python function. The first
parameter is the command's argument, unless a row of the table says that more are.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

IN_PYTHON_ONLY = {"callbacks", "started", "progress", "say"}  # what commands do themselves
OPTION_NAMES = {"overrides": "--set", "columns": "--column", "start_from": "--from"}
_ARGUMENT = re.compile(r"^ {0,4}(\w+): (.*)$")


def as_command(
    function: Callable[..., Any], run: Callable[..., None], arguments: int, more: Mapping[str, str]
) -> Callable[..., None]:
    """`run` with the parameters of `function`, and `more` flags (name -> help) of its own."""
    described, texts = parse_docstring(function)
    hints = get_type_hints(function)
    parameters = []
    known = inspect.signature(function).parameters.values()
    for place, parameter in enumerate(p for p in known if p.name not in IN_PYTHON_ONLY):
        kind = _annotation(parameter, hints[parameter.name], texts, place < arguments)
        default = parameter.default if _is_plain(parameter.default) else None
        parameters.append(parameter.replace(annotation=kind, default=default, kind=_KEYWORD))
    for name, text in more.items():
        flag = typer.Option(f"--{name.removeprefix('as_')}", help=text)
        annotation = Annotated[bool, flag]
        parameters.append(inspect.Parameter(name, _KEYWORD, default=False, annotation=annotation))

    def command(**options: Any) -> None:
        run(**{name: _given(value, parameter_defaults[name]) for name, value in options.items()})

    parameter_defaults = {p.name: p.default for p in known} | dict.fromkeys(more, False)
    command.__doc__ = described
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def parse_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What a function does, and what its `Args:` section says of each parameter."""
    text = inspect.getdoc(function) or ""
    described, _, section = text.partition("\nArgs:\n")
    found: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if match := _ARGUMENT.match(line):
            name, found[match[1]] = match[1], match[2]
        elif line.strip() and name:
            found[name] += " " + line.strip()
    return described.strip(), found


def _annotation(
    parameter: inspect.Parameter, hint: Any, texts: dict[str, str], is_argument: bool
) -> Any:
    name, element = parameter.name, _element(hint)
    if is_argument:
        info: Any = typer.Argument(help=texts[name], metavar=name.upper())
    elif element is bool:
        info = typer.Option(_option(name), help=texts[name])
    else:
        info = typer.Option(_option(name), help=texts[name])
    if _is_several(hint):
        element = list[element]
    needed = parameter.default is inspect.Parameter.empty
    return Annotated[element if needed or _is_plain(parameter.default) else element | None, info]


def _option(name: str) -> str:
    return OPTION_NAMES.get(name, "--" + name.replace("_", "-"))


def _is_plain(default: Any) -> bool:
    """Whether a default can be shown as it is; collections and None are left to the function."""
    empty = inspect.Parameter.empty
    return default is empty or isinstance(default, str | int | float | Path)


def _given(value: Any, default: Any) -> Any:
    """What an option that nobody gave stands for."""
    return default if value is None or value == [] else value


def _members(hint: Any) -> Iterable[Any]:
    if get_origin(hint) in (Union, types.UnionType):
        for member in get_args(hint):
            yield from _members(member)
    else:
        yield hint


def _is_several(hint: Any) -> bool:
    return any(get_origin(member) not in (None, Literal) for member in _members(hint))


def _element(hint: Any) -> Any:
    """The type of one value: a path wherever one may stand."""
    found = set()
    for member in _members(hint):
        inner = get_args(member) if get_origin(member) not in (None, Literal) else (member,)
        for one in inner:
            found |= {str if get_origin(m) is Literal else m for m in _members(one)}
    for kind in (Path, bool, int, float, str):
        if kind in found:
            return kind
    raise AssertionError(f"no command-line type for {hint}")

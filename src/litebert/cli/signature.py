"""A command from a public function: its parameters become options, its docstring the help.

So a command cannot have other names, defaults or explanations than the Python function. The
function's source is read, not imported, so that `litebert plan --help` need not wait for torch.
The first parameters are arguments, as many as a row of the table says; the others are options.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import litebert

IN_PYTHON_ONLY = {
    "callbacks",
    "started",
    "on_progress",
    "say",
    "chunk_bytes",
}  # not on a command line
OPTION_NAMES = {
    "overrides": "--set",
    "columns": "--column",
    "start_from": "--from",
    "objectives": "--objective",
}
REQUIRED = inspect.Parameter.empty
KEYWORD = inspect.Parameter.KEYWORD_ONLY
_ARGUMENT = re.compile(r"^ {0,4}(\w+): (.*)$")
_SEVERAL = re.compile(r"\b(Sequence|Iterable|list)\[")
_TYPES = {"Path": Path, "bool": bool, "int": int, "float": float}


@dataclass(frozen=True)
class Parameter:
    """A parameter as the source has it."""

    name: str
    annotation: str
    default: Any  # REQUIRED, or a literal; None where it is no number, text or flag


@dataclass(frozen=True)
class Described:
    """A public function: what it does, its parameters, and what is said of each."""

    help: str
    parameters: list[Parameter]
    texts: dict[str, str]


def describe(name: str) -> Described:
    """A function of `litebert`, read from its source."""
    module = Path(litebert.__file__).parent.joinpath(*litebert.HOMES[name].split(".")[1:])
    tree = ast.parse(module.with_suffix(".py").read_text(encoding="utf-8"))
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    text, texts = parse_docstring(ast.get_docstring(function) or "")
    return Described(text, _parameters(function.args), texts)


def _parameters(arguments: ast.arguments) -> list[Parameter]:
    plain, missing = arguments.args, len(arguments.args) - len(arguments.defaults)
    defaults = [None] * missing + arguments.defaults + arguments.kw_defaults
    found = []
    for argument, default in zip([*plain, *arguments.kwonlyargs], defaults, strict=True):
        if argument.arg in IN_PYTHON_ONLY:
            continue
        assert argument.annotation is not None
        value = REQUIRED if default is None else ast.literal_eval(default)
        found.append(Parameter(argument.arg, ast.unparse(argument.annotation), value))
    return found


def parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    """What a function does, a line a paragraph, and what its `Args:` says of each parameter."""
    described, _, section = text.partition("\nArgs:\n")
    paragraphs = (" ".join(part.split()) for part in described.strip().split("\n\n"))
    found: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if match := _ARGUMENT.match(line):
            name, found[match[1]] = match[1], match[2]
        elif line.strip() and name:
            found[name] += " " + line.strip()
    return "\n\n".join(paragraphs), found


def as_command(
    function: str, run: Callable[..., None], arguments: int, flags: Mapping[str, str],
    fallbacks: Mapping[str, str],
) -> Callable[..., None]:  # fmt: skip
    """`run` with the parameters of a function, and `flags` (name -> help) of the command's own.

    `fallbacks` are values of parameters that the function demands and the command does not.
    """
    described = describe(function)
    known = [replace(p, default=fallbacks.get(p.name, p.default)) for p in described.parameters]
    parameters = [
        _option(parameter, described.texts[parameter.name], place < arguments)
        for place, parameter in enumerate(known)
    ]
    for name, text in flags.items():
        option = typer.Option(f"--{name.removeprefix('as_')}", help=_escaped(text))
        annotation = Annotated[bool, option]
        parameters.append(inspect.Parameter(name, KEYWORD, default=False, annotation=annotation))
    defaults = {p.name: p.default for p in known}

    def command(**options: Any) -> None:
        """An option that nobody gave stands for the function's default."""
        unset = {name for name, value in options.items() if value is None or value == []}
        run(**{name: defaults[name] if name in unset else options[name] for name in options})

    command.__doc__ = _escaped(described.help)
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def _option(parameter: Parameter, text: str, is_argument: bool) -> inspect.Parameter:
    names = re.findall(r"\w+", parameter.annotation)
    kind: Any = next((_TYPES[name] for name in _TYPES if name in names), str)
    kind = list[kind] if _SEVERAL.search(parameter.annotation) else kind
    option = OPTION_NAMES.get(parameter.name, "--" + parameter.name.replace("_", "-"))
    make: Any = typer.Argument(metavar=parameter.name.upper(), help=_escaped(text))
    default = parameter.default
    if kind is bool and default in (None, True):  # what can be said is that it is not wanted
        option = f"{option}/--no-{option.removeprefix('--')}"
    info = make if is_argument else typer.Option(option, help=_escaped(text))
    if default is not REQUIRED and not isinstance(default, str | int | float):
        kind, default = kind | None, None
    return inspect.Parameter(
        parameter.name, KEYWORD, default=default, annotation=Annotated[kind, info]
    )


def _escaped(text: str) -> str:
    """Brackets as they are: rich would take [CLS] for markup."""
    return text.replace("[", r"\[")

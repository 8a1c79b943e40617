"""Write docs/cli.md and docs/api.md from the code, or check that they are in step (`--check`).

The commands' help and the Python reference come from the same docstrings.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

import litebert
from litebert.cli import build_app
from litebert.cli.commands import COMMANDS
from litebert.cli.signature import parse_docstring

HERE = Path(__file__).parent
MADE = "Written by `make docs` from the code; do not edit."


def render_cli() -> str:
    """Every command with its options."""
    root: Any = get_command(build_app())
    sections = [_command(name, command) for name, command in _commands(root)]
    return "\n".join([f"# The command line\n\n{MADE}\n", *sections])


def _commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every command with its full name, those of groups included."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


def _command(name: str, command: Any) -> str:
    usage = command.collect_usage_pieces(typer.Context(command))
    call = f"```\nlitebert {name} {' '.join(usage)}\n```"
    function = next(row.function for row in COMMANDS if row.name == name)
    options = "\n".join(_option(parameter) for parameter in command.params)
    parts = [f"## litebert {name}", _text(command.help), call, options]
    parts.append(f"In Python: [`litebert.{function}`](api.md#{function}).")
    return "\n\n".join(part for part in parts if part) + "\n"


def _option(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    shown = "" if parameter.default in (None, False) else f" Default: `{parameter.default}`."
    return f"- {names}: {_text(parameter.help)}{shown}"


def _text(text: str) -> str:
    """With the brackets that rich had to be spared."""
    return text.replace(r"\[", "[").strip()


def render_api() -> str:
    """Every public name."""
    names = [name for name in litebert.__all__ if name != "__version__"]
    functions = [name for name in names if not inspect.isclass(getattr(litebert, name))]
    classes = [name for name in names if name not in functions]
    parts = [f"# The Python interface\n\n{MADE}\n\n## Functions\n", *map(_function, functions)]
    parts += ["## Classes\n", *map(_class, classes)]
    return "\n".join(parts)


def _function(name: str) -> str:
    function = getattr(litebert, name)
    described, arguments = parse_docstring(inspect.getdoc(function) or "")
    signature = _signature(inspect.signature(function))
    home = f"`{function.__module__}`"
    rows = "\n".join(f"- `{argument}`: {text}" for argument, text in arguments.items())
    commands = [row.name for row in COMMANDS if row.function == name]
    command = f"On the command line: `litebert {commands[0]}`. " if commands else ""
    call = f"```python\nlitebert.{name}{signature}\n```"
    parts = [f"### {name}", call, _text(described), rows, f"{command}In {home}."]
    return "\n\n".join(part for part in parts if part) + "\n"


def _signature(signature: inspect.Signature) -> str:
    """A parameter a line, once there are more than a few; a function as default is an ellipsis."""
    parameters = [
        p.replace(default=...) if callable(p.default) and p.default is not p.empty else p
        for p in signature.parameters.values()
    ]
    text = _plain(str(signature.replace(parameters=parameters)))
    if len(text) < 60:
        return text
    lines = [_plain(str(parameter)) for parameter in parameters]
    keywords = [place for place, p in enumerate(parameters) if p.kind is p.KEYWORD_ONLY]
    if keywords:
        lines.insert(keywords[0], "*")
    result = text.rpartition(" -> ")[2] if " -> " in text else ""
    return "(\n    " + ",\n    ".join(lines) + ",\n)" + (f" -> {result}" if result else "")


def _plain(text: str) -> str:
    """Without the quotes and module paths of annotations."""
    return re.sub(r"pathlib\.(_local\.)?Path", "Path", text).replace("Ellipsis", "...")


def _class(name: str) -> str:
    kind = getattr(litebert, name)
    described = _text(inspect.getdoc(kind) or "")
    fields = getattr(kind, "model_fields", None)
    if fields:
        rows = [
            f"- `{field}`: {info.description or ''}".rstrip(": ") for field, info in fields.items()
        ]
    else:
        own = {k: v for k, v in vars(kind).items() if not k.startswith("_") and inspect.getdoc(v)}
        rows = [
            f"- `{member}`: {(inspect.getdoc(getattr(kind, member)) or '').splitlines()[0]}"
            for member, value in own.items()
            if inspect.isfunction(value) or isinstance(value, classmethod | property)
        ]
    parts = [f"### {name}", described, "\n".join(rows), f"In `{kind.__module__}`."]
    return "\n\n".join(part for part in parts if part) + "\n"


PAGES = {HERE / "cli.md": render_cli, HERE / "api.md": render_api}

if __name__ == "__main__":
    for page, render in PAGES.items():
        content = render()
        if "--check" not in sys.argv:
            page.write_text(content, encoding="utf-8")
        elif not page.exists() or page.read_text(encoding="utf-8") != content:
            sys.exit(f"docs/{page.name} is not in step with the code: run `make docs`")

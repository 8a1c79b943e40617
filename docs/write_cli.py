"""Write docs/cli.md from the commands' own help, or check that it is in step (`--check`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from litebert.cli import app

PAGE = Path(__file__).with_name("cli.md")


def render() -> str:
    """The whole page."""
    root: Any = get_command(app)
    sections = [_section(name, command) for name, command in _commands(root)]
    head = "# The command line\n\nWritten by `make docs` from the commands' own help.\n"
    return "\n".join([head, *sections])


def _commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every command with its full name, those of groups included."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


def _section(name: str, command: Any) -> str:
    usage = command.collect_usage_pieces(typer.Context(command))
    paragraphs = [" ".join(part.split()) for part in command.help.strip().split("\n\n")]
    options = "\n".join(_row(parameter) for parameter in command.params)
    call = f"```\nlitebert {name} {' '.join(usage)}\n```"
    parts = [f"## litebert {name}", *paragraphs, call, options]
    return "\n\n".join(part for part in parts if part) + "\n"


def _row(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    shown = "" if parameter.default in (None, False) else f" Default: `{parameter.default}`."
    return f"- {names}: {parameter.help}{shown}"


if __name__ == "__main__":
    page = render()
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit("docs/cli.md is not in step with the commands: run `make docs`")

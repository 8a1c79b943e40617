"""The command line: each command is a thin layer over a Python function of the same arguments.

Options, defaults and help come from the function's source (signature.py); what a command prints is
in the module named by its row (commands.py), imported when the command runs, so that `--help`
answers at once. A user's mistake prints one sentence and exits with 2; only our own mistakes show a
traceback.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import typer

from litebert.base.errors import LitebertError
from litebert.cli.commands import COMMANDS, GROUPS, Command
from litebert.cli.signature import as_command

INTERRUPTED = 130  # the exit code

HELP = """Train small language encoders from raw text and ship them: ALBERT and its siblings BERT,
RoBERTa, ELECTRA and SpanBERT.

From text to a prediction: train a tokenizer, prepare a corpus, choose an encoder and plan what it
costs, pretrain and evaluate it, fine-tune it for a task, predict."""


def build_app() -> typer.Typer:
    """The application, from the table of commands."""
    app = _group(HELP)
    app.callback(invoke_without_command=True)(_options)
    groups: dict[str, typer.Typer] = {}
    for row in COMMANDS:
        group, _, name = row.name.rpartition(" ")
        if group and group not in groups:
            groups[group] = _group(GROUPS[group])
            app.add_typer(groups[group], name=group, rich_help_panel=row.panel)
        parent = groups[group] if group else app
        parent.command(name, rich_help_panel=row.panel)(_command(row))
    return app


def _group(help: str) -> typer.Typer:
    return typer.Typer(
        help=help, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )  # fmt: skip


def _command(row: Command) -> Any:
    module, _, name = row.run.partition(":")

    def run(**options: Any) -> None:
        try:
            getattr(import_module(f"litebert.cli.{module}"), name)(**options)
        except KeyboardInterrupt:
            print("litebert: interrupted; what was not saved is lost", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None

    return as_command(row.function, run, row.arguments, row.flags, row.fallbacks)


def _options(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        from litebert import __version__

        print(f"litebert {__version__}")
        raise typer.Exit


def main() -> None:
    """The `litebert` command."""
    try:
        build_app()()
    except LitebertError as error:
        print(f"litebert: {error}", file=sys.stderr)
        sys.exit(2)

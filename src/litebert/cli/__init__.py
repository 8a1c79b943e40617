"""The command line: each command is a thin layer over a Python function of the same name.

Heavy modules are imported inside the commands, so that `litebert --help` answers at once. A user's
mistake prints one sentence and exits with 2; only our own mistakes show a traceback.
"""

from __future__ import annotations

import sys

from litebert.base.errors import LitebertError
from litebert.cli import corpus, models, start, text
from litebert.cli.panels import app

__all__ = ["app", "main"]

COMMANDS = (start, text, corpus, models)  # each joins the application when imported


def main() -> None:
    """The `litebert` command."""
    try:
        app()
    except LitebertError as error:
        print(f"litebert: {error}", file=sys.stderr)
        sys.exit(2)

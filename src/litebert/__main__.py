"""`python -m litebert` is the `litebert` command."""

from litebert.cli import main

main()

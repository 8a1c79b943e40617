"""The application that the commands join, and the panels of its help."""

from __future__ import annotations

import typer

START = "0  Start here"
TEXT = "1  Prepare text"
CHOOSE = "2  Choose and plan"
MOVE = "3  Move models in and out"

app = typer.Typer(
    name="litebert",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help=(
        "Train small language encoders from raw text and ship them: ALBERT and its siblings BERT, "
        "RoBERTa, ELECTRA and SpanBERT.\n\n"
        "The road: train a tokenizer, prepare a corpus, choose an encoder, plan what it costs, "
        "move models in and out."
    ),
)

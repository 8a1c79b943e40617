"""The command line: each command is a thin layer over a Python function of the same name.

Heavy modules are imported inside the commands, so that `litebert --help` answers at once. A user's
mistake prints one sentence and exits with 2; only our own mistakes show a traceback.
"""

from __future__ import annotations

import sys

import typer

from litebert.base.errors import LitebertError
from litebert.cli import corpus, finetuning, models, plots, start, text, training

HELP = """Train small language encoders from raw text and ship them: ALBERT and its siblings BERT,
RoBERTa, ELECTRA and SpanBERT.

The road: train a tokenizer, prepare a corpus, choose an encoder, plan what it costs, pretrain and
evaluate it, move models in and out."""

START = "0  Start here"
TEXT = "1  Prepare text"
CHOOSE = "2  Choose and plan"
TRAIN = "3  Train"
USE = "4  Fine-tune and use"
MOVE = "5  Move models in and out"

app = typer.Typer(
    name="litebert",
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
tokenizer = typer.Typer(help="Train a tokenizer, or see what one does.", no_args_is_help=True)

app.command("demo", rich_help_panel=START)(start.demo)
tokenizer.command("train")(text.train)
tokenizer.command("show")(text.show)
app.add_typer(tokenizer, name="tokenizer", rich_help_panel=TEXT)
app.command("prepare", rich_help_panel=TEXT)(corpus.prepare)
app.command("inspect", rich_help_panel=TEXT)(corpus.inspect)
app.command("presets", rich_help_panel=CHOOSE)(models.presets)
app.command("plan", rich_help_panel=CHOOSE)(models.plan)
app.command("pretrain", rich_help_panel=TRAIN)(training.pretrain)
app.command("evaluate", rich_help_panel=TRAIN)(training.evaluate)
app.command("plot", rich_help_panel=TRAIN)(plots.plot)
app.command("finetune", rich_help_panel=USE)(finetuning.finetune)
app.command("scores", rich_help_panel=USE)(finetuning.scores)
app.command("predict", rich_help_panel=USE)(finetuning.predict)
app.command("embed", rich_help_panel=USE)(finetuning.embed)
app.command("import", rich_help_panel=MOVE)(models.import_)
app.command("export", rich_help_panel=MOVE)(models.export)


def main() -> None:
    """The `litebert` command."""
    try:
        app()
    except LitebertError as error:
        print(f"litebert: {error}", file=sys.stderr)
        sys.exit(2)

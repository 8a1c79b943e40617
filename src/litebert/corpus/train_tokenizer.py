"""`litebert tokenizer train`: a tokenizer from whatever `litebert prepare` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from litebert.base.remote.folders import new_folder
from litebert.corpus.preparing.encode import document_sentences
from litebert.reading.chunks import ReadSettings, check_source, split_chunks
from litebert.reading.records import Skipped, read_documents
from litebert.reading.remarks import remarks_on
from litebert.reading.sources import find_sources
from litebert.text.tokenizer import Tokenizer
from litebert.text.training import default_normalization, train_from_sentences


def train_tokenizer(
    inputs: Sequence[str],
    out: Path | str,
    *,
    kind: str = "sentencepiece",
    vocab_size: int | None = None,
    language: str = "en",
    normalization: str | None = None,
    sample: int = 100_000,
    seed: int = 0,
    format: str = "auto",
    field: str = "text",
    strip_markup: bool = False,
    on_error: str = "stop",
    on_progress: Callable[[str], None] = lambda text: None,
    say: Callable[[str], None] = lambda text: None,
) -> Tokenizer:
    """Train a tokenizer on your own text.

    Example: litebert tokenizer train articles.jsonl.gz --out my-tokenizer --vocab-size 8000

    Args:
        inputs: Files, folders, globs, "-" or "hf:NAME": whatever `prepare` reads.
        out: The folder to write, or a URL (s3://…). It opens in transformers, too, and gives the
            same ids there.
        kind: "sentencepiece" (ALBERT), "wordpiece" (BERT) or "bpe" (RoBERTa).
        vocab_size: How many tokens the vocabulary has. By default as many as the text can teach:
            3,000 of a megabyte, 8,000 of 40, ALBERT's 30,000 of gigabytes.
        language: Language of the text, for sentence ends and the default normalization.
        normalization: "english" (lower case, no accents), "lower", "multilingual" or "none". By
            default english for en in Latin script, none for bpe, else multilingual.
        sample: Train on at most so many sentences, drawn from all of the text.
        seed: Chooses the sentences.
        format: As in `prepare`.
        field: As in `prepare`.
        strip_markup: As in `prepare`.
        on_error: As in `prepare`.
        on_progress: Called with a line that says how far it is.
        say: Told what the user should know about the inputs, how large the sample is, and what
            was skipped.
    """
    options = {"format": format, "field": field, "on_error": on_error, "strip_markup": strip_markup}
    settings = ReadSettings.build(options, "litebert tokenizer train")
    for remark in remarks_on(find_sources(inputs, settings.format), settings):
        say(remark)
    skipped, found = Skipped(), 0

    def sentences() -> Iterator[str]:
        nonlocal found
        for sentence in read_sentences(inputs, settings, language, skipped):
            found += 1
            yield sentence

    with new_folder(out) as folder:
        made = train_from_sentences(
            sentences(), kind, vocab_size, normalization, language=language, sample=sample,
            seed=seed, progress=on_progress,
        )  # fmt: skip
        made.save(folder)
    if normalization is None and made.normalization != default_normalization(kind, language):
        say(
            f"normalization {made.normalization}: the text is not in {language}'s script; give its "
            "--language (ko, ja, …) here and to prepare, for sentence ends"
        )
    if vocab_size is None:
        say(f"a vocabulary of {made.vocab_size:,} tokens fits the text (--vocab-size for another)")
    if found > sample:
        say(
            f"trained on {sample:,} of {found:,} sentences, drawn from all of the text "
            "(--sample N for more)"
        )
    for reason, count in skipped.counts.items():
        say(f"skipped {count:,}: {reason} ({skipped.messages.get(reason, 'no text in it')})")
    return made


def read_sentences(
    inputs: Sequence[str], settings: ReadSettings, language: str, skipped: Skipped
) -> Iterator[str]:
    """Every sentence of the inputs, in order; what is left out is added to `skipped`."""
    sources = find_sources(inputs, settings.format)
    for source in sources:
        check_source(source, settings)
    for source in sources:
        for chunk in split_chunks(source, settings):
            for document in read_documents(chunk, settings, skipped):
                yield from document_sentences(document, language)

"""Training a tokenizer: how much text is enough?

    python benchmarks/tokenizer_training.py [--languages en ko ja] [--megabytes 1 3 10 30 100]
        [--vocabularies 8000 30000] [--kind sentencepiece] [--input FILE --languages xx]

For each size of the sample (drawn from all of the text, as `litebert tokenizer train` does) and of
the vocabulary: seconds of training, processor seconds beside them (the same however busy the
machine is), tokens per word on held-out text and the fraction of unknown ones. One sentence block
of 200 in fifty is held out. Japanese has no spaces: its tokens are counted per ten characters. The
default sample is the row marked with *. Bar: well under a minute on two cores, at the tokens per
word of the largest sample.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import texts
from litebert.base.errors import SettingsError
from litebert.corpus.train_tokenizer import read_sentences
from litebert.reading.chunks import ReadSettings
from litebert.reading.records import Skipped
from litebert.text.tokenizer import Tokenizer
from litebert.text.training import DEFAULT_SAMPLE, train_from_sentences

FILES = {"en": "enwiki.jsonl.gz", "ko": "kowiki.jsonl.gz", "ja": "aozora.jsonl.gz"}
BLOCK, HELD_OUT = 200, 50


@dataclass(frozen=True)
class Text:
    """Sentences to train on and to measure on."""

    language: str
    train: list[str]
    held_out: list[str]
    units: float  # words of the held-out text, or tens of characters

    def per_megabyte(self) -> float:
        return len(self.train) / sum(len(sentence.encode()) for sentence in self.train) * 1e6


def read(path: Path, language: str) -> Text:
    settings = ReadSettings.build({}, "tokenizer_training")
    train: list[str] = []
    held_out: list[str] = []
    for number, sentence in enumerate(read_sentences([str(path)], settings, language, Skipped())):
        (train if number // BLOCK % HELD_OUT else held_out).append(sentence)
    words = sum(len(sentence.split()) for sentence in held_out)
    tens = sum(map(len, held_out)) / 10
    return Text(language, train, held_out, tens if language == "ja" else words)


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(text: Text, kind: str, sample: int, vocab_size: int) -> str:
    began, used = time.perf_counter(), processor_seconds()
    try:
        made = train_from_sentences(
            text.train, kind, vocab_size, language=text.language, sample=sample
        )
    except SettingsError as error:
        return str(error)
    seconds, used = time.perf_counter() - began, processor_seconds() - used
    per_unit, unknown = fertility(made, text)
    return f"{seconds:7.1f} s {used:7.1f} s {per_unit:12.4f} {unknown:10.3%}"


def fertility(tokenizer: Tokenizer, text: Text) -> tuple[float, float]:
    """Tokens per unit of held-out text, and the fraction of unknown ones."""
    ids, _ = tokenizer.encode_batch(text.held_out)
    return len(ids) / text.units, float((ids == tokenizer.special.unk).mean())


def samples(text: Text, megabytes: list[float]) -> list[tuple[str, int]]:
    """Names and sentences of the samples, the default one among them; none larger than the text."""
    scale = text.per_megabyte()
    sizes = {min(round(size * scale), len(text.train)): f"{size:g} MB" for size in megabytes}
    default = min(DEFAULT_SAMPLE, len(text.train))
    sizes[default] = f"{default / scale:.1f} MB *"
    return [(name, sentences) for sentences, name in sorted(sizes.items())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input", type=Path, help="raw text, of the one language named")
    parser.add_argument("--languages", nargs="+", default=["en", "ko", "ja"])
    parser.add_argument("--megabytes", nargs="+", type=float, default=[1, 3, 10, 30, 100])
    parser.add_argument("--vocabularies", nargs="+", type=int, default=[8000, 30000])
    parser.add_argument("--kind", default="sentencepiece")
    options = parser.parse_args()
    for language in options.languages:
        text = read(options.input or texts.DATA / "text" / FILES[language], language)
        print(f"\n{language}: {len(text.train):,} sentences, {len(text.held_out):,} held out")
        print("vocabulary sample       sentences    wall     processor  tokens/word    unknown")
        for vocab_size in options.vocabularies:
            for name, sentences in samples(text, options.megabytes):
                found = measure(text, options.kind, sentences, vocab_size)
                print(f"{vocab_size:10,} {name:11} {sentences:10,} {found}", flush=True)


if __name__ == "__main__":
    main()

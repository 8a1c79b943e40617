"""Training a tokenizer from raw sentences.

Sentences are sampled uniformly from the whole text into bounded memory, normalized as the tokenizer
will, and handed to the trainer of the kind. The same sentences, settings and seed give the same
tokenizer. SentencePiece takes ALBERT's flags; its own normalization is off, because that is ours.
More text than the default sample hardly changes a vocabulary and takes minutes
(docs/log/text-and-corpora.md).
"""

from __future__ import annotations

import io
import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import sentencepiece
from tokenizers import Tokenizer as Engine
from tokenizers import models, pre_tokenizers, trainers

from litebert.base.errors import SettingsError, did_you_mean
from litebert.text.backend import KINDS, Backend
from litebert.text.continuation import ContinuationAlphabet
from litebert.text.normalization import find_normalization, normalize
from litebert.text.sentencepiece_backend import SentencePieceBackend
from litebert.text.tokenizer import Tokenizer
from litebert.text.tokenizers_backend import BPEBackend, WordPieceBackend

DEFAULT_SAMPLE = 100_000  # sentences, about 14 MB
LONGEST_SENTENCE = 1000  # characters; longer ones are cut, the trainer would drop them
_THREADS = 4  # fixed, because the order of sums changes the last digits of scores
_USER_DEFINED = ["(", ")", '"', "-", ".", "\u2013", "£", "€"]  # the sixth is an en dash
_CANDIDATES = 10  # for each token; unigram prunes them down, which is what its time goes to
_FEWEST_CANDIDATES = 100_000
_PROGRESS_EVERY = 10_000  # sentences
_WAIT = 1.0  # seconds between two signs of life
_MASK = "<mask>"
LOOKED_AT = 1_000  # sentences that show which script a text is in
FIRST_FOREIGN = 0x370  # Greek, the first letters after Latin with its accents
FOREIGN = 0.2  # fraction of letters that makes a text one of another script
LARGEST, LARGEST_FROM = 30_000, 3e9  # ALBERT's vocabulary, and the characters of text it wants
GROWTH = 0.3  # of a vocabulary with its text: ten times the text, twice the tokens
SPARE = 300  # tokens beside the characters: bytes, special tokens


class _TooLarge(SettingsError):
    """A vocabulary larger than a text supports."""

    def __init__(self, vocab_size: int, largest: int) -> None:
        self.largest = largest
        super().__init__(
            f"vocab_size {vocab_size:,} is larger than this text supports; "
            f"use at most {largest:,} tokens, or more text"
        )


def train_from_sentences(
    sentences: Iterable[str],
    kind: str,
    vocab_size: int | None = None,
    normalization: str | None = None,
    *,
    language: str | None = None,
    sample: int = DEFAULT_SAMPLE,
    seed: int = 0,
    character_coverage: float = 0.99995,
    progress: Callable[[str], None] = lambda text: None,
) -> Tokenizer:
    """A tokenizer of `vocab_size` tokens, or of as many as fit the text (`fitting_size`).

    `progress` is told what is being done, a line each.
    """
    if kind not in KINDS:
        raise SettingsError(f"tokenizer kind {kind!r} is not known; {did_you_mean(kind, KINDS)}")
    find_normalization(normalization or default_normalization(kind, language))
    _check_numbers(vocab_size, sample, character_coverage)
    characters = 0

    def read() -> Iterator[str]:
        nonlocal characters
        for sentence in _counted(sentences, progress):
            characters += len(sentence)
            yield sentence

    drawn = reservoir(read(), sample, seed)
    normalization = normalization or _fitting(default_normalization(kind, language), drawn)
    chosen = list(_normalized(drawn, normalization))
    if not chosen:
        raise SettingsError("there is no text to train a tokenizer from: every sentence is empty")
    size = sum(len(sentence.encode()) for sentence in chosen) / 1e6
    what = f"training on {len(drawn):,} sentences, {size:,.1f} MB"

    def train() -> Backend:
        size = vocab_size or fitting_size(characters, len(set().union(*chosen)))
        try:
            return _TRAINERS[kind](chosen, size, character_coverage)
        except _TooLarge as error:
            if vocab_size is not None:
                raise
            return _TRAINERS[kind](chosen, error.largest, character_coverage)

    backend = _in_background(train, lambda seconds: progress(f"{what}: {seconds:.0f} s"))
    return Tokenizer(backend, normalization)


def fitting_size(characters: int, alphabet: int) -> int:
    """How many tokens so much text can teach; an `alphabet` of many characters wants more.

    A token that is seen ten times has learned nothing, and costs its row in table and softmax.
    """
    wanted = LARGEST * min(characters / LARGEST_FROM, 1.0) ** GROWTH
    return min(round(max(int(wanted), 3 * alphabet + SPARE), -2), LARGEST)


def default_normalization(kind: str, language: str | None) -> str:
    """Bytes need none; English takes ALBERT's, everything else what destroys nothing."""
    if kind == "bpe":
        return "none"
    return "english" if language is not None and re.match(r"en\b", language) else "multilingual"


def _fitting(normalization: str, sentences: Sequence[str]) -> str:
    """English normalization takes Hangul apart and kana their marks: not for other scripts."""
    if normalization != "english":
        return normalization
    letters = [c for sentence in sentences[:LOOKED_AT] for c in sentence if c.isalpha()]
    foreign = sum(ord(c) >= FIRST_FOREIGN for c in letters)
    return "multilingual" if foreign > FOREIGN * len(letters) else normalization


def reservoir(stream: Iterable[str], size: int, seed: int) -> list[str]:
    """A uniform sample of at most `size` items, in the order of the stream."""
    chooser = random.Random(seed)
    kept: list[tuple[int, str]] = []
    for index, item in enumerate(stream):
        if index < size:
            kept.append((index, item))
        else:
            place = int(chooser.random() * (index + 1))
            if place < size:
                kept[place] = (index, item)
    return [item for _, item in sorted(kept)]


def _check_numbers(vocab_size: int | None, sample: int, coverage: float) -> None:
    if vocab_size is not None and not 0 < vocab_size <= 1_000_000:
        raise SettingsError(f"vocab_size {vocab_size:,}: choose between 1 and 1,000,000 tokens")
    if sample < 1:
        raise SettingsError(f"sample {sample}: take at least one sentence")
    if not 0.9 <= coverage <= 1:
        raise SettingsError(f"character coverage {coverage}: choose between 0.9 and 1")


def _counted(sentences: Iterable[str], progress: Callable[[str], None]) -> Iterator[str]:
    for count, sentence in enumerate(sentences, 1):
        if sentence and not sentence.isspace():
            yield sentence
        if count % _PROGRESS_EVERY == 0:
            progress(f"{count:,} sentences read")


def _normalized(sentences: Iterable[str], normalization: str) -> Iterator[str]:
    for sentence in sentences:
        text = normalize(sentence, normalization)
        for start in range(0, len(text), LONGEST_SENTENCE):
            part = text[start : start + LONGEST_SENTENCE]
            if not part.isspace():
                yield part


def _in_background(work: Callable[[], Backend], tell: Callable[[float], None]) -> Backend:
    """Do it in a thread: progress moves, and Ctrl-C is heard, while a library is at work."""
    done: list[Backend] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # also a panic in the library's Rust
            failed.append(error)

    began = time.monotonic()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    tell(0.0)
    while thread.is_alive():
        thread.join(_WAIT)
        tell(time.monotonic() - began)
    if failed:
        raise failed[0]
    return done[0]


def _train_sentencepiece(sentences: list[str], vocab_size: int, coverage: float) -> Backend:
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="unigram",
            vocab_size=vocab_size,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            control_symbols=["[CLS]", "[SEP]", "[MASK]"],
            user_defined_symbols=_USER_DEFINED,
            character_coverage=coverage,
            normalization_rule_name="identity",
            max_sentence_length=8 * LONGEST_SENTENCE,  # bytes
            seed_sentencepiece_size=max(_CANDIDATES * vocab_size, _FEWEST_CANDIDATES),
            num_threads=_THREADS,
            minloglevel=3,
        )
    except RuntimeError as error:
        raise _explain(str(error), vocab_size) from None
    return SentencePieceBackend(model.getvalue())


def _explain(message: str, vocab_size: int) -> SettingsError:
    """SentencePiece's complaint as one of ours."""
    largest = re.search(r"value <= (\d+)", message)
    if largest:
        return _TooLarge(vocab_size, int(largest[1]))
    smallest = re.search(r"smaller than required_chars\. \d+ vs (\d+)", message)
    if smallest:
        return SettingsError(
            f"vocab_size {vocab_size:,} is too small: the text's characters alone need "
            f"{int(smallest[1]):,} tokens; ask for more or lower the character coverage"
        )
    reason = message.rsplit("] ", 1)[-1] or message
    return SettingsError(
        f"vocab_size {vocab_size:,} cannot be trained from this text ({reason}); "
        "use more text or fewer tokens"
    )


def _train_wordpiece(sentences: list[str], vocab_size: int, coverage: float) -> Backend:
    del coverage
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    inside = ContinuationAlphabet(sentences)
    engine = Engine(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=specials, show_progress=False
    )
    marked = map(inside.mark, sentences)
    vocabulary = _train_engine(engine, trainer, marked)["vocab"]
    return WordPieceBackend([inside.unmark(p) for p in _exactly(vocabulary, vocab_size)])


def _train_bpe(sentences: list[str], vocab_size: int, coverage: float) -> Backend:
    del coverage
    smallest = 256 + 5
    if vocab_size < smallest:
        raise SettingsError(
            f"vocab_size {vocab_size:,} is too small: the bytes and special tokens alone are "
            f"{smallest}"
        )
    engine = Engine(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    model = _train_engine(engine, trainer, sentences)
    vocabulary = model["vocab"] | {_MASK: len(model["vocab"])}
    merges = [tuple(pair) for pair in model["merges"]]
    return BPEBackend(_exactly(vocabulary, vocab_size), merges)


def _train_engine(engine: Engine, trainer: Any, sentences: Iterable[str]) -> dict[str, Any]:
    engine.train_from_iterator(sentences, trainer)
    return json.loads(engine.to_str())["model"]


def _exactly(vocabulary: dict[str, int], vocab_size: int) -> list[str]:
    if len(vocabulary) < vocab_size:
        raise _TooLarge(vocab_size, len(vocabulary))
    if len(vocabulary) > vocab_size:
        raise SettingsError(
            f"vocab_size {vocab_size:,} is too small: the text's characters alone need "
            f"{len(vocabulary):,} tokens"
        )
    return sorted(vocabulary, key=vocabulary.__getitem__)


_TRAINERS: dict[str, Callable[[list[str], int, float], Backend]] = {
    "sentencepiece": _train_sentencepiece,
    "wordpiece": _train_wordpiece,
    "bpe": _train_bpe,
}

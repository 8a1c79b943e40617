"""The tokenizer: text to ids and back, whatever the model behind it.

    tokenizer = load_tokenizer("some/folder")       # ours, Hugging Face's, or a single file
    ids = tokenizer.encode("Hello, my dog is cute")

Ids equal sentencepiece's own for SentencePiece models and `transformers`' for the other two kinds.
Deliberate differences:

- Google's rule that re-encodes a token ending in digit and comma is left out, as `transformers`
  does today: we follow plain sentencepiece on normalized text.
- `transformers` rewrites `` and '' to a quotation mark for ALBERT; Google does not, nor do we.
- A special token's name inside a text ("[MASK]", "<s>") is ordinary text here, never its id.
- sentencepiece adds scores in single precision, so where two ways to cut a word score the same
  its choice hangs on rounding. Exact ties we follow; the saved tokenizer.json cannot (3 of 698,241
  sentences of English Wikipedia). Where scores differ by less than the rounding error, a word
  always gets the same ids here, sentencepiece's depend on the sentence (1 of those 698,241).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from litebert.base.files import write_json
from litebert.base.remote.folders import local_folder
from litebert.text import normalization as normalizations
from litebert.text.backend import Backend, Encoding, Offsets, SpecialIds, TokenizerKind
from litebert.text.huggingface import tokenizer_config, tokenizer_json
from litebert.text.loading import CONFIG, TOKENIZER_JSON, load_backend
from litebert.text.word_cache import WordCache
from litebert.text.word_starts import word_starts

__all__ = [
    "Encoding",
    "SpecialIds",
    "TokenizedText",
    "Tokenizer",
    "load_tokenizer",
    "show_tokenizer",
]


class Tokenizer:
    """A model, its normalization, and what all that follows asks of them."""

    def __init__(self, backend: Backend, normalization: str) -> None:
        self._backend = backend
        self.kind: TokenizerKind = backend.kind
        self.normalization = normalization
        self.tokens: list[str] = backend.tokens
        self.vocab_size = len(backend.tokens)
        self.special: SpecialIds = backend.special
        self.special_mask: np.ndarray = backend.special_mask
        self.has_token_types = self.kind != "bpe"  # RoBERTa has none,
        self.separators = 2 if self.kind == "bpe" else 1  # but two separators in a pair
        self.word_starts: np.ndarray = word_starts(
            self.kind, normalization, self.tokens, self.special_mask
        )
        self._cache = WordCache(
            self._encode_words,
            self._encode_texts,
            first_differs=self.kind == "bpe",
            fold=normalizations.find_normalization(normalization).folds_case,
        )

    def normalize(self, text: str) -> str:
        """The text as the model sees it."""
        return normalizations.normalize(text, self.normalization)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special ones."""
        return self.encode_batch([text])[0].tolist()

    def encode_batch(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The ids of many texts in a row (uint32) and how many each has (int64), fast."""
        if self._backend.splits_at_spaces:
            return self._cache.encode(texts)
        encoded = self._encode_texts(texts)
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        parts = [np.array(ids, np.uint32) for ids in encoded]
        return np.concatenate([np.zeros(0, np.uint32), *parts]), lengths

    def encode_with_offsets(self, text: str) -> Encoding:
        """Ids with their tokens, their places in the original text, and which begin a word."""
        normalized, starts, ends = normalizations.normalize_with_offsets(text, self.normalization)
        ids, inside = self._backend.encode_offsets(normalized)
        if ids != self.encode(text):
            ids, inside = self._offsets_by_word(normalized)
        offsets = _original_offsets(normalized, inside, starts, ends)
        begins = self.word_starts[ids].tolist() if ids else []
        if begins:
            begins[0] = True
        return Encoding(ids, [self.tokens[i] for i in ids], offsets, begins)

    def decode(self, ids: Sequence[int]) -> str:
        """The normalized text of ids; special ones but the unknown leave nothing."""
        silent = self.special_mask.copy()
        silent[self.special.unk] = False
        return self._backend.decode([int(i) for i in ids if not silent[i]])

    def save(self, folder: Path, *, max_length: int | None = None) -> None:
        """Write the tokenizer into a folder, for us and for `transformers`.

        `max_length` is the longest input of the model beside it, where `transformers` truncates.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self._backend.files.items():
            (folder / name).write_bytes(content)
        content = tokenizer_json(self._backend, self.normalization)
        (folder / TOKENIZER_JSON).write_text(content + "\n", encoding="utf-8")
        write_json(folder / CONFIG, tokenizer_config(self._backend, self.normalization, max_length))

    @property
    def checksum(self) -> str:
        """A SHA-256 of everything that decides the ids."""
        digest = hashlib.sha256(f"{self.kind}\n{self.normalization}\n".encode())
        for name, content in sorted(self._backend.files.items()):
            digest.update(f"{name} {len(content)}\n".encode() + content)
        return digest.hexdigest()

    def _offsets_by_word(self, normalized: str) -> tuple[list[int], Offsets]:
        """For the rare text whose rounding errors make it differ from its words in a row."""
        ids: list[int] = []
        offsets: Offsets = []
        for word in re.finditer("[^ ]+", normalized):
            more, places = self._backend.encode_offsets(word[0])
            ids += more
            offsets += [(word.start() + start, word.start() + end) for start, end in places]
        return ids, offsets

    def _encode_texts(self, texts: Sequence[str]) -> list[list[int]]:
        return self._backend.encode([self.normalize(text) for text in texts])

    def _encode_words(self, words: list[str], first: bool) -> list[Sequence[int] | None]:
        normalized = normalizations.normalize_words(words, self.normalization)
        return self._backend.encode_words(normalized, first)


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Open a tokenizer.

    Args:
        path: One of our folders, a Hugging Face folder, or a single file: a SentencePiece model,
            vocab.txt, vocab.json (with merges.txt beside it) or tokenizer.json; or a URL of these.
    """
    return Tokenizer(*load_backend(local_folder(path)))


@dataclass(frozen=True)
class TokenizedText:
    """What a tokenizer makes of a text."""

    text: str
    normalized: str
    decoded: str
    encoding: Encoding


def show_tokenizer(tokenizer: str | Path | Tokenizer, text: str) -> TokenizedText:
    """Show the tokens of a text: ids, offsets into the original, word starts.

    Example: litebert tokenizer show spiece.model "Hello, my dog is cute"

    Args:
        tokenizer: A tokenizer, or the folder or file to open one from.
        text: What to tokenize.
    """
    model = tokenizer if isinstance(tokenizer, Tokenizer) else load_tokenizer(tokenizer)
    encoding = model.encode_with_offsets(text)
    return TokenizedText(text, model.normalize(text), model.decode(encoding.ids), encoding)


def _original_offsets(
    normalized: str, inside: Offsets, starts: list[int], ends: list[int]
) -> Offsets:
    """Places in the normalized text as places in the original, without spaces around them."""
    offsets = []
    for start, end in inside:
        while start < end and normalized[start].isspace():
            start += 1
        while start < end and normalized[end - 1].isspace():
            end -= 1
        if start < end:
            offsets.append((starts[start], ends[end - 1]))
        else:
            place = starts[start] if start < len(starts) else (ends[-1] if ends else 0)
            offsets.append((place, place))
    return offsets

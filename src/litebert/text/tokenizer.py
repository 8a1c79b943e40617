"""The tokenizer: text to ids and back, whatever the model behind it.

    tokenizer = load_tokenizer("some/folder")       # ours, Hugging Face's, or a single file
    ids = tokenizer.encode("Hello, my dog is cute")

Ids equal sentencepiece's own for SentencePiece models and `transformers`' for the other two kinds.
Deliberate differences:

- Google's rule that re-encodes a piece ending in digit and comma is left out, as `transformers`
  does today: we follow plain sentencepiece on cleaned text.
- `transformers` rewrites `` and '' to a quotation mark for ALBERT; Google does not, nor do we.
- A special piece's name inside a text ("[MASK]", "<s>") is ordinary text here, never its id.
- sentencepiece adds scores in single precision, so where two ways to cut a word score the same
  its choice hangs on rounding. Exact ties we follow; the saved tokenizer.json cannot (3 of 698,241
  sentences of English Wikipedia). Where scores differ by less than the rounding error, a word
  always gets the same ids here, sentencepiece's depend on the sentence (1 of those 698,241).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from litebert.base.files import write_json
from litebert.text import cleaning as cleaners
from litebert.text.contract import Backend, Encoding, Kind, Offsets, SpecialIds
from litebert.text.huggingface import tokenizer_config, tokenizer_json
from litebert.text.reading import CONFIG, TOKENIZER_JSON, read_tokenizer
from litebert.text.word_cache import WordCache
from litebert.text.word_starts import word_starts

__all__ = ["Encoding", "SpecialIds", "Tokenizer", "load_tokenizer"]


class Tokenizer:
    """A model, its cleaning, and what the rest of the road asks of them."""

    def __init__(self, backend: Backend, cleaning: str) -> None:
        cleaners.recipe_named(cleaning)
        self._backend = backend
        self.kind: Kind = backend.kind
        self.cleaning = cleaning
        self.pieces: list[str] = backend.pieces
        self.vocab_size = len(backend.pieces)
        self.special: SpecialIds = backend.special
        self.special_mask: np.ndarray = backend.special_mask
        self.word_starts: np.ndarray = word_starts(
            self.kind, cleaning, self.pieces, self.special_mask
        )
        self._cache = WordCache(
            self._encode_words,
            self._encode_texts,
            first_differs=self.kind == "bytes",
            fold=cleaners.recipe_named(cleaning).folds,
        )

    def clean(self, text: str) -> str:
        """The text as the model sees it."""
        return cleaners.clean(text, self.cleaning)

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

    def encode_aligned(self, text: str) -> Encoding:
        """Ids with their pieces, their places in the original text, and which begin a word."""
        cleaned, starts, ends = cleaners.clean_aligned(text, self.cleaning)
        ids, inside = self._backend.encode_offsets(cleaned)
        if ids != self.encode(text):
            ids, inside = self._offsets_by_word(cleaned)
        offsets = _original_offsets(cleaned, inside, starts, ends)
        begins = self.word_starts[ids].tolist() if ids else []
        if begins:
            begins[0] = True
        return Encoding(ids, [self.pieces[i] for i in ids], offsets, begins)

    def decode(self, ids: Sequence[int]) -> str:
        """The cleaned text of ids; special ones but the unknown leave nothing."""
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
        content = json.dumps(tokenizer_json(self._backend, self.cleaning), ensure_ascii=False)
        (folder / TOKENIZER_JSON).write_text(content + "\n", encoding="utf-8")
        write_json(folder / CONFIG, tokenizer_config(self._backend, self.cleaning, max_length))

    @property
    def checksum(self) -> str:
        """A SHA-256 of everything that decides the ids."""
        digest = hashlib.sha256(f"{self.kind}\n{self.cleaning}\n".encode())
        for name, content in sorted(self._backend.files.items()):
            digest.update(f"{name} {len(content)}\n".encode() + content)
        return digest.hexdigest()

    def _offsets_by_word(self, cleaned: str) -> tuple[list[int], Offsets]:
        """For the rare text whose rounding errors make it differ from its words in a row."""
        ids: list[int] = []
        offsets: Offsets = []
        for word in re.finditer("[^ ]+", cleaned):
            more, places = self._backend.encode_offsets(word[0])
            ids += more
            offsets += [(word.start() + start, word.start() + end) for start, end in places]
        return ids, offsets

    def _encode_texts(self, texts: Sequence[str]) -> list[list[int]]:
        return self._backend.encode([self.clean(text) for text in texts])

    def _encode_words(self, words: list[str], first: bool) -> list[Sequence[int] | None]:
        return self._backend.encode_words(cleaners.clean_words(words, self.cleaning), first)


def load_tokenizer(path: str | Path) -> Tokenizer:
    """A tokenizer from one of our folders, a Hugging Face folder, or a single file."""
    return Tokenizer(*read_tokenizer(Path(path)))


def _original_offsets(cleaned: str, inside: Offsets, starts: list[int], ends: list[int]) -> Offsets:
    """Places in the cleaned text as places in the original, without spaces around them."""
    offsets = []
    for start, end in inside:
        while start < end and cleaned[start].isspace():
            start += 1
        while start < end and cleaned[end - 1].isspace():
            end -= 1
        if start < end:
            offsets.append((starts[start], ends[end - 1]))
        else:
            place = starts[start] if start < len(starts) else (ends[-1] if ends else 0)
            offsets.append((place, place))
    return offsets

"""WordPiece (BERT) and byte-level BPE (RoBERTa), run by the tokenizers library.

The library is given a bare model: no added tokens, so a special token's name inside a text
("[MASK]", "<s>") is ordinary text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from tokenizers import Tokenizer as Engine
from tokenizers import decoders, models, normalizers, pre_tokenizers

from litebert.text.backend import BadTokenizer, Offsets, SpecialIds, TokenizerKind, special_ids

VOCAB_TXT, VOCAB_JSON, MERGES = "vocab.txt", "vocab.json", "merges.txt"
_ROLES = ("pad", "unk", "cls", "sep", "mask")
_WORDPIECE_NAMES = {role: (f"[{role.upper()}]",) for role in _ROLES}
_BPE_NAMES = {role: (f"<{role}>",) for role in _ROLES} | {"cls": ("<s>",), "sep": ("</s>",)}
# Placeholders in published vocabularies that no text produces.
_PLACEHOLDER = re.compile(r"\[unused\d+\]|madeupword\d+")
MAX_PARTS = 400_000  # parts of words remembered, then afresh
# Where both kinds cut a word before looking at their vocabulary; only ASCII is taken apart here.
_AT_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]|[^!-/:-@\[-`{-~]+")
_GPT2_ASCII = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+")


class _EngineBackend:
    """What both kinds share: the library's engine and the special ids."""

    def __init__(self, engine: Engine, tokens: list[str], special: SpecialIds) -> None:
        self.tokens = tokens
        self.special = special
        self.splits_at_spaces = True
        self.special_mask = np.array([bool(_PLACEHOLDER.fullmatch(token)) for token in tokens])
        self.special_mask[list(vars(special).values())] = True
        self._engine = engine
        self._parts = _Parts(engine)

    def encode(self, texts: list[str]) -> list[list[int]]:
        """The ids of normalized texts, one by one: the library's batches start threads."""
        encode = self._engine.encode
        return [encode(text, add_special_tokens=False).ids for text in texts]

    def encode_offsets(self, text: str) -> tuple[list[int], Offsets]:
        encoding = self._engine.encode(text, add_special_tokens=False)
        return encoding.ids, encoding.offsets

    def decode(self, ids: list[int]) -> str:
        return self._engine.decode(ids, skip_special_tokens=False)

    def engine(self) -> tuple[Engine, list[Any]]:
        copy = Engine.from_str(self._engine.to_str())
        return copy, [copy.normalizer] if copy.normalizer else []


class _Parts(dict[str, list[int]]):
    """The ids of parts of words, remembered: words differ by punctuation, parts recur."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine

    def __missing__(self, part: str) -> list[int]:
        if len(self) >= MAX_PARTS:
            self.clear()
        ids = self[part] = self._engine.encode(part, add_special_tokens=False).ids
        return ids


class WordPieceBackend(_EngineBackend):
    """BERT's greedy longest match; a continuation begins with ##."""

    kind: TokenizerKind = "wordpiece"

    def __init__(self, tokens: list[str]) -> None:
        """From the tokens in the order of their ids; BadTokenizer if they do not make one."""
        vocabulary = _numbered(tokens)
        special = special_ids(tokens, _WORDPIECE_NAMES)
        unknown = tokens[special.unk]
        engine = Engine(models.WordPiece(vocabulary, unk_token=unknown))
        engine.normalizer = normalizers.BertNormalizer(strip_accents=False, lowercase=False)
        engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        engine.decoder = decoders.WordPiece(cleanup=False)
        super().__init__(engine, tokens, special)
        self.files = {VOCAB_TXT: "".join(f"{token}\n" for token in tokens).encode()}

    def encode_words(self, words: list[str], first: bool) -> list[Sequence[int] | None]:
        """The ids of normalized words; no word depends on its neighbours."""
        del first
        parts, split = self._parts, _AT_PUNCTUATION.findall
        return [
            parts[word] if word.isalnum() else [i for part in split(word) for i in parts[part]]
            for word in words
        ]


class BPEBackend(_EngineBackend):
    """GPT-2's and RoBERTa's byte-level BPE: nothing is unknown, a space is part of its word."""

    kind: TokenizerKind = "bpe"

    def __init__(self, tokens: list[str], merges: list[tuple[str, str]]) -> None:
        """From tokens in the order of their ids, and merges; BadTokenizer if they do not fit."""
        vocabulary = _numbered(tokens)
        special = special_ids(tokens, _BPE_NAMES)
        _check_merges(vocabulary, merges)
        engine = Engine(models.BPE(vocabulary, merges))
        engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        engine.decoder = decoders.ByteLevel()
        super().__init__(engine, tokens, special)
        lines = "".join(f"{left} {right}\n" for left, right in merges)
        self.files = {
            VOCAB_JSON: (json.dumps(vocabulary, ensure_ascii=False) + "\n").encode(),
            MERGES: f"#version: 0.2\n{lines}".encode(),
        }

    def encode_words(self, words: list[str], first: bool) -> list[Sequence[int] | None]:
        """The ids of normalized words, with the space before them unless they are first.

        Whitespace other than single spaces is grouped by what stands around it.
        """
        space = "" if first else " "
        return [
            None if word.split() != [word] else self._encode_word(space + word) for word in words
        ]

    def _encode_word(self, word: str) -> list[int]:
        parts = self._parts
        if not word.isascii():
            return parts[word]
        return [i for part in _GPT2_ASCII.findall(word) for i in parts[part]]


def _numbered(tokens: list[str]) -> dict[str, int]:
    numbered = {token: index for index, token in enumerate(tokens)}
    if len(numbered) != len(tokens):
        raise BadTokenizer("it has the same token twice")
    return numbered


def _check_merges(vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> None:
    for left, right in merges:
        if not {left, right, left + right} <= vocabulary.keys():
            raise BadTokenizer(f"the merge {left!r} {right!r} is not of tokens in the vocabulary")
    missing = set(pre_tokenizers.ByteLevel.alphabet()) - vocabulary.keys()
    if missing:
        raise BadTokenizer(
            f"{len(missing)} of the 256 bytes have no token, such as {min(missing)!r}"
        )

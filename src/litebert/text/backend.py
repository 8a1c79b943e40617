"""What a tokenizer's model must offer, and what all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from tokenizers import Tokenizer as Engine

TokenizerKind = Literal["sentencepiece", "wordpiece", "bpe"]
KINDS: tuple[TokenizerKind, ...] = ("sentencepiece", "wordpiece", "bpe")
Offsets = list[tuple[int, int]]


class BadTokenizer(ValueError):
    """Why tokenizer files are refused; the reader of the path puts the path before it."""


@dataclass(frozen=True)
class SpecialIds:
    """The ids that mean something to the encoder rather than to the text."""

    pad: int
    unk: int
    cls: int
    sep: int
    mask: int


@dataclass(frozen=True)
class Encoding:
    """A text as tokens. Offsets are [start, end) in the original text, without its spaces."""

    ids: list[int]
    tokens: list[str]
    offsets: Offsets
    word_starts: list[bool]


class Backend(Protocol):
    """A model that cuts normalized text into tokens."""

    kind: TokenizerKind
    tokens: list[str]
    special: SpecialIds
    special_mask: np.ndarray
    splits_at_spaces: bool
    files: dict[str, bytes]

    def encode(self, texts: list[str]) -> list[list[int]]:
        """The ids of normalized texts."""
        ...

    def encode_words(self, words: list[str], first: bool) -> list[Sequence[int] | None]:
        """The ids of normalized words; None where they depend on the text around the word."""
        ...

    def encode_offsets(self, text: str) -> tuple[list[int], Offsets]:
        """The ids of a normalized text and where each token stands in it."""
        ...

    def decode(self, ids: list[int]) -> str:
        """The text of ids that are not special."""
        ...

    def engine(self) -> tuple[Engine, list[Any]]:
        """This model as the tokenizers library runs it, and the normalizers that it needs."""
        ...


def special_ids(tokens: list[str], names: dict[str, tuple[str, ...]]) -> SpecialIds:
    """The special ids, each by the first of its possible names that is there."""
    index = {token: number for number, token in enumerate(tokens)}
    found = {}
    for role, candidates in names.items():
        name = next((name for name in candidates if name in index), None)
        if name is None:
            raise BadTokenizer(f"it has no {role} token ({' or '.join(candidates)})")
        found[role] = index[name]
    return SpecialIds(**found)

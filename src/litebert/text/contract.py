"""What a tokenizer's model must offer, and the two small records that travel with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

Kind = Literal["sentencepiece", "wordpiece", "bytes"]
KINDS: tuple[Kind, ...] = ("sentencepiece", "wordpiece", "bytes")
Offsets = list[tuple[int, int]]


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
    """A text as pieces. Offsets are [start, end) in the original text, without its spaces."""

    ids: list[int]
    pieces: list[str]
    offsets: Offsets
    word_starts: list[bool]


class Backend(Protocol):
    """A model that cuts cleaned text into pieces."""

    kind: Kind
    pieces: list[str]
    special: SpecialIds
    special_mask: np.ndarray
    splits_at_spaces: bool
    files: dict[str, bytes]

    def encode(self, texts: list[str]) -> list[list[int]]:
        """The ids of cleaned texts."""
        ...

    def encode_words(self, words: list[str], first: bool) -> list[Sequence[int] | None]:
        """The ids of cleaned words; None where they depend on the text around the word."""
        ...

    def encode_offsets(self, text: str) -> tuple[list[int], Offsets]:
        """The ids of a cleaned text and where each piece stands in it."""
        ...

    def decode(self, ids: list[int]) -> str:
        """The text of ids that are not special."""
        ...

    def pipeline(self) -> dict[str, Any]:
        """The parts of a tokenizer.json that this model decides."""
        ...


def special_ids(pieces: list[str], names: dict[str, tuple[str, ...]]) -> SpecialIds | str:
    """The special ids by their possible names, or the role that no piece fills."""
    index = {piece: number for number, piece in enumerate(pieces)}
    found = {}
    for role, candidates in names.items():
        matches = [index[name] for name in candidates if name in index]
        if not matches:
            return role
        found[role] = matches[0]
    return SpecialIds(**found)

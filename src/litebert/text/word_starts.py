"""Word starts: which pieces begin a word, so that masking can take whole words.

SentencePiece with English cleaning follows Google's rule for ALBERT: a piece starts a word if it
begins with ▁ or "<", is one of the listed punctuation marks, or holds anything but a-z and those
marks; so digits and foreign characters are words of their own. With other cleanings a piece
starts a word unless it is made only of letters and marks of scripts that put spaces between words:
ideographs, kana, Thai and their like, digits and symbols are words of their own.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import numpy as np

SPACE = "▁"
_PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')
_JOINABLE = frozenset("abcdefghijklmnopqrstuvwxyz") | _PUNCTUATION
# Scripts written without spaces, by how their characters' Unicode names begin.
_UNSPACED = (
    "BOPOMOFO", "CJK", "HALFWIDTH KATAKANA", "HENTAIGANA", "HIRAGANA", "IDEOGRAPHIC", "JAVANESE",
    "KATAKANA", "KHMER", "LAO", "MYANMAR", "NEW TAI LUE", "TAI", "THAI", "TIBETAN", "YI",
)  # fmt: skip


def word_starts(kind: str, cleaning: str, pieces: list[str], special: np.ndarray) -> np.ndarray:
    """For each piece, whether it begins a word. Special pieces count as words."""
    return _table(_RULES.get((kind, cleaning)) or _RULES[kind, ""], pieces) | special


def _table(rule, pieces: Iterable[str]) -> np.ndarray:
    return np.fromiter(map(rule, pieces), bool)


def _google(piece: str) -> bool:
    if piece.startswith((SPACE, "<")) or piece in _PUNCTUATION:
        return True
    return not all(character.lower() in _JOINABLE for character in piece)


def _by_script(piece: str) -> bool:
    return piece.startswith(SPACE) or not all(map(_is_spaced_letter, piece))


def _is_spaced_letter(character: str) -> bool:
    if unicodedata.category(character)[0] not in "LM":
        return False
    return not unicodedata.name(character, "").startswith(_UNSPACED)


def _wordpiece(piece: str) -> bool:
    return not piece.startswith("##")


def _bytes(piece: str) -> bool:
    return piece.startswith("Ġ")


_RULES = {
    ("sentencepiece", "english"): _google,
    ("sentencepiece", ""): _by_script,
    ("wordpiece", ""): _wordpiece,
    ("bytes", ""): _bytes,
}

"""Word starts: which tokens begin a word, so that masking can take whole words.

SentencePiece with English normalization follows Google's rule for ALBERT: a token starts a word if
it begins with ▁ or "<", is one of the listed punctuation marks, or holds anything but a-z and those
marks; so digits and foreign characters are words of their own. With another one a token
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


def word_starts(
    kind: str, normalization: str, tokens: list[str], special: np.ndarray
) -> np.ndarray:
    """For each token, whether it begins a word. Special tokens count as words."""
    return _table(_RULES.get((kind, normalization)) or _RULES[kind, ""], tokens) | special


def _table(rule, tokens: Iterable[str]) -> np.ndarray:
    return np.fromiter(map(rule, tokens), bool)


def _google(token: str) -> bool:
    if token.startswith((SPACE, "<")) or token in _PUNCTUATION:
        return True
    return not all(character.lower() in _JOINABLE for character in token)


def _by_script(token: str) -> bool:
    return token.startswith(SPACE) or not all(map(_is_spaced_letter, token))


def _is_spaced_letter(character: str) -> bool:
    if unicodedata.category(character)[0] not in "LM":
        return False
    return not unicodedata.name(character, "").startswith(_UNSPACED)


def _wordpiece(token: str) -> bool:
    return not token.startswith("##")


def _bpe(token: str) -> bool:
    return token.startswith("Ġ")


_RULES = {
    ("sentencepiece", "english"): _google,
    ("sentencepiece", ""): _by_script,
    ("wordpiece", ""): _wordpiece,
    ("bpe", ""): _bpe,
}

from __future__ import annotations

import numpy as np
import pytest

from litebert.text.word_starts import word_starts

GOOGLE = {
    "▁the": True, "the": False, "s": False, "▁": True, "<unk>": True, ",": True, "'": True,
    "'s": True, "4": True, "s4": True, "ing,": False, "é": True, "語": True, "가": True, "~": True,
    "=": True, "...": False,
}  # fmt: skip
BY_SCRIPT = {
    "▁the": True, "the": False, "The": False, "é": False, "и": False, "λόγος": False, "가나": False,
    "\u0301": False, "語": True, "か": True, "ガー": True, "々": True, "ไทย": True, "ລາວ": True,
    "ខ្មែរ": True, "မြန်": True, "4": True, ",": True, "a1": True, "▁語": True, "عرب": False,
}  # fmt: skip


def table(kind: str, normalization: str, tokens: list[str]) -> list[bool]:
    return word_starts(kind, normalization, tokens, np.zeros(len(tokens), bool)).tolist()


def test_english_follows_googles_rule() -> None:
    assert table("sentencepiece", "english", list(GOOGLE)) == list(GOOGLE.values())


@pytest.mark.parametrize("normalization", ["multilingual", "lower", "none"])
def test_elsewhere_scripts_without_spaces_start_words(normalization: str) -> None:
    assert table("sentencepiece", normalization, list(BY_SCRIPT)) == list(BY_SCRIPT.values())


def test_wordpiece_and_bytes() -> None:
    assert table("wordpiece", "english", ["the", "##the", "#", ","]) == [True, False, True, True]
    assert table("bpe", "none", ["Ġthe", "the", "Ġ", "Ċ"]) == [True, False, True, False]


def test_special_tokens_are_words() -> None:
    special = np.array([True, False])
    assert word_starts("bpe", "none", ["<s>", "the"], special).tolist() == [True, False]

# ruff: noqa: RUF001  (odd characters on purpose)
from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.base.errors import SettingsError
from litebert.text.normalization import (
    NORMALIZATIONS,
    combining_class,
    normalize,
    normalize_with_offsets,
    normalize_words,
)

# Characters that combine, split, melt, change length, or look like spaces.
NASTY = (
    "aAéE Σσς İıßﬁ¨´ｶﾞカガは゛゜\u3099\u309aぱ각ᄀ\u1161\u11a8ㄱ가\u0301\u0308\u0344\u0f73"
    "\u09c7\u09be\u00a0\u3000\u200b\u200d\u2028\t\n\x85\x1c\x00\ufffd\ud800①㍿ǅ–£€▁\U0001d400\U0001f600"
)
nasty_text = st.text(st.one_of(st.sampled_from(NASTY), st.characters()), max_size=30)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@given(text=nasty_text)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_the_aligned_text_is_the_cleaned_text(normalization: str, text: str) -> None:
    normalized, starts, ends = normalize_with_offsets(text, normalization)
    assert normalized == normalize(text, normalization)
    assert len(starts) == len(ends) == len(normalized)
    assert all(0 <= start < end <= len(text) for start, end in zip(starts, ends, strict=True))
    assert starts == sorted(starts)
    assert ends == sorted(ends)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@given(words=st.lists(nasty_text.map(lambda text: text.replace(" ", "")), max_size=8))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_words_are_cleaned_as_texts_are(normalization: str, words: list[str]) -> None:
    assert normalize_words(words, normalization) == [
        normalize(word, normalization) for word in words
    ]


@pytest.mark.parametrize("normalization", ["english", "multilingual", "lower", "bert-uncased"])
@given(words=st.lists(nasty_text, max_size=5))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_cleaning_never_looks_across_a_space(normalization: str, words: list[str]) -> None:
    joined = normalize(" ".join(words), normalization)
    assert joined == " ".join(part for word in words if (part := normalize(word, normalization)))


def test_english_is_googles_recipe() -> None:
    text = "  Crème\u00a0BRÛLÉE,\n``ﬁne'' Ελλάς "
    google = unicodedata.normalize("NFKD", " ".join(text.split()))
    google = "".join(c for c in google if not unicodedata.combining(c)).lower()
    assert normalize(text, "english") == google == "creme brulee, ``fine'' ελλας"


def test_english_leaves_no_doubled_space_where_a_character_becomes_one() -> None:
    assert normalize("a ¨ b", "english") == "a b"


def test_the_other_recipes_keep_hangul_and_voicing_marks() -> None:
    decomposed = unicodedata.normalize("NFD", "Café ガパ 한국")
    assert normalize(decomposed, "multilingual") == "Café ガパ 한국"
    assert normalize(decomposed, "lower") == "café ガパ 한국"
    assert normalize(decomposed, "none") == decomposed
    assert normalize("ｶﾞ", "multilingual") == "ガ"


def test_bert_recipes() -> None:
    assert normalize("Café\tZOË\x00", "bert-uncased") == "cafe zoe"
    assert normalize("Café\tZOË\x00", "bert-cased") == "Café ZOË"


def test_jamo_point_at_all_of_their_syllable() -> None:
    normalized, starts, ends = normalize_with_offsets("x\u1112\u1161\u11ab!", "multilingual")
    assert normalized == "x한!"
    assert list(zip(starts, ends, strict=True)) == [(0, 1), (1, 4), (4, 5)]


def test_a_run_of_whitespace_is_one_space_that_covers_it() -> None:
    assert normalize_with_offsets(" a \t b ", "lower") == ("a b", [1, 2, 5], [2, 5, 6])


def test_lone_surrogates_become_replacement_characters() -> None:
    for normalization in ("none", "english", "multilingual"):
        assert normalize("a\ud800b", normalization) == "a\ufffdb"


def test_no_combining_character_lies_beyond_the_class() -> None:
    assert all(unicodedata.combining(chr(code)) == 0 for code in range(0x20000, 0x110000))
    assert "\\x{300}-" in combining_class()


def test_an_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(SettingsError, match="did you mean 'english'"):
        normalize("x", "englich")


FOLDING = [name for name, normalization in NORMALIZATIONS.items() if normalization.folds_case]


@pytest.mark.parametrize("normalization", FOLDING)
@given(st.text(st.one_of(st.sampled_from("aAhHiIsSkKΣσ\u0301\u0331\u0307İ. "), st.characters())))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_where_case_folds_it_never_matters(normalization: str, text: str) -> None:
    folded = text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
    assert normalize(folded, normalization) == normalize(text, normalization)


def test_composed_letters_that_have_one_case_only_forbid_folding() -> None:
    assert normalize("H\u0331", "lower") != normalize("h\u0331", "lower")
    assert FOLDING == ["english", "bert-uncased"]

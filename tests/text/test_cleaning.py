# ruff: noqa: RUF001  (odd characters on purpose)
from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.base.errors import SettingsError
from litebert.text.cleaning import RECIPES, clean, clean_aligned, clean_words, combining_class

# Characters that combine, split, melt, change length, or look like spaces.
NASTY = (
    "aAéE Σσς İıßﬁ¨´ｶﾞカガは゛゜\u3099\u309aぱ각ᄀ\u1161\u11a8ㄱ가\u0301\u0308\u0344\u0f73"
    "\u09c7\u09be\u00a0\u3000\u200b\u200d\u2028\t\n\x85\x1c\x00\ufffd\ud800①㍿ǅ–£€▁\U0001d400\U0001f600"
)
nasty_text = st.text(st.one_of(st.sampled_from(NASTY), st.characters()), max_size=30)


@pytest.mark.parametrize("recipe", RECIPES)
@given(text=nasty_text)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_the_aligned_text_is_the_cleaned_text(recipe: str, text: str) -> None:
    cleaned, starts, ends = clean_aligned(text, recipe)
    assert cleaned == clean(text, recipe)
    assert len(starts) == len(ends) == len(cleaned)
    assert all(0 <= start < end <= len(text) for start, end in zip(starts, ends, strict=True))
    assert starts == sorted(starts)
    assert ends == sorted(ends)


@pytest.mark.parametrize("recipe", RECIPES)
@given(words=st.lists(nasty_text.map(lambda text: text.replace(" ", "")), max_size=8))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_words_are_cleaned_as_texts_are(recipe: str, words: list[str]) -> None:
    assert clean_words(words, recipe) == [clean(word, recipe) for word in words]


@pytest.mark.parametrize("recipe", ["english", "multilingual", "lower", "bert-uncased"])
@given(words=st.lists(nasty_text, max_size=5))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_cleaning_never_looks_across_a_space(recipe: str, words: list[str]) -> None:
    joined = clean(" ".join(words), recipe)
    assert joined == " ".join(part for word in words if (part := clean(word, recipe)))


def test_english_is_googles_recipe() -> None:
    text = "  Crème\u00a0BRÛLÉE,\n``ﬁne'' Ελλάς "
    google = unicodedata.normalize("NFKD", " ".join(text.split()))
    google = "".join(c for c in google if not unicodedata.combining(c)).lower()
    assert clean(text, "english") == google == "creme brulee, ``fine'' ελλας"


def test_english_leaves_no_doubled_space_where_a_character_becomes_one() -> None:
    assert clean("a ¨ b", "english") == "a b"


def test_the_other_recipes_keep_hangul_and_voicing_marks() -> None:
    decomposed = unicodedata.normalize("NFD", "Café ガパ 한국")
    assert clean(decomposed, "multilingual") == "Café ガパ 한국"
    assert clean(decomposed, "lower") == "café ガパ 한국"
    assert clean(decomposed, "none") == decomposed
    assert clean("ｶﾞ", "multilingual") == "ガ"


def test_bert_recipes() -> None:
    assert clean("Café\tZOË\x00", "bert-uncased") == "cafe zoe"
    assert clean("Café\tZOË\x00", "bert-cased") == "Café ZOË"


def test_jamo_point_at_all_of_their_syllable() -> None:
    cleaned, starts, ends = clean_aligned("x\u1112\u1161\u11ab!", "multilingual")
    assert cleaned == "x한!"
    assert list(zip(starts, ends, strict=True)) == [(0, 1), (1, 4), (4, 5)]


def test_a_run_of_whitespace_is_one_space_that_covers_it() -> None:
    assert clean_aligned(" a \t b ", "lower") == ("a b", [1, 2, 5], [2, 5, 6])


def test_lone_surrogates_become_replacement_characters() -> None:
    for recipe in ("none", "english", "multilingual"):
        assert clean("a\ud800b", recipe) == "a\ufffdb"


def test_no_combining_character_lies_beyond_the_class() -> None:
    assert all(unicodedata.combining(chr(code)) == 0 for code in range(0x20000, 0x110000))
    assert "\\x{300}-" in combining_class()


def test_an_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(SettingsError, match="did you mean 'english'"):
        clean("x", "englich")


FOLDING = [name for name, recipe in RECIPES.items() if recipe.folds]


@pytest.mark.parametrize("recipe", FOLDING)
@given(st.text(st.one_of(st.sampled_from("aAhHiIsSkKΣσ\u0301\u0331\u0307İ. "), st.characters())))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_where_case_folds_it_never_matters(recipe: str, text: str) -> None:
    folded = text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
    assert clean(folded, recipe) == clean(text, recipe)


def test_composed_letters_that_have_one_case_only_forbid_folding() -> None:
    assert clean("H\u0331", "lower") != clean("h\u0331", "lower")
    assert FOLDING == ["english", "bert-uncased"]

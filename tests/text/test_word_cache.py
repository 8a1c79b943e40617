# ruff: noqa: RUF001  (odd characters on purpose)
"""The fast path against the plain one: the same ids, always."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.text import word_cache
from litebert.text.sentencepiece_backend import SentencePieceBackend
from litebert.text.sentencepiece_file import PieceType, write_model
from litebert.text.ties import Ties
from litebert.text.tokenizer import Tokenizer
from litebert.text.word_cache import WordCache

from .conftest import KINDS, NORMALIZATIONS, SENTENCES, Trained

EVERY = [(kind, normalization) for kind in KINDS for normalization in NORMALIZATIONS]
FRAGMENTS = st.sampled_from([
    "the", "cat", "Cat,", "ΟΔΟΣ", "Σ", "ς", "\u0301", "\u0308e", "¨", "´a", "\u200b", "\u00a0",
    "\t", "\n", "\u3000", "▁", "▁the", "漢字", "가", "\u1161", "が", "か\u3099", "lll", "llll",
    "2,000", "(a)", "𝕏", "\U0001f600", "qqq", "'s", "don't", "'", "\x00", "\x85", "\ud800",
    "x" * 45, "é" * 41,
    "[MASK]", "<s>", "ǅ", "İ", "",
])  # fmt: skip
WORDS = st.one_of(FRAGMENTS, st.text(max_size=6))
SPACED = st.tuples(st.lists(st.lists(WORDS, max_size=3).map("".join), max_size=6),
                   st.sampled_from([" ", " ", "  ", "   "]))  # fmt: skip
TEXT = SPACED.map(lambda pair: pair[1].join(pair[0]))


def split(ids: np.ndarray, lengths: np.ndarray) -> list[list[int]]:
    ends = np.cumsum(lengths)
    assert ids.size == (ends[-1] if ends.size else 0)
    return [part.tolist() for part in np.split(ids, ends[:-1])] if ends.size else []


@pytest.mark.parametrize(("kind", "normalization"), EVERY)
@given(texts=st.lists(TEXT, max_size=5))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_a_batch_is_its_texts(
    trained: Trained, kind: str, normalization: str, texts: list[str]
) -> None:
    tokenizer = trained(kind, normalization)
    assert tokenizer._backend.splits_at_spaces
    assert split(*tokenizer.encode_batch(texts)) == tokenizer._encode_texts(texts)


@pytest.mark.parametrize("kind", KINDS)
def test_types_and_the_empty_batch(trained: Trained, kind: str) -> None:
    for texts in ([], ["", " "], SENTENCES):
        ids, lengths = trained(kind, "multilingual").encode_batch(texts)
        assert (ids.dtype, lengths.dtype) == (np.uint32, np.int64)
        assert len(lengths) == len(texts)


def test_the_cache_is_used_and_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "MOST_WORDS", 3)
    asked: list[list[str]] = []

    def words(new: list[str], first: bool) -> list[list[int] | None]:
        asked.append(new)
        return [[len(word)] for word in new]

    cache = WordCache(words, lambda texts: [[99] for _ in texts])
    for _ in range(2):
        assert split(*cache.encode(["a bb", "bb ccc"])) == [[1, 2], [2, 3]]
    assert asked == [["a", "bb", "ccc"]]
    cache.encode(["dddd", "a"])
    assert split(*cache.encode(["a " + "x" * 41, "a"])) == [[99], [1]]
    assert asked == [["a", "bb", "ccc"], ["dddd"], ["a"]]


@pytest.mark.parametrize("first_differs", [False, True])
def test_one_text_goes_by_a_dictionary(
    first_differs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_cache, "MOST_OF_FEW", 3)
    asked: list[tuple[str, bool]] = []

    def words(new: list[str], first: bool) -> list[list[int] | None]:
        asked.extend((word, first) for word in new)
        return [None if word == "?" else [len(word), int(first)] for word in new]

    cache = WordCache(words, lambda texts: [[99] for _ in texts], first_differs=first_differs)
    opens = int(first_differs)
    for _ in range(2):
        assert cache.encode(["a bb a"])[0].tolist() == [1, opens, 2, 0, 1, 0]
    assert asked == ([("a", True)] if first_differs else [("a", False)]) + [
        ("bb", False), *([("a", False)] if first_differs else []),
    ]  # fmt: skip
    for text in ("a " + "x" * 41, "a " + "é" * 21, "bb ?"):  # so long in bytes
        for _ in range(2):
            assert cache.encode([text])[0].tolist() == [99]
    assert all("x" not in word for word, _ in asked)
    cache.encode(["ccc dddd"])  # full
    asked.clear()
    cache.encode(["bb bb"])
    assert asked


def test_words_that_depend_on_their_text_have_it_encoded_whole() -> None:
    cache = WordCache(
        lambda words, first: [None if word == "?" else [1] for word in words],
        lambda texts: [[7] * len(text) for text in texts],
    )
    for _ in range(2):
        assert split(*cache.encode(["a b", "a ?", "", "? ?", "b"])) == [
            [1, 1], [7, 7, 7], [1], [7, 7, 7], [1],
        ]  # fmt: skip


def test_ties_are_tokens_that_can_change_places() -> None:
    tokens = ["<unk>", "k", "kk", "ha", "haha", "ana", "n", "a", "b", "▁"]
    ties = Ties(tokens, np.array([True] + [False] * 9))
    words = [[1, 2], [2, 2], [8, 3, 4], [5, 6, 7], [7, 6, 7], [0, 0], [], [9, 1], [1], [2]]
    assert sorted(ties.words(words)) == [0, 2, 3]
    assert ties.words([]) == []


def test_a_word_keeps_its_ids_where_the_librarys_rounding_would_change_them() -> None:
    """`ab` `c` beats `a` `bc` by less than single precision shows in a long sentence."""
    special = [
        ("<pad>", 0.0, 3),
        ("<unk>", 0.0, 2),
        *((n, 0.0, 3) for n in ("[CLS]", "[SEP]", "[MASK]")),
    ]
    scores = {
        "▁": -2.0,
        "ab": -9.0,
        "c": -9.1,
        "a": -9.05,
        "bc": -9.0500009,
        "b": -20.0,
        "z": -7.77,
    }
    rows = [(name, score, PieceType(kind)) for name, score, kind in special]
    rows += [(name, score, PieceType.NORMAL) for name, score in scores.items()]
    tokenizer = Tokenizer(SentencePieceBackend(write_model(rows)), "none")
    alone = tokenizer.encode("abc")
    text = "z " * 300 + "abc"
    library = tokenizer._encode_texts([text])[0]
    assert library[-2:] != alone[-2:]
    encoding = tokenizer.encode_with_offsets(text)
    assert encoding.ids == tokenizer.encode(text)
    assert encoding.ids[-2:] == alone[-2:]
    assert encoding.offsets[-1][1] == len(text)
    assert text[slice(*encoding.offsets[-2])] == tokenizer.tokens[alone[-2]]

"""Words by number: the table against a dictionary."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.text import word_cache
from litebert.text.word_cache import WordCache
from litebert.text.word_table import WordTable, hash_words, word_bounds


def hashes_of(text: bytes) -> tuple[np.ndarray, np.ndarray]:
    data = np.frombuffer(text, np.uint8)
    return hash_words(data, *word_bounds(data))


@given(st.lists(st.binary(max_size=6).map(lambda word: word.replace(b" ", b"_")), min_size=1))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_words_are_told_apart_wherever_they_stand(words: list[bytes]) -> None:
    first, second = hashes_of(b" ".join(words))
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    assert len(pairs) == len(words)
    assert len(set(pairs)) == len(set(words))
    again = [
        hashes_of(b"x " * place + word)[0][-1] for place, word in enumerate(words)
    ]  # fmt: skip
    assert again == first.tolist()


def test_the_table_is_a_dictionary() -> None:
    """Also while it grows, with words asked for before and after they are entered."""
    chance = random.Random(0)
    words = [str(chance.getrandbits(60)).encode() for _ in range(70_000)]
    first, second = hashes_of(b" ".join(words))
    table = WordTable()
    for start in range(0, len(words), 9_000):
        some = slice(start, start + 9_000)
        assert (table.find((first[some], second[some])) == -1).all()
        table.add((first[some], second[some]), np.arange(start, start + len(first[some])))
        known = table.find((first[: start + 9_000], second[: start + 9_000]))
        assert np.array_equal(known, np.arange(len(known)))
    assert len(table) == len(words)


def test_an_equal_first_hash_alone_is_not_enough() -> None:
    table = WordTable()
    one, other = np.array([5], np.uint64), np.array([6], np.uint64)
    table.add((one, one), np.array([0]))
    table.add((one, other), np.array([1]))
    assert table.find((one, one)).tolist() == [0]
    assert table.find((one, other)).tolist() == [1]
    assert table.find((other, one)).tolist() == [-1]


def test_slices_change_nothing(monkeypatch) -> None:
    def words(new: list[str], first: bool) -> list[list[int]]:
        return [[len(word), first] for word in new]

    chance = random.Random(1)
    texts = [" ".join("ab" * chance.randint(0, 9) for _ in range(chance.randint(0, 9)))
             for _ in range(200)]  # fmt: skip
    texts.append("long " * 200)
    found = []
    for size in (1, 50, 700, 10**6):
        monkeypatch.setattr(word_cache, "AT_ONCE", size)
        cache = WordCache(
            words,
            lambda texts: [
                [n for w, word in enumerate(t.split(" ")) for n in (len(word), w == 0)]
                for t in texts
            ],
            first_differs=True,
        )
        found.append(cache.encode(texts))
    for ids, lengths in found[1:]:
        assert np.array_equal(ids, found[0][0])
        assert np.array_equal(lengths, found[0][1])

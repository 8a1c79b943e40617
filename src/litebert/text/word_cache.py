"""The fast path: encode thousands of texts by looking up their words.

Text repeats its words, and our models cut a text at its spaces before anything else, so the ids of
a text are those of its words in a row. All words of a batch are looked up at once
(text/word_table.py) and all ids gathered; only words never seen before reach the model. They are
normalized inside, on the word as it stands in the raw text.

One short text goes by a dictionary, which is the faster one there: looking up at once takes some
forty calls, however few the words.

Where that would not be exact the text is encoded whole: it holds a word whose ids depend on its
neighbours, or one so long that it will not come again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat

import numpy as np

from litebert.base.ragged import offsets, ranges
from litebert.text.word_table import WordTable, hash_words, word_bounds

AT_ONCE = 2**18  # characters
LONGEST_WORD = 40  # bytes
MOST_WORDS = 1_000_000  # then the cache starts afresh, at about 120 MB
FEW, MOST_OF_FEW = 2_000, 20_000  # characters of a text that goes by the dictionary; its words
_EMPTY, _WHOLE = 0, 1  # rows of the table: no ids; encode the whole text
_FIRST = np.uint64(0xA5A5A5A5A5A5A5A5)  # sets a text's first word apart, where it differs

Ids = Sequence[int]
EncodeWords = Callable[[list[str], bool], Sequence[Ids | None]]
EncodeTexts = Callable[[list[str]], Sequence[Ids]]


class WordCache:
    """Ids of raw words, learned as they come.

    `encode_words(words, first)` gives each word's ids, or None where they depend on the text
    around it; `first` says that the words begin their texts, which matters if `first_differs`.
    With `fold` the case of ASCII letters is known not to matter.
    """

    def __init__(
        self, encode_words: EncodeWords, encode_texts: EncodeTexts, *,
        first_differs: bool = False, fold: bool = False,
    ) -> None:  # fmt: skip
        self._encode_words = encode_words
        self._encode_texts = encode_texts
        self._first_differs = first_differs
        self._fold = fold
        self._forget()

    def encode(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """All ids in a row (uint32), and how many each text has (int64)."""
        if len(texts) == 1 and len(texts[0]) <= FEW:
            one = self._encode_one(texts[0])
            return np.array(one, np.uint32), np.array([len(one)], np.int64)
        parts = [self._encode_some(some) for some in _slices(texts)]
        ids = [np.zeros(0, np.uint32), *(ids for ids, _ in parts)]
        lengths = [np.zeros(0, np.int64), *(lengths for _, lengths in parts)]
        return np.concatenate(ids), np.concatenate(lengths)

    def _encode_one(self, text: str) -> Ids:
        if len(self._few) > MOST_OF_FEW:
            self._few.clear()
        keys = text.split(" ")
        if self._first_differs:
            keys[0] = f" {keys[0]}"  # which no other word begins with
        new = [key for key in dict.fromkeys(keys) if key not in self._few]
        if new:
            words = [key.strip(" ") for key in new]
            if max(len(word.encode("utf-8", "surrogatepass")) for word in words) > LONGEST_WORD:
                return self._encode_texts([text])[0]
            opens = [key.startswith(" ") for key in new]
            self._few.update(zip(new, self._encode_new(words, opens), strict=True))
        rows = [row for key in keys if (row := self._few[key]) is not None]
        if len(rows) < len(keys):
            return self._encode_texts([text])[0]
        return list(chain.from_iterable(rows))

    def _encode_some(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        if len(self._words) > MOST_WORDS:
            self._forget()
        counts = np.fromiter(map(str.count, texts, repeat(" ")), np.int64, len(texts)) + 1
        firsts = offsets(counts)[:-1]
        long = len(texts) == 1 and len(texts[0]) > AT_ONCE
        codes = np.full(counts[0], _WHOLE) if long else self._look_up(texts, firsts)
        learned = self._table.size
        self._encode_whole(texts, codes, counts, firsts)
        lengths_of_words, ids = self._table.gather(codes)
        self._table.cut(*learned)
        return ids, np.add.reduceat(lengths_of_words, firsts)

    def _look_up(self, texts: Sequence[str], firsts: np.ndarray) -> np.ndarray:
        """The table's row of each word; words not seen before are learned."""
        joined = " ".join(texts).encode("utf-8", "surrogatepass")
        if self._fold:
            joined = joined.lower()
        starts, ends = word_bounds(np.frombuffer(joined, np.uint8))
        hashes = hash_words(np.frombuffer(joined, np.uint8), starts, ends)
        opens = np.zeros(len(starts), bool)
        if self._first_differs:
            opens[firsts] = True
            hashes[0][firsts] ^= _FIRST
        codes = self._words.find(hashes)
        missing = np.flatnonzero(codes < 0)
        short = missing[ends[missing] - starts[missing] <= LONGEST_WORD]
        if short.size:
            _, places = np.unique(hashes[0][short], return_index=True)
            new = short[np.sort(places)]
            bounds = zip(starts[new].tolist(), ends[new].tolist(), strict=True)
            words = [joined[a:b].decode("utf-8", "surrogatepass") for a, b in bounds]
            numbers = self._table.size[0] + np.arange(len(new))
            self._table.append(self._encode_new(words, opens[new].tolist()))
            self._words.add((hashes[0][new], hashes[1][new]), numbers)
            codes[missing] = self._words.find((hashes[0][missing], hashes[1][missing]))
        codes[codes < 0] = _WHOLE  # too long to come again
        return codes

    def _encode_new(self, words: list[str], opens: list[bool]) -> Sequence[Ids | None]:
        if not self._first_differs:
            return self._encode_words(words, False)
        pairs = list(zip(words, opens, strict=True))
        openers = iter(self._encode_words([word for word, first in pairs if first], True))
        others = iter(self._encode_words([word for word, first in pairs if not first], False))
        return [next(openers if first else others) for first in opens]

    def _encode_whole(
        self, texts: Sequence[str], codes: np.ndarray, counts: np.ndarray, firsts: np.ndarray
    ) -> None:
        """Give texts that cannot be taken word by word a code of their own, for this batch."""
        marked = np.flatnonzero(self._table.is_whole(codes))
        if marked.size == 0:
            return
        which = np.unique(np.searchsorted(firsts, marked, side="right") - 1)
        inside = np.zeros(len(texts), bool)
        inside[which] = True
        codes[np.repeat(inside, counts)] = _EMPTY
        codes[firsts[which]] = self._table.size[0] + np.arange(which.size)
        chosen: list[int] = which.tolist()
        self._table.append(self._encode_texts([texts[index] for index in chosen]))

    def _forget(self) -> None:
        self._few: dict[str, Ids | None] = {}
        self._words = WordTable()
        self._table = _Table()
        self._table.append([(), None])  # _EMPTY, _WHOLE


def _slices(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Texts in groups whose arrays stay in the processor's cache; a long text alone."""
    start = size = 0
    for place, text in enumerate(texts):
        if place > start and size + len(text) > AT_ONCE:
            yield texts[start:place]
            start, size = place, 0
        size += len(text) + 1
    if len(texts):
        yield texts[start:]


class _Table:
    """Rows of ids in one growing array; a row of length -1 says "encode the text as a whole"."""

    def __init__(self) -> None:
        self.size = (0, 0)  # rows, ids
        self._ids = np.zeros(1 << 16, np.uint32)
        self._starts = np.zeros(1 << 14, np.int64)
        self._lengths = np.zeros(1 << 14, np.int64)

    def append(self, rows: Sequence[Ids | None]) -> None:
        lengths = np.fromiter((-1 if row is None else len(row) for row in rows), np.int64)
        kept = np.maximum(lengths, 0)
        total = int(kept.sum())
        row_count, id_count = self.size
        self._starts = _grown(self._starts, row_count + len(rows))
        self._lengths = _grown(self._lengths, row_count + len(rows))
        self._ids = _grown(self._ids, id_count + total)
        self._starts[row_count : row_count + len(rows)] = id_count + offsets(kept)[:-1]
        self._lengths[row_count : row_count + len(rows)] = lengths
        flat = chain.from_iterable(row for row in rows if row is not None)
        self._ids[id_count : id_count + total] = np.fromiter(flat, np.uint32, total)
        self.size = (row_count + len(rows), id_count + total)

    def cut(self, rows: int, ids: int) -> None:
        self.size = (rows, ids)

    def is_whole(self, codes: np.ndarray) -> np.ndarray:
        return self._lengths[codes] < 0

    def gather(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lengths of the rows asked for, and their ids in a row."""
        lengths = self._lengths[codes]
        return lengths, self._ids[ranges(self._starts[codes], lengths)]


def _grown(array: np.ndarray, needed: int) -> np.ndarray:
    """The array, or one of at least twice the size with the same beginning."""
    if needed <= array.size:
        return array
    larger = np.zeros(max(needed, 2 * array.size), array.dtype)
    larger[: array.size] = array
    return larger

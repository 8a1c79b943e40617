"""The fast path: encode thousands of texts with a dictionary lookup per word.

Text repeats its words, and our models cut a text at its spaces before anything else, so the ids of
a text are those of its words in a row. A batch is joined and split once, each word looked up, and
all ids gathered by numpy; only words never seen before reach the model. Cleaning happens inside,
on the word as it stands in the raw text.

Where that would not be exact the text is encoded whole: it holds a word whose ids depend on its
neighbours, or one so long that it will not come again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, count, repeat

import numpy as np

LONGEST_WORD = 40  # characters
MOST_WORDS = 690_000  # then the cache starts afresh, at about 120 MB
_UNKNOWN, _EMPTY, _WHOLE = -1, 0, 1  # codes: not seen yet; no ids; encode the whole text

Ids = Sequence[int]
EncodeWords = Callable[[list[str], bool], Sequence[Ids | None]]
EncodeTexts = Callable[[list[str]], Sequence[Ids]]


class WordCache:
    """Ids of raw words, learned as they come.

    `encode_words(words, first)` gives each word's ids, or None where they depend on the text
    around it; `first` says that the words begin their texts, which matters if `first_differs`.
    """

    def __init__(
        self, encode_words: EncodeWords, encode_texts: EncodeTexts, *, first_differs: bool = False
    ) -> None:
        self._encode_words = encode_words
        self._encode_texts = encode_texts
        self._first_differs = first_differs
        self._forget()

    def encode(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """All ids in a row (uint32), and how many each text has (int64)."""
        if not texts:
            return np.zeros(0, np.uint32), np.zeros(0, np.int64)
        if len(self._codes) > MOST_WORDS:
            self._forget()
        counts = np.fromiter(map(str.count, texts, repeat(" ")), np.int64, len(texts)) + 1
        firsts = np.cumsum(counts) - counts
        codes = self._look_up(texts, firsts)
        learned = self._table.size
        self._encode_whole(texts, codes, counts, firsts)
        lengths_of_words, ids = self._table.gather(codes)
        self._table.cut(*learned)
        return ids, np.add.reduceat(lengths_of_words, firsts)

    def _look_up(self, texts: Sequence[str], firsts: np.ndarray) -> np.ndarray:
        words = " ".join(texts).split(" ")
        if self._first_differs:  # no raw word has a space: it marks first words
            for position in firsts.tolist():
                words[position] = " " + words[position]
        known = map(self._codes.get, words, repeat(_UNKNOWN))
        codes = np.fromiter(known, np.int64, len(words))
        unknown = np.flatnonzero(codes == _UNKNOWN)
        if unknown.size:
            codes[unknown] = self._learn([words[index] for index in unknown.tolist()])
        return codes

    def _learn(self, words: list[str]) -> np.ndarray:
        """Codes for words not seen before; those too long to come again are not kept."""
        new = [word for word in dict.fromkeys(words) if len(word) <= LONGEST_WORD]
        row = self._table.size[0]
        if self._first_differs:
            ids = self._learn_in_two(new, [word.startswith(" ") for word in new])
        else:
            ids = self._encode_words(new, False)
        self._table.append(ids)
        self._codes.update(zip(new, count(row), strict=False))
        return np.fromiter(map(self._codes.get, words, repeat(_WHOLE)), np.int64, len(words))

    def _learn_in_two(self, new: list[str], first: list[bool]) -> Sequence[Ids | None]:
        pairs = list(zip(new, first, strict=True))
        openers = iter(self._encode_words([word[1:] for word, opens in pairs if opens], True))
        others = iter(self._encode_words([word for word, opens in pairs if not opens], False))
        return [next(openers if opens else others) for opens in first]

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
        self._codes: dict[str, int] = {}
        self._table = _Table()
        self._table.append([(), None])  # _EMPTY, _WHOLE


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
        self._starts[row_count : row_count + len(rows)] = id_count + np.cumsum(kept) - kept
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
        shift = self._starts[codes] - (np.cumsum(lengths) - lengths)
        return lengths, self._ids[np.repeat(shift, lengths) + np.arange(lengths.sum())]


def _grown(array: np.ndarray, needed: int) -> np.ndarray:
    """The array, or one of at least twice the size with the same beginning."""
    if needed <= array.size:
        return array
    larger = np.zeros(max(needed, 2 * array.size), array.dtype)
    larger[: array.size] = array
    return larger

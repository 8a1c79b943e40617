"""Batches of words whose pieces can be told apart, and how many of them are to be masked."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
from numpy.typing import NDArray

from litebert.base.batches import Batch
from litebert.objectives.masking import Masker, Masking
from tests.corpus.stores import SPECIAL

UNITS = ("token", "word", "ngram", "span")
STARTS, TAILS = range(5, 105), range(105, 205)  # pieces that begin a word, and that continue one
VOCABULARY = 205
Shape = list[list[int]]  # pieces of each word, of each segment of a sequence


def make_tokenizer() -> Any:
    starts = np.zeros(VOCABULARY, dtype=bool)
    starts[: STARTS.stop] = True
    special = np.zeros(VOCABULARY, dtype=bool)
    special[:5] = True
    return SimpleNamespace(
        checksum="",
        word_starts=starts,
        special=SPECIAL,
        special_mask=special,
        vocab_size=VOCABULARY,
    )


def make_batch(shapes: list[Shape], seed: int = 0, cut_first: bool = False) -> Batch:
    """Sequences [CLS] A [SEP] B [SEP] …; with `cut_first` segments begin within a word."""
    chance = np.random.default_rng(seed)
    ids, types, inside, begins, lengths = [], [], [], [], []
    for shape in shapes:
        before = len(ids)
        ids, types, inside, begins = [*ids, 2], [*types, 0], [*inside, False], [*begins, False]
        for number, words in enumerate(shape):
            text = []
            for pieces in words:
                text.append(int(chance.integers(STARTS.start, STARTS.stop)))
                text += chance.integers(TAILS.start, TAILS.stop, pieces - 1).tolist()
            if cut_first:
                text[0] = TAILS.start
            ids += [*text, SPECIAL.sep]
            types += [number] * (len(text) + 1)
            inside += [True] * len(text) + [False]
            begins += [True] + [False] * len(text)
        lengths.append(len(ids) - before)
    return Batch(
        ids=np.array(ids, dtype=np.int32),
        token_types=np.array(types, dtype=np.int8),
        is_text=np.array(inside, dtype=bool),
        segment_starts=np.array(begins, dtype=bool),
        lengths=np.array(lengths, dtype=np.int64),
        labels=np.zeros(len(shapes), dtype=np.int8),
        keys=chance.integers(0, 2**64, len(shapes), dtype=np.uint64),
    )


def alike(shape: Shape, count: int, seed: int = 0) -> Batch:
    """Many sequences of one shape; their names, and so their masks, differ."""
    one = make_batch([shape], seed)
    return Batch(
        **{
            name: np.tile(getattr(one, name), count)
            for name in ("ids", "token_types", "is_text", "segment_starts", "lengths", "labels")
        },
        keys=np.random.default_rng(seed + 1).integers(0, 2**64, count, dtype=np.uint64),
    )


def mask(batch: Batch, **options) -> Batch:
    return Masker(Masking(**options), make_tokenizer())(batch)


def word_bounds(batch: Batch) -> list[tuple[int, int]]:
    """[start, end) of every word, told token by token."""
    bounds: list[list[int]] = []
    for place, (one, inside, begins) in enumerate(
        zip(batch.ids.tolist(), batch.is_text.tolist(), batch.segment_starts.tolist(), strict=True)
    ):
        if not inside:
            continue
        if begins or one in STARTS:
            bounds.append([place, place + 1])
        else:
            bounds[-1][1] = place + 1
    return [(start, end) for start, end in bounds]


def wanted_budget(length: int, rounding: str = "nearest", most: int | None = None) -> int:
    """Facts B: min(20, max(1, round(0.15 len))) with the special tokens; SpanBERT rounds up."""
    count = round(0.15 * length) if rounding == "nearest" else math.ceil(0.15 * length)
    return min(max(count, 1), most or length)


shapes = st.lists(
    st.lists(
        st.lists(st.integers(1, 5), min_size=1, max_size=25), min_size=1, max_size=3
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip


def piece_counts() -> NDArray[np.int64]:
    """A steep distribution with gaps; of the special pieces only the unknown one occurs."""
    counts = np.array([200_000 // (rank + 1) for rank in range(VOCABULARY)], dtype=np.int64)
    counts[::7] = 0
    counts[:5] = [0, 40_000, 0, 0, 0]
    return counts

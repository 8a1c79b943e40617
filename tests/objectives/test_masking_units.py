"""Which tokens are masked: n-grams and spans, against slow, literal versions of the papers."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from litebert.base.batches import Batch
from litebert.objectives.masking import Masking, choose, find_words
from tests.corpus.stores import assert_distributed, assert_same_distribution
from tests.objectives.word_batches import (
    Shape,
    alike,
    make_batch,
    make_tokenizer,
    mask,
    wanted_budget,
    word_bounds,
)


@pytest.mark.parametrize("unit", ["token", "word"])
def test_every_token_is_hidden_as_often_as_any_other(unit: str) -> None:
    batch = alike([[1] * 17, [1] * 20], 20_000)
    found = mask(batch, unit=unit)
    places = np.bincount(batch.position_ids[found.positions], minlength=40)
    assert places[[0, 18, 39]].tolist() == [0, 0, 0]
    text = places[[place for place in range(40) if place not in (0, 18, 39)]]
    assert_distributed(text, np.full(37, text.sum() / 37))


def chosen_runs(batch: Batch, options: Masking) -> list[list[list[int]]]:
    """For each sequence the runs that hid something, in the order in which they were chosen."""
    tokenizer = make_tokenizer()
    starts = (tokenizer.word_starts[batch.ids] | batch.segment_starts) & batch.is_text
    runs = choose(batch, find_words(batch, starts), options)
    found: list[dict[int, list[int]]] = [{} for _ in range(len(batch))]
    for place in np.flatnonzero(runs).tolist():
        sequence = int(batch.sequence_ids[place])
        found[sequence].setdefault(int(runs[place]), []).append(int(batch.position_ids[place]))
    return [[tokens for _, tokens in sorted(one.items())] for one in found]


def literal_ngrams(shape: Shape, budget: int, chance: random.Random) -> list[list[int]]:
    """Facts B's rule a candidate at a time; n-grams stay within their segment."""
    segments, place = [], 1
    for words in shape:
        segment = []
        for pieces in words:
            segment.append(list(range(place, place + pieces)))
            place += pieces
        segments.append(segment)
        place += 1
    candidates = [
        [segment[start : start + n] for n in (1, 2, 3) if start + n <= len(segment)]
        for segment in segments
        for start in range(len(segment))
    ]
    chance.shuffle(candidates)
    covered: set[int] = set()
    runs = []
    for grams in candidates:
        if len(covered) >= budget:
            break
        n = chance.choices(range(len(grams)), [1 / (n + 1) for n in range(len(grams))])[0]
        while n >= 0 and len(covered) + sum(map(len, grams[n])) > budget:
            n -= 1
        if n < 0:
            continue
        tokens = [token for word in grams[n] for token in word]
        if covered & set(tokens):
            continue
        covered |= set(tokens)
        runs.append(tokens)
    return runs


NGRAM_SHAPES: list[Shape] = [
    [[1] * 60],
    [[1, 1, 2, 1, 1, 1, 3, 1, 1, 2] * 36],  # 506 tokens, of which Google hides 20
    [[1, 2, 1, 1, 3, 1, 2, 1, 1, 1, 4, 1] * 4, [2, 1, 1, 1, 1, 3] * 6],
    [[3, 3, 3, 2, 3, 2] * 3, [1, 5]],
    [[1, 1], [2, 1, 1], [1]],
]


@pytest.mark.parametrize("shape", NGRAM_SHAPES)
def test_ngrams_are_distributed_like_the_literal_rule(shape: Shape) -> None:
    batch = alike(shape, 2500 if len(shape[0]) < 100 else 600)
    count = len(batch)
    budget = wanted_budget(int(batch.lengths[0]), most=20)
    ours = chosen_runs(batch, Masking(max_predictions=20))
    chance = random.Random(0)
    literal = [literal_ngrams(shape, budget, chance) for _ in range(count)]
    starts = {start for start, _ in word_bounds(make_batch([shape]))}

    def words(run: list[int]) -> int:
        return len(starts & set(run))

    def compare(measure: Any) -> None:
        one, two = (Counter(m for runs in some for m in measure(runs)) for some in (ours, literal))
        cells = sorted({*one, *two})
        assert_same_distribution([one[cell] for cell in cells], [two[cell] for cell in cells])

    compare(lambda runs: [words(run) for run in runs])  # accepted lengths in words
    compare(lambda runs: [words(run) for run in runs[:1]])
    compare(lambda runs: [sum(map(len, runs))])  # tokens hidden
    compare(lambda runs: [len(runs)])
    compare(lambda runs: [run[0] for run in runs])  # where they begin
    compare(lambda runs: [run[0] for run in runs[:1]])


def test_ngram_lengths_as_drawn() -> None:
    """The first run of a sequence is never in anybody's way: 6/11, 3/11, 2/11."""
    batch = alike([[1] * 78], 12_000)
    first = [runs[0] for runs in chosen_runs(batch, Masking())]
    lengths = [len(run) for run in first if run[0] <= 76]
    assert_distributed(
        np.bincount(lengths, minlength=4)[1:], np.array([6, 3, 2]) / 11 * len(lengths)
    )
    five = [runs[0] for runs in chosen_runs(batch, Masking(max_ngram=5))]
    lengths = [len(run) for run in five if run[0] <= 74]
    chances = 1 / np.arange(1, 6)
    assert_distributed(np.bincount(lengths)[1:], chances / chances.sum() * len(lengths))


def test_runs_never_cross_a_separator() -> None:
    batch = alike([[1] * 4, [1] * 4, [1] * 4], 2000)
    for unit in ("ngram", "span"):
        for runs in chosen_runs(batch, Masking(unit=unit, fraction=0.4)):
            assert (
                all(two - one == 1 for run in runs for one, two in pairwise(run)) or unit == "span"
            )
            assert all((run[0] - 1) // 5 == (run[-1] - 1) // 5 for run in runs)


GEOMETRIC = 0.2 * 0.8 ** np.arange(10) / (1 - 0.8**10)


def test_span_lengths_as_drawn_are_geometric() -> None:
    """The first span of a sequence, where ten words and a budget of ten are left, is as drawn."""
    batch = alike([[1] * 100], 12_000)
    first = [runs[0] for runs in chosen_runs(batch, Masking(unit="span"))]
    lengths = np.array([len(run) for run in first if run[0] <= 91])
    assert_distributed(np.bincount(lengths, minlength=11)[1:], GEOMETRIC * len(lengths))
    mean = float((GEOMETRIC * np.arange(1, 11)).sum())
    assert round(mean, 2) == 3.80
    assert abs(lengths.mean() - mean) < 5 * lengths.std() / math.sqrt(len(lengths))


def literal_spans(words: list[int], budget: int, chance: random.Random) -> set[int]:
    """SpanBERT's rule a token at a time: anchors moved to their word's start, words until full."""
    owner = [word for word, pieces in enumerate(words) for _ in range(pieces)]
    ends = np.cumsum(words).tolist()
    hidden: set[int] = set()
    while len(hidden) < min(budget, len(owner)):
        length = chance.choices(range(1, 11), GEOMETRIC)[0]
        anchor = chance.randrange(len(owner))
        if anchor in hidden:
            continue
        word = owner[anchor]
        stop = min(word + length, len(words))
        for token in range(ends[word] - words[word], ends[stop - 1]):
            if len(hidden) < budget:
                hidden.add(token)
    return {token + 1 for token in hidden}  # after [CLS]


@pytest.mark.parametrize("words", [[1] * 80, [1, 2, 1, 4, 1, 1, 3] * 8, [6, 1, 1, 5] * 4])
def test_spans_are_distributed_like_the_literal_rule(words: list[int]) -> None:
    count = 4000
    batch = alike([words], count)
    budget = wanted_budget(int(batch.lengths[0]), "up")
    found = mask(batch, unit="span", rounding="up")
    ours: list[set[int]] = [set() for _ in range(count)]
    for place in found.positions.tolist():
        ours[int(batch.sequence_ids[place])].add(int(batch.position_ids[place]))
    chance = random.Random(0)
    literal = [literal_spans(words, budget, chance) for _ in range(count)]
    assert {len(hidden) for hidden in ours} == {budget}

    def merged(hidden: set[int]) -> list[int]:
        begins = sorted(token for token in hidden if token - 1 not in hidden)
        ends = sorted(token for token in hidden if token + 1 not in hidden)
        return [end - begin + 1 for begin, end in zip(begins, ends, strict=True)]

    for measure in (merged, lambda hidden: [len(merged(hidden))], sorted):
        one, two = (
            Counter(m for hidden in some for m in measure(hidden)) for some in (ours, literal)
        )
        cells = sorted({*one, *two})
        assert_same_distribution([one[cell] for cell in cells], [two[cell] for cell in cells])

"""Masking: exact budgets, whole words, and the papers' chances against slow, literal versions."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from litebert.base.batches import Batch, concatenate
from litebert.objectives.masking import Masker, Masking, choose, find_words, mask_counts
from tests.corpus.stores import (
    SPECIAL,
    assert_distributed,
    assert_same_distribution,
    binomial_error,
)

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


@pytest.mark.parametrize("unit", UNITS)
@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    shapes=shapes,
    seed=st.integers(0, 10**6),
    rounding=st.sampled_from(["nearest", "up", "random"]),
    most=st.one_of(st.none(), st.integers(1, 8)),
    cut_first=st.booleans(),
)
def test_any_batch(
    unit: str, shapes: list[Shape], seed: int, rounding: str, most: int | None, cut_first: bool
) -> None:
    batch = make_batch(shapes, seed, cut_first)
    before = batch.ids.copy()
    found = mask(batch, unit=unit, rounding=rounding, max_predictions=most)
    assert (batch.ids == before).all(), "the batch given was changed"
    assert batch.is_text[found.positions].all()
    assert (np.diff(found.positions) > 0).all()
    assert found.targets.tolist() == before[found.positions].tolist()
    hidden = np.zeros(len(before), dtype=bool)
    hidden[found.positions] = True
    assert (found.ids[~hidden] == before[~hidden]).all()
    for name in ("token_types", "is_text", "segment_starts", "lengths", "labels", "keys"):
        assert getattr(found, name) is getattr(batch, name)
    counts = np.bincount(batch.sequence_ids[found.positions], minlength=len(batch))
    bounds = word_bounds(batch)
    for number, (length, count) in enumerate(zip(batch.lengths.tolist(), counts, strict=True)):
        text = int(batch.is_text[batch.sequence_ids == number].sum())
        if rounding == "random":
            low = min(max(math.floor(0.15 * length), 1), most or length)
            high = min(max(math.ceil(0.15 * length), 1), most or length)
        else:
            low = high = wanted_budget(length, rounding, most)
        assert count <= high
        if unit in ("token", "span"):
            assert min(low, text) <= count
        if unit == "word" and rounding != "random":
            free = [end - start for start, end in bounds
                    if batch.sequence_ids[start] == number and not hidden[start]]  # fmt: skip
            assert all(size > high - count for size in free), "a word that fits was left out"
    if unit in ("word", "ngram"):
        assert all(hidden[start:end].all() or not hidden[start:end].any() for start, end in bounds)


@pytest.mark.parametrize("rounding", ["nearest", "up"])
@pytest.mark.parametrize("most", [None, 20, 5])
def test_budgets_are_exact_at_every_length(rounding: Any, most: int | None) -> None:
    batch = make_batch([[[1]]])
    lengths = np.arange(3, 1025)
    many = replace(batch, lengths=lengths, keys=np.arange(len(lengths), dtype=np.uint64))
    found = mask_counts(many, Masking(rounding=rounding, max_predictions=most))
    assert found.tolist() == [wanted_budget(n, rounding, most) for n in lengths.tolist()]


def test_google_masks_twenty_of_512() -> None:
    batch = alike([[1] * 300, [1] * 209], 20)
    assert batch.lengths[0] == 512
    assert len(mask(batch, max_predictions=20).positions) == 20 * 20
    assert len(mask(batch).positions) == 77 * 20


def test_roberta_rounds_at_random_and_right_on_average() -> None:
    """int(0.15 n + U(0, 1))."""
    for length in (20, 21, 23, 26, 128):
        batch = alike([[1] * (length - 2)], 20_000)
        found = mask_counts(batch, Masking(rounding="random"))
        share = 0.15 * length % 1
        assert set(found.tolist()) <= {math.floor(0.15 * length), math.ceil(0.15 * length)}
        up = float((found > math.floor(0.15 * length)).mean())
        assert abs(up - share) <= binomial_error(len(batch), share) + 1e-9


@pytest.mark.parametrize("unit", UNITS)
def test_the_budget_is_filled_where_words_are_single_pieces(unit: str) -> None:
    for length in (16, 40, 128):
        batch = alike([[1] * (length // 2), [1] * (length - length // 2 - 3)], 300)
        found = mask(batch, unit=unit)
        counts = np.bincount(batch.sequence_ids[found.positions], minlength=300)
        assert (counts == wanted_budget(length)).all()


@pytest.mark.parametrize("unit", UNITS)
def test_a_sequence_of_one_token_hides_it(unit: str) -> None:
    found = mask(alike([[1]], 5), unit=unit)
    assert found.positions.tolist() == [1, 4, 7, 10, 13]


@pytest.mark.parametrize("unit", UNITS)
def test_an_empty_batch_stays_empty(unit: str) -> None:
    batch = make_batch([])
    assert len(mask(batch, unit=unit).positions) == 0


# Which tokens.


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


# Spans.


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


# What stands in their place.


def kinds(found: Batch) -> np.ndarray:
    """0 [MASK], 1 another token, 2 the token itself (a random token may be either by chance)."""
    now = found.ids[found.positions]
    return np.where(now == SPECIAL.mask, 0, np.where(now == found.targets, 2, 1))


def expected_kinds(shares: tuple[float, float, float]) -> np.ndarray:
    """With random tokens drawn from all of the vocabulary."""
    hidden, other, same = shares
    lucky = other / VOCABULARY
    return np.array([hidden + lucky, other - 2 * lucky, same + lucky])


@pytest.mark.parametrize("unit", UNITS)
def test_eighty_ten_ten(unit: str) -> None:
    batch = alike([[1, 2, 1, 3] * 14], 3000)
    found = mask(batch, unit=unit)
    counts = np.bincount(kinds(found), minlength=3)
    assert counts.sum() > 40_000
    assert_distributed(counts, expected_kinds((0.8, 0.1, 0.1)) * counts.sum())


@pytest.mark.parametrize(("hidden", "other"), [(0.85, 0.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)])
def test_other_shares(hidden: float, other: float) -> None:
    """ELECTRA: 85 % [MASK], the rest unchanged."""
    found = mask(alike([[1] * 60], 2000), unit="token", mask_fraction=hidden, random_fraction=other)
    counts = np.bincount(kinds(found), minlength=3)
    assert_distributed(counts, expected_kinds((hidden, other, 1 - hidden - other)) * counts.sum())


def test_each_piece_is_decided_on_its_own() -> None:
    batch = alike([[2] * 30], 4000)
    found = mask(batch, unit="word")
    kind = kinds(found).reshape(-1, 2)
    table = np.bincount(kind[:, 0] * 3 + kind[:, 1], minlength=9)
    shares = expected_kinds((0.8, 0.1, 0.1))
    assert_distributed(table, np.outer(shares, shares).ravel() * table.sum())


@pytest.mark.parametrize("unit", ["span", "ngram"])
def test_per_span_is_one_decision_for_each_merged_run(unit: str) -> None:
    batch = alike([[1, 2] * 12, [1] * 20], 6000)
    found = mask(batch, unit=unit, per_span=True, random_special_tokens=False)
    kind = kinds(found)
    begins = np.append(True, np.diff(found.positions) > 1)
    run = np.cumsum(begins) - 1
    first = kind[begins]
    replaced = np.bincount(run, kind == 1) > 0  # a filler can equal the token, by chance
    hidden = np.bincount(run, kind == 0) > 0
    size = np.bincount(run)
    assert (np.bincount(run, kind == 0)[hidden] == size[hidden]).all()
    assert not (replaced & hidden).any()
    lucky = np.bincount(run, kind == 2)[replaced].sum() / size[replaced].sum()
    assert lucky < 0.03
    assert len(first) > 10_000
    shares = np.array([hidden.mean(), replaced.mean(), 1 - hidden.mean() - replaced.mean()])
    assert np.abs(shares - [0.8, 0.1, 0.1]).max() < binomial_error(len(first), 0.8) + 0.001


@pytest.mark.parametrize("specials", [True, False])
def test_random_tokens_are_uniform(specials: bool) -> None:
    batch = alike([[1] * 100], 6000)
    found = mask(
        batch, unit="token", mask_fraction=0.0, random_fraction=1.0, random_special_tokens=specials
    )
    counts = np.bincount(found.ids[found.positions], minlength=VOCABULARY)
    expected = np.full(VOCABULARY, 1.0)
    expected[:5] = specials
    assert_distributed(counts, expected / expected.sum() * counts.sum())


def test_the_filler_does_not_depend_on_the_decision() -> None:
    batch = alike([[1] * 100], 10_000)
    found = mask(
        batch, unit="token", mask_fraction=0.4, random_fraction=0.2, random_special_tokens=False
    )
    replaced = found.ids[found.positions][kinds(found) == 1]
    counts = np.bincount(replaced, minlength=VOCABULARY)[5:]
    same = np.bincount(found.targets[kinds(found) == 1], minlength=VOCABULARY)[5:]
    expected = (counts.sum() - same) / (VOCABULARY - 6)  # never the token itself: that looks kept
    assert_distributed(counts, expected * counts.sum() / expected.sum())


# Purity.


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("per_span", [False, True])
def test_a_sample_is_masked_alike_in_any_batch(unit: str, per_span: bool) -> None:
    chance = np.random.default_rng(0)
    batches = [
        make_batch([[chance.integers(1, 4, int(chance.integers(1, 30))).tolist()
                     for _ in range(int(chance.integers(1, 3)))]], seed)
        for seed in range(30)
    ]  # fmt: skip
    options = {"unit": unit, "per_span": per_span, "rounding": "random"}
    alone = [mask(batch, **options) for batch in batches]
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(30)[: 30 - 5 * seed].tolist()
        found = mask(concatenate([batches[number] for number in order]), **options)
        for place, number in enumerate(order):
            here = slice(found.starts[place], found.starts[place] + found.lengths[place])
            assert found.ids[here].tolist() == alone[number].ids.tolist()
            inside = found.positions[found.sequence_ids[found.positions] == place]
            assert (inside - found.starts[place]).tolist() == alone[number].positions.tolist()


def test_names_decide_the_mask() -> None:
    batch = alike([[1] * 200], 50)
    found = mask(batch)
    assert found.ids.tolist() == mask(batch).ids.tolist()
    rows = found.ids.reshape(50, -1)
    assert len({row.tobytes() for row in rows}) == 50
    other = mask(replace(batch, keys=batch.keys + np.uint64(1)))
    assert not (other.ids.reshape(50, -1) == rows).all(axis=1).any()


@pytest.mark.parametrize("wrong", [
    {"mask_fraction": 0.8, "random_fraction": 0.3}, {"fraction": 0.0}, {"fraction": 1.0},
    {"max_predictions": 0}, {"max_ngram": 0}, {"unit": "letter"}, {"rounding": "down"},
    {"mask_fraction": -0.1},
])  # fmt: skip
def test_settings_that_make_no_sense_are_refused(wrong: dict) -> None:
    with pytest.raises(ValidationError):
        Masking(**wrong)

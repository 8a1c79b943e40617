"""Masking: exact budgets, whole words, and masks that the names of samples alone decide."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from litebert.base.batches import concatenate
from litebert.objectives.masking import Masking, mask_counts
from tests.corpus.stores import binomial_error
from tests.objectives.word_batches import (
    UNITS,
    Shape,
    alike,
    make_batch,
    mask,
    shapes,
    wanted_budget,
    word_bounds,
)


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

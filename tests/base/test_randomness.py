"""Stateless chance: uniform, independent by name, exact at its bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from litebert.base.randomness import Purpose, binomial, integers, permutation, random_bits, uniform
from tests.corpus.stores import assert_distributed, binomial_error

MILLION = 10**6


def test_a_draw_is_a_pure_function_of_its_names() -> None:
    many = random_bits(Purpose.SPLIT, 7, np.arange(1000))
    assert many.dtype == np.uint64
    for number in (0, 1, 999):
        assert random_bits(Purpose.SPLIT, 7, number) == many[number]
    grid = random_bits(np.arange(4)[:, None], np.arange(5)[None, :])
    assert grid.shape == (4, 5)
    assert grid[3, 2] == random_bits(3, 2)


def test_purposes_are_numbered_once() -> None:
    assert len({int(purpose) for purpose in Purpose}) == len(Purpose)


@pytest.mark.parametrize(
    ("name", "count"), [("last", MILLION), ("middle", 10**5), ("first", 10**5)]
)
def test_names_never_collide(name: str, count: int) -> None:
    many = np.arange(count)
    names = {"last": (5, 9, many), "middle": (5, many, 9), "first": (many, 5, 9)}[name]
    assert len(np.unique(random_bits(*names))) == count


def test_order_number_and_value_of_names_all_matter() -> None:
    grid = random_bits(np.arange(300)[:, None], np.arange(300)[None, :])
    assert len(np.unique(grid)) == 300**2  # so (a, b) is never (b, a)
    assert random_bits(1) != random_bits(1, 0) != random_bits(1, 0, 0)
    assert len({int(random_bits(purpose, 3, 4)) for purpose in Purpose}) == len(Purpose)


def test_every_bit_is_fair_and_every_bit_of_a_name_moves_half_of_them() -> None:
    plain = random_bits(Purpose.SAMPLE, 0, np.arange(100_000))
    for bit in range(64):
        ones = float(((plain >> np.uint64(bit)) & np.uint64(1)).mean())
        assert abs(ones - 0.5) < binomial_error(len(plain), 0.5)
    names = np.arange(20_000, dtype=np.uint64)
    for bit in (0, 1, 17, 31, 63):
        moved = random_bits(1, names) ^ random_bits(1, names ^ np.uint64(1 << bit))
        share = np.bitwise_count(moved).sum() / (64 * len(names))
        assert abs(share - 0.5) < binomial_error(64 * len(names), 0.5)


@pytest.mark.parametrize("purpose", [Purpose.SHORT_SEQ, Purpose.NEGATIVE, Purpose.MASK_KIND])
def test_uniform_is_uniform(purpose: Purpose) -> None:
    found = uniform(random_bits(purpose, 3, 0, np.arange(300_000)))
    assert found.min() >= 0
    assert found.max() < 1
    counts, _ = np.histogram(found, bins=1000, range=(0, 1))
    assert_distributed(counts, np.full(1000, 300))
    assert uniform(np.array([0, 2**64 - 1], dtype=np.uint64)).tolist() == [0, 1 - 2**-53]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ((Purpose.SHORT_SEQ, 0), (Purpose.NEGATIVE, 0)),  # by purpose
        ((Purpose.SPLIT, 0), (Purpose.SPLIT, 1)),  # by seed, epoch or copy
        ((Purpose.SPLIT, 0, 1), (Purpose.SPLIT, 1, 0)),  # by order
    ],
)
def test_draws_of_different_names_are_independent(one: tuple, two: tuple) -> None:
    many = np.arange(400_000)
    pairs = integers(random_bits(*one, many), 20) * 20 + integers(random_bits(*two, many), 20)
    assert_distributed(np.bincount(pairs, minlength=400), np.full(400, len(many) / 400))


def test_neighbours_are_independent() -> None:
    found = integers(random_bits(Purpose.MASK_ORDER, np.arange(400_001)), 20)
    pairs = found[1:] * 20 + found[:-1]
    assert_distributed(np.bincount(pairs, minlength=400), np.full(400, len(pairs) / 400))


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
def test_integers_is_uniform_and_stays_below(limit: int) -> None:
    found = integers(random_bits(Purpose.SPLIT, np.arange(100_000)), limit)
    counts = np.bincount(found, minlength=limit)
    assert len(counts) == limit
    assert_distributed(counts, np.full(limit, len(found) / limit))


def test_integers_at_its_bounds() -> None:
    extremes = np.array([0, 2**64 - 1], dtype=np.uint64)
    for limit in (1, 2, 3, 10**9, 2**31):
        assert integers(extremes, limit).tolist() == [0, limit - 1]
    limits = np.arange(1, 5001)
    found = integers(random_bits(9, limits), limits)
    assert ((found >= 0) & (found < limits)).all()


@pytest.mark.parametrize("tosses", [0, 1, 2, 5, 63, 64, 65, 128, 500])
def test_binomial_are_binomial(tosses: int) -> None:
    count = 40_000
    found = binomial(
        random_bits(Purpose.TRUNCATION_FIRST, np.arange(count)), np.full(count, tosses)
    )
    assert found.min() >= 0
    assert found.max() <= tosses
    assert abs(found.mean() - tosses / 2) <= 5 * math.sqrt(tosses / 4 / count)
    # The variance of a sample variance of n binomial draws, from the fourth moment.
    fourth = tosses / 16 * (3 * tosses - 2) if tosses else 0.0
    error = 5 * math.sqrt(max(fourth - (tosses / 4) ** 2, 0) / count)
    assert abs(((found - tosses / 2) ** 2).mean() - tosses / 4) <= error + 1e-12
    if 0 < tosses <= 5:
        chances = [math.comb(tosses, k) / 2**tosses for k in range(tosses + 1)]
        assert_distributed(np.bincount(found, minlength=tosses + 1), np.array(chances) * count)


def test_binomial_of_different_tosses_do_not_disturb_each_other() -> None:
    tosses = np.array([0, 3, 64, 200, 1, 65])
    bits = random_bits(4, np.arange(len(tosses)))
    for place, number in enumerate(tosses):
        alone = binomial(bits[place : place + 1], np.array([number]))
        assert alone[0] == binomial(bits, tosses)[place]


@pytest.mark.parametrize("count", [0, 1, 2, 100, 5000])
def test_a_permutation_is_a_permutation(count: int) -> None:
    order = permutation(count, Purpose.BLOCK_ORDER, 1, 2)
    assert sorted(order.tolist()) == list(range(count))
    if count > 2:
        assert order.tolist() != permutation(count, Purpose.BLOCK_ORDER, 1, 3).tolist()
        assert order.tolist() == permutation(count, Purpose.BLOCK_ORDER, 1, 2).tolist()


def test_permutations_are_all_alike_likely() -> None:
    seen: dict[tuple[int, ...], int] = {}
    for name in range(4800):
        order = tuple(permutation(4, Purpose.SAMPLE_ORDER, 0, name).tolist())
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 24
    assert_distributed(list(seen.values()), np.full(24, 200))

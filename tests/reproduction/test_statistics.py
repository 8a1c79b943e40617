"""Verdicts on simulated tables whose effects are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from litebert.base.intervals import paired_difference
from litebert.reproduction.measurement import Measurement
from litebert.reproduction.statistics import (
    Scored,
    bootstrap_crossed,
    compare,
    detectable,
    equivalence,
    jackknife,
    jackknife_ratio,
    power_of,
    verdict,
)
from litebert.reproduction.summary import ColumnOrder, summarize

TABLES = 200
SEEDS, BLOCKS = 3, 25
# rows, deviation between seeds, between blocks, and of the rest
NOISES = [(2, 0.5, 1.0, 1.0), (4, 0.5, 1.0, 2.0), (3, 0.05, 2.0, 3.0), (5, 1.0, 0.1, 0.1)]


def simulate(effects: list[float], noise: tuple, generator: np.random.Generator) -> dict:
    _, of_seeds, of_blocks, rest = noise
    rows = len(effects)
    together = generator.normal(0, 5 * of_seeds, SEEDS)  # what pairing takes away
    seeds = generator.normal(0, of_seeds, (rows, SEEDS)) + together
    blocks = generator.normal(0, of_blocks, (rows, BLOCKS))
    noise_RSB = generator.normal(0, rest, (rows, SEEDS, BLOCKS))
    x = np.asarray(effects)[:, None, None] + seeds[:, :, None] + blocks[:, None] + noise_RSB
    return {str(row): Scored(x[row].mean(1), x[row]) for row in range(rows)}


def true_error(noise: tuple) -> tuple[float, float]:
    """The standard error and the freedom that the test has in the mean."""
    rows, of_seeds, of_blocks, rest = noise
    seeds = 2 * (of_seeds**2 + rest**2 / BLOCKS) / SEEDS
    blocks = 2 * (of_blocks**2 + rest**2 / SEEDS) / BLOCKS
    freedom = (seeds + blocks) ** 2 / (
        seeds**2 / ((rows - 1) * (SEEDS - 1)) + blocks**2 / (BLOCKS - 1)
    )
    return (seeds + blocks) ** 0.5, freedom


@pytest.mark.parametrize("noise", NOISES)
def test_where_there_is_no_effect_one_verdict_in_twenty_is_given_at_most(noise: tuple) -> None:
    generator = np.random.default_rng(1)
    given = sum(
        verdict(compare(simulate([0.0] * noise[0], noise, generator), "0", "1"), 1) != "undecided"
        for _ in range(TABLES)
    )
    assert given / TABLES <= 0.05 + 2 * (0.05 * 0.95 / TABLES) ** 0.5


@pytest.mark.parametrize("noise", NOISES)
def test_the_smallest_detectable_difference_is_found_four_times_in_five(noise: tuple) -> None:
    generator = np.random.default_rng(2)
    effect = detectable(*true_error(noise))
    effects = [effect, *[0.0] * (noise[0] - 1)]
    said = [
        verdict(compare(simulate(effects, noise, generator), "0", "1"), 1) for _ in range(TABLES)
    ]
    assert 0.72 <= said.count("agrees") / TABLES <= 0.90
    assert said.count("contradicts") / TABLES <= 0.01


def test_two_rows_without_blocks_are_a_paired_t_test() -> None:
    generator = np.random.default_rng(3)
    one, other = generator.normal(0, 1, (2, 6))
    empty = np.zeros((6, 0))
    found = compare({"a": Scored(one, empty), "b": Scored(other, empty)}, "a", "b")
    expected = paired_difference(one, other)
    assert found is not None
    assert found.interval.low == pytest.approx(expected.low)
    assert found.interval.high == pytest.approx(expected.high)


def test_one_seed_decides_nothing() -> None:
    row = Scored(np.zeros(1), np.zeros((1, 4)))
    assert compare({"a": row, "b": row}, "a", "b") is None
    assert verdict(None, 1) == equivalence(None, 1.0) == "undecided"


def test_what_is_no_number_decides_nothing() -> None:
    """The seeds' variance is of all rows, so one such row would reach every pair."""
    rows = simulate([0.0, 9.0], (2, 0.1, 0.1, 0.1), np.random.default_rng(1))
    assert verdict(compare(rows, "1", "0"), 1) == "agrees"
    rows["2"] = Scored(np.full(SEEDS, np.nan), np.full((SEEDS, BLOCKS), np.nan))
    found = compare(rows, "1", "0")
    assert found is not None
    assert np.isnan(found.interval.low)
    assert verdict(found, 1) == equivalence(found, 1.0) == "undecided"
    with np.errstate(invalid="ignore"):
        assert not Measurement.of_ratio([], [], 100).is_finite  # as of pairs in a text without any
    assert Measurement.of_ratio([1, 2], [2, 2], 100).is_finite


def test_power_is_that_of_the_noncentral_t_distribution() -> None:
    for freedom, shift in ((2.0, 3.0), (4.0, 3.0), (20.0, 2.5)):
        critical = stats.t.ppf(0.975, freedom)
        exact = stats.nct.sf(critical, freedom, shift) + stats.nct.cdf(-critical, freedom, shift)
        assert power_of(shift, freedom) == pytest.approx(exact, abs=5e-3)


def test_equivalence_is_wrongly_said_one_time_in_twenty_at_most() -> None:
    generator, noise, margin = np.random.default_rng(4), (3, 0.05, 0.5, 0.5), 1.0
    said = [
        equivalence(compare(simulate([margin, 0, 0], noise, generator), "0", "1"), margin)
        for _ in range(TABLES)
    ]
    assert said.count("agrees") / TABLES <= 0.05 + 2 * (0.05 * 0.95 / TABLES) ** 0.5
    same = [
        equivalence(compare(simulate([0, 0, 0], noise, generator), "0", "1"), margin)
        for _ in range(50)
    ]
    assert same.count("agrees") > 40
    far = equivalence(compare(simulate([9.0, 0, 0], noise, generator), "0", "1"), margin)
    assert far == "contradicts"


def test_the_crossed_bootstrap_is_that_of_a_loop() -> None:
    generator = np.random.default_rng(5)
    matrix = generator.normal(0, 1, (4, 7))
    found = bootstrap_crossed(matrix, resamples=50, seed=9)
    again = np.random.default_rng(9)
    seeds, blocks = again.integers(4, size=(50, 4)), again.integers(7, size=(50, 7))
    means = []
    for row in range(50):
        total = 0.0
        for s in seeds[row]:
            for b in blocks[row]:
                total += matrix[s, b]
        means.append(total / 28)
    low, high = np.quantile(means, [0.025, 0.975])
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_pseudo_values_of_a_mean_are_the_values_and_of_a_ratio_those_of_the_loop() -> None:
    values = np.random.default_rng(6).normal(0, 1, 12)
    blocks = [np.asarray([i]) for i in range(12)]
    assert jackknife(lambda chosen: float(values[chosen].mean()), blocks) == pytest.approx(values)
    top, bottom = np.random.default_rng(7).uniform(1, 2, (2, 12))
    looped = jackknife(lambda chosen: float(top[chosen].sum() / bottom[chosen].sum()), blocks)
    assert jackknife_ratio(top, bottom) == pytest.approx(looped)


def test_the_summary_counts_every_exchange_of_rows() -> None:
    """Three rows in the paper's order: one of six orders agrees as well."""
    pairs = [(0, 1), (0, 2), (1, 2)]
    agreeing = summarize([[ColumnOrder([3.0, 2.0, 1.0], pairs)]])
    assert agreeing is not None
    assert agreeing.p_value == pytest.approx(1 / 6)
    assert agreeing.agreement == pytest.approx(4 / 3)
    assert agreeing.expected == pytest.approx(0.0)
    against = summarize([[ColumnOrder([1.0, 2.0, 3.0], pairs)]])
    assert against is not None
    assert against.p_value == 1.0
    assert summarize([]) is None


def test_the_summary_of_unrelated_tables_is_significant_one_time_in_twenty() -> None:
    generator = np.random.default_rng(8)
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    found = [
        summarize([[ColumnOrder(generator.normal(0, 1, 4).tolist(), pairs)] for _ in range(2)])
        for _ in range(150)
    ]
    significant = sum(one is not None and one.p_value <= 0.05 for one in found)
    assert significant / 150 <= 0.05 + 2 * (0.05 * 0.95 / 150) ** 0.5

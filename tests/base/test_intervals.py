"""Intervals: Student's against scipy's, the bootstrap's against theory and its own coverage."""

from __future__ import annotations

import sys
from math import sqrt

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from litebert.base import intervals
from litebert.base.errors import MissingExtraError, SettingsError
from litebert.base.intervals import (
    Interval,
    Summary,
    bootstrap,
    bootstrap_mean,
    mean_interval,
    over_seeds,
    paired_difference,
    student_quantile,
    wilson,
)
from litebert.tasks.metrics.classification import accuracy, matthews

scores = st.integers(0, 1000).map(lambda value: value / 1000)


@pytest.mark.parametrize("freedom", [*range(1, 31), 99, 100, 1001, 20_000])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_quantiles_are_scipys(freedom: int, confidence: float) -> None:
    expected = stats.t.ppf((1 + confidence) / 2, freedom)
    assert student_quantile(freedom, confidence) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("freedom", "confidence"), [(0, 0.95), (-1, 0.95), (4, 0.0), (4, 1.0)])
def test_there_is_no_quantile_of_nothing(freedom: int, confidence: float) -> None:
    with pytest.raises(SettingsError, match=f"no quantile for {freedom} degrees"):
        student_quantile(freedom, confidence)


def test_without_scipy_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'litebert\[demo\]'"):
        mean_interval([0.1, 0.2])


@given(st.integers(1, 2000), st.data())
def test_wilson_is_scipys(count: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, count))
    found = wilson(correct, count, z=stats.norm.ppf(0.975))
    expected = stats.binomtest(correct, count).proportion_ci(method="wilson")
    assert found.value == correct / count
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(st.lists(st.tuples(scores, scores), min_size=2, max_size=12))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_differences_over_seeds_are_scipys(pairs: list[tuple[float, float]]) -> None:
    first, second = np.array(pairs).T
    found = paired_difference(first, second)
    assert found.value == pytest.approx(first.mean() - second.mean(), abs=1e-12)
    differences = first - second
    error = stats.sem(differences)
    low, high = stats.t.interval(0.95, len(pairs) - 1, differences.mean(), max(error, 1e-300))
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)


def test_seeds_compared_in_pairs_are_told_apart_sooner() -> None:
    first = [0.80, 0.70, 0.90, 0.60]
    second = [0.79, 0.685, 0.89, 0.595]
    assert paired_difference(first, second).low > 0
    assert mean_interval(first).low < mean_interval(second).value
    assert paired_difference(first, first) == Interval(0.0, 0.0, 0.0)


def test_a_summary_of_seeds() -> None:
    assert over_seeds([1.0, 2.0, 6.0]) == Summary(3.0, 2.0, sqrt(7), 3)
    assert over_seeds([0.5]) == Summary(0.5, 0.5, None, 1)


@pytest.mark.parametrize("few", [[], [0.5]])
def test_one_seed_has_no_interval(few: list[float]) -> None:
    with pytest.raises(SettingsError, match=f"found {len(few)} scores"):
        mean_interval(few)
    with pytest.raises(SettingsError):
        paired_difference(few, few)


def test_seeds_must_match() -> None:
    with pytest.raises(SettingsError, match="cannot score"):
        paired_difference([0.1, 0.2], [0.1, 0.2, 0.3])


def test_bootstrap_of_a_fraction_is_near_the_normal_interval() -> None:
    correct = np.arange(2000) % 5 > 0
    found = bootstrap_mean(correct, resamples=4000)
    half = 1.96 * sqrt(0.8 * 0.2 / 2000)
    assert found.value == 0.8
    assert (found.low, found.high) == pytest.approx((0.8 - half, 0.8 + half), abs=half / 15)


def test_a_metric_that_is_a_mean_has_the_interval_of_a_mean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(5)
    labels, predictions = generator.integers(0, 2, (2, 150))
    monkeypatch.setattr(intervals, "DRAWN_AT_ONCE", 1000)  # so that 100 draws come in many portions
    assert bootstrap(accuracy, labels, predictions, resamples=100, seed=3) == bootstrap_mean(
        labels == predictions, resamples=100, seed=3
    )


def test_bootstrap_of_any_metric_agrees_with_other_draws() -> None:
    generator = np.random.default_rng(2)
    labels = generator.integers(0, 2, 300)
    predictions = np.where(generator.random(300) < 0.8, labels, 1 - labels)
    found = bootstrap(matthews, labels, predictions, resamples=800)
    rows = (generator.choice(300, 300) for _ in range(800))
    low, high = np.percentile(
        [matthews(labels[row], predictions[row]) for row in rows], [2.5, 97.5]
    )
    assert found.value == matthews(labels, predictions)
    assert (found.low, found.high) == pytest.approx((low, high), abs=(high - low) / 8)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    held = 0
    for seed in range(300):
        found = bootstrap_mean(generator.random(120), resamples=400, confidence=0.8, seed=seed)
        held += found.low <= 0.5 <= found.high
    error = sqrt(0.8 * 0.2 / 300)
    assert abs(held / 300 - 0.8) < 3 * error


def test_bootstrap_repeats_and_depends_on_its_seed() -> None:
    values = np.linspace(0, 1, 50)
    assert bootstrap_mean(values, seed=1) == bootstrap_mean(values, seed=1)
    assert bootstrap_mean(values, seed=1) != bootstrap_mean(values, seed=2)
    wide, narrow = bootstrap_mean(values, confidence=0.99), bootstrap_mean(values, confidence=0.5)
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_one_example_and_equal_examples_have_no_width() -> None:
    assert bootstrap_mean([0.25]) == bootstrap_mean([0.25] * 30) == Interval(0.25, 0.25, 0.25)


def test_a_perfect_score_of_few_examples_is_not_certain() -> None:
    """Drawn again they are all correct; Wilson's limit of as many successes takes their place."""
    for count in (1, 24, 240):
        expected = Interval(1.0, wilson(count, count).low, 1.0)
        assert bootstrap_mean([1.0] * count, resamples=5) == expected
        assert bootstrap(accuracy, [1] * count, [1] * count, resamples=5) == expected
    assert bootstrap_mean([1.0] * 24).low == pytest.approx(24 / (24 + 1.96**2))
    assert bootstrap_mean([0.0] * 24) == Interval(0.0, 0.0, 0.0)  # it may be a difference


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(SettingsError, match="found 0 scores"):
        bootstrap_mean([])
    with pytest.raises(SettingsError, match="resamples = 0"):
        bootstrap_mean([1.0], resamples=0)
    with pytest.raises(SettingsError, match=r"confidence = 95"):
        bootstrap_mean([1.0], confidence=95)

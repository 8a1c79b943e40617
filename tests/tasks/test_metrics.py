"""Metrics against scikit-learn and scipy, their edges, and averages that have been published."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats
from sklearn import metrics as oracle

from litebert.base.errors import SettingsError
from litebert.tasks.files.glue import GLUE
from litebert.tasks.scores.metrics import (
    GLUE_EIGHT,
    GLUE_NINE,
    METRICS,
    LabelScore,
    accuracy,
    average_of_tasks,
    confusion_matrix,
    f1,
    glue_average,
    label_score,
    macro_f1,
    matthews,
    pearson,
    per_label,
    ranks,
    spearman,
)

NO_WARNING: dict[str, Any] = {"zero_division": 0}
NAMES = ("no", "perhaps", "yes", "never seen")
NUMBERS = [0, 1, 2, 3]


def pairs(values: st.SearchStrategy, smallest: int = 1) -> st.SearchStrategy:
    """Two lists of one length."""
    return st.lists(st.tuples(values, values), min_size=smallest, max_size=40).map(
        lambda both: tuple(zip(*both, strict=True))
    )


labels = pairs(st.integers(0, 2))
binary = pairs(st.integers(0, 1))
# Few different values, so that many are equal, and none so near another that scipy would warn.
numbers = pairs(st.integers(-8, 8).map(lambda value: value / 4), smallest=2)


@given(labels)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_scores_of_labels_are_those_of_scikit_learn(both: tuple) -> None:
    truth, guess = both
    assert accuracy(truth, guess) == pytest.approx(oracle.accuracy_score(truth, guess))
    expected = oracle.f1_score(truth, guess, average="macro", **NO_WARNING)
    assert macro_f1(truth, guess) == pytest.approx(expected)
    table = confusion_matrix(truth, guess, 4)
    assert (table == oracle.confusion_matrix(truth, guess, labels=NUMBERS)).all()
    columns: Any = oracle.precision_recall_fscore_support(
        truth, guess, labels=NUMBERS, **NO_WARNING
    )
    for score, row in zip(
        per_label(truth, guess, NAMES).values(), zip(*columns, strict=True), strict=True
    ):
        assert (score.precision, score.recall, score.f1, score.count) == pytest.approx(row)


@given(binary)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_f1_of_one_label(both: tuple) -> None:
    truth, guess = both
    for label in (0, 1):
        expected = oracle.f1_score(truth, guess, pos_label=label, **NO_WARNING)
        assert f1(truth, guess, label) == pytest.approx(expected)
    assert f1(truth, guess) == f1(truth, guess, 1)


@given(st.one_of(labels, binary))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_matthews(both: tuple) -> None:
    truth, guess = both
    # scikit-learn refuses a single label with a warning; the definition has 0 there.
    single = len(set(truth)) == 1 or len(set(guess)) == 1
    expected = 0.0 if single else oracle.matthews_corrcoef(truth, guess)
    assert matthews(truth, guess) == pytest.approx(expected, abs=1e-12)


def test_matthews_of_many_examples_does_not_overflow() -> None:
    truth = np.arange(400_000) % 2
    assert matthews(truth, truth) == 1.0
    assert matthews(truth, 1 - truth) == -1.0


@given(numbers)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_correlations_are_those_of_scipy(both: tuple) -> None:
    truth, guess = both
    assert ranks(truth) == pytest.approx(stats.rankdata(truth))
    if len(set(truth)) == 1 or len(set(guess)) == 1:
        assert pearson(truth, guess) == spearman(truth, guess) == 0.0
    else:
        assert pearson(truth, guess) == pytest.approx(stats.pearsonr(truth, guess)[0], abs=1e-12)
        assert spearman(truth, guess) == pytest.approx(stats.spearmanr(truth, guess)[0], abs=1e-12)


def test_constants_have_no_correlation_even_where_their_mean_is_rounded() -> None:
    constant = [0.1] * 3  # whose mean is not 0.1
    assert np.mean(constant) != 0.1
    for side in (constant, [0.3, 0.1, 0.2]):
        assert pearson(side, constant) == pearson(constant, side) == 0.0
        assert spearman(side, constant) == spearman(constant, side) == 0.0


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_correlation_does_not_depend_on_scale(scale: float) -> None:
    truth, guess = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0])
    assert pearson(truth * scale, guess) == pytest.approx(pearson(truth, guess))
    assert pearson(truth, -truth * scale) == pytest.approx(-1.0)


def test_what_is_not_a_number_is_not_hidden() -> None:
    for bad in (float("nan"), float("inf")):
        assert np.isnan(pearson([1.0, 2.0, 3.0], [1.0, bad, 2.0]))
        assert np.isnan(spearman([1.0, 2.0, 3.0], [1.0, bad, 2.0]))


def test_one_class_and_one_example() -> None:
    assert [metric([1], [1]) for metric in METRICS.values()] == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert [metric([1], [0]) for metric in METRICS.values()] == [0.0] * 6
    assert f1([0, 0, 0], [0, 0, 0]) == 0.0
    assert f1([0, 0, 0], [0, 0, 0], 0) == 1.0
    assert matthews([0, 1, 0, 1], [1, 1, 1, 1]) == 0.0


def test_words_are_labels_too() -> None:
    truth, guess = ["yes", "no", "yes", "yes"], ["yes", "yes", "yes", "no"]
    assert accuracy(truth, guess) == 0.5
    assert f1(truth, guess, "yes") == pytest.approx(2 / 3)
    assert macro_f1(truth, guess) == pytest.approx(1 / 3)
    assert matthews(truth, guess) == pytest.approx(-1 / 3)


def test_rows_are_the_truth() -> None:
    assert confusion_matrix([0, 0, 1], [1, 1, 1]).tolist() == [[0, 2], [0, 1]]
    assert confusion_matrix([0], [0]).tolist() == [[1]]
    scores = per_label([0, 0, 1], [1, 1, 1], ["a", "b", "c"])
    assert scores["a"] == LabelScore(0.0, 0.0, 0.0, 2)
    assert scores["b"] == LabelScore(1 / 3, 1.0, 0.5, 1)
    assert scores["c"] == label_score(0, 0, 0) == LabelScore(0.0, 0.0, 0.0, 0)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize(("truth", "guess"), [([], []), ([1, 2], [1]), ([[1], [2]], [[1], [2]])])
def test_what_cannot_be_scored_is_said(metric, truth: list, guess: list) -> None:
    with pytest.raises(SettingsError, match="cannot score guesses of shape"):
        metric(truth, guess)


def test_labels_outside_the_table_are_said() -> None:
    with pytest.raises(SettingsError, match="from 0 to 3; they must be from 0 to 2"):
        confusion_matrix([0, 1], [3, 1], 3)
    with pytest.raises(SettingsError, match="from -100 to 1; they must be from 0 to 1"):
        confusion_matrix([-100, 1], [1, 1])
    with pytest.raises(SettingsError, match="needs their numbers, found float64"):
        confusion_matrix([0, 1], [0.4, 1.0])


# The leaderboard's row of ALBERT's ensemble, of which the paper's Table 9 prints a part.
ALBERT = {
    "cola": {"matthews": 69.1},
    "sst-2": {"accuracy": 97.1},
    "mrpc": {"accuracy": 91.2, "f1": 93.4},
    "sts-b": {"pearson": 92.5, "spearman": 92.0},
    "qqp": {"accuracy": 90.5, "f1": 74.2},
    "mnli": {"accuracy": 91.3},
    "mnli-mismatched": {"accuracy": 91.0},
    "qnli": {"accuracy": 99.2},
    "rte": {"accuracy": 89.2},
    "wnli": {"accuracy": 91.8},
    "ax": {"matthews": 50.2},
}


def test_the_average_of_glue_is_the_leaderboards() -> None:
    assert round(glue_average(ALBERT, GLUE_NINE), 1) == 89.4
    nine, eight = glue_average(ALBERT, GLUE_NINE), glue_average(ALBERT)
    assert eight * 8 + 91.8 == pytest.approx(nine * 9)
    assert glue_average(ALBERT, ["mnli"]) == pytest.approx(91.15)


def test_the_table_of_glue_and_its_average_fit_together() -> None:
    assert {name for task in GLUE.values() for name in task.metrics} <= METRICS.keys()
    assert GLUE.keys() - {"ax"} == set(GLUE_NINE) == {*GLUE_EIGHT, "wnli"}
    for name, task in GLUE.items():
        assert ALBERT[name].keys() == set(task.metrics)


@pytest.mark.parametrize("lost", ["mnli", "mnli-mismatched", "cola"])
def test_an_average_lacks_no_task(lost: str) -> None:
    scores = {name: values for name, values in ALBERT.items() if name != lost}
    with pytest.raises(SettingsError, match=f"without {lost};"):
        glue_average(scores)
    assert glue_average(scores, ["rte"]) == pytest.approx(89.2)


def test_the_average_of_the_papers_table_2() -> None:
    large = {
        "squad 1.1": {"f1": 90.6, "exact": 83.9},
        "squad 2.0": {"f1": 82.3, "exact": 79.4},
        "mnli": {"accuracy": 83.5},
        "sst-2": {"accuracy": 91.7},
        "race": {"accuracy": 68.5},
    }
    assert round(average_of_tasks(large), 1) == 82.4
    for nothing in ({}, {"mnli": {}}):
        with pytest.raises(SettingsError, match="no average"):
            average_of_tasks(nothing)

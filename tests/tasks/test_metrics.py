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
from litebert.tasks.metrics.classification import (
    CLASSIFICATION_METRICS,
    LabelScore,
    accuracy,
    confusion_matrix,
    f1,
    label_score,
    macro_f1,
    matthews,
    per_label,
)
from litebert.tasks.metrics.correlation import CORRELATION_METRICS, pearson, ranks, spearman

METRICS = {**CLASSIFICATION_METRICS, **CORRELATION_METRICS}

NO_WARNING: dict[str, Any] = {"zero_division": 0}
NAMES = ("no", "perhaps", "yes", "never seen")
NUMBERS = [0, 1, 2, 3]


def pairs(values: st.SearchStrategy, smallest: int = 1) -> st.SearchStrategy:
    """Two lists of one length."""
    return st.lists(st.tuples(values, values), min_size=smallest, max_size=40).map(
        lambda both: tuple(zip(*both, strict=True))
    )


classes = pairs(st.integers(0, 2))
binary = pairs(st.integers(0, 1))
# Few different values, so that many are equal, and none so near another that scipy would warn.
numbers = pairs(st.integers(-8, 8).map(lambda value: value / 4), smallest=2)


@given(classes)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_scores_of_labels_are_those_of_scikit_learn(both: tuple) -> None:
    labels, predictions = both
    assert accuracy(labels, predictions) == pytest.approx(
        oracle.accuracy_score(labels, predictions)
    )
    expected = oracle.f1_score(labels, predictions, average="macro", **NO_WARNING)
    assert macro_f1(labels, predictions) == pytest.approx(expected)
    table = confusion_matrix(labels, predictions, 4)
    assert (table == oracle.confusion_matrix(labels, predictions, labels=NUMBERS)).all()
    columns: Any = oracle.precision_recall_fscore_support(
        labels, predictions, labels=NUMBERS, **NO_WARNING
    )
    for score, row in zip(
        per_label(labels, predictions, NAMES).values(), zip(*columns, strict=True), strict=True
    ):
        assert (score.precision, score.recall, score.f1, score.support) == pytest.approx(row)


@given(binary)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_f1_of_one_label(both: tuple) -> None:
    labels, predictions = both
    for label in (0, 1):
        expected = oracle.f1_score(labels, predictions, pos_label=label, **NO_WARNING)
        assert f1(labels, predictions, label) == pytest.approx(expected)
    assert f1(labels, predictions) == f1(labels, predictions, 1)


@given(st.one_of(classes, binary))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_matthews(both: tuple) -> None:
    labels, predictions = both
    # scikit-learn refuses a single label with a warning; the definition has 0 there.
    single = len(set(labels)) == 1 or len(set(predictions)) == 1
    expected = 0.0 if single else oracle.matthews_corrcoef(labels, predictions)
    assert matthews(labels, predictions) == pytest.approx(expected, abs=1e-12)


def test_matthews_of_many_examples_does_not_overflow() -> None:
    labels = np.arange(400_000) % 2
    assert matthews(labels, labels) == 1.0
    assert matthews(labels, 1 - labels) == -1.0


@given(numbers)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_correlations_are_those_of_scipy(both: tuple) -> None:
    labels, predictions = both
    assert ranks(labels) == pytest.approx(stats.rankdata(labels))
    if len(set(labels)) == 1 or len(set(predictions)) == 1:
        assert pearson(labels, predictions) == spearman(labels, predictions) == 0.0
    else:
        assert pearson(labels, predictions) == pytest.approx(
            stats.pearsonr(labels, predictions)[0], abs=1e-12
        )
        assert spearman(labels, predictions) == pytest.approx(
            stats.spearmanr(labels, predictions)[0], abs=1e-12
        )


def test_constants_have_no_correlation_even_where_their_mean_is_rounded() -> None:
    constant = [0.1] * 3  # whose mean is not 0.1
    assert np.mean(constant) != 0.1
    for side in (constant, [0.3, 0.1, 0.2]):
        assert pearson(side, constant) == pearson(constant, side) == 0.0
        assert spearman(side, constant) == spearman(constant, side) == 0.0


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_correlation_does_not_depend_on_scale(scale: float) -> None:
    labels, predictions = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0])
    assert pearson(labels * scale, predictions) == pytest.approx(pearson(labels, predictions))
    assert pearson(labels, -labels * scale) == pytest.approx(-1.0)


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
    labels, predictions = ["yes", "no", "yes", "yes"], ["yes", "yes", "yes", "no"]
    assert accuracy(labels, predictions) == 0.5
    assert f1(labels, predictions, "yes") == pytest.approx(2 / 3)
    assert macro_f1(labels, predictions) == pytest.approx(1 / 3)
    assert matthews(labels, predictions) == pytest.approx(-1 / 3)


def test_rows_are_the_truth() -> None:
    assert confusion_matrix([0, 0, 1], [1, 1, 1]).tolist() == [[0, 2], [0, 1]]
    assert confusion_matrix([0], [0]).tolist() == [[1]]
    scores = per_label([0, 0, 1], [1, 1, 1], ["a", "b", "c"])
    assert scores["a"] == LabelScore(0.0, 0.0, 0.0, 2)
    assert scores["b"] == LabelScore(1 / 3, 1.0, 0.5, 1)
    assert scores["c"] == label_score(0, 0, 0) == LabelScore(0.0, 0.0, 0.0, 0)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize(
    ("labels", "predictions"), [([], []), ([1, 2], [1]), ([[1], [2]], [[1], [2]])]
)
def test_what_cannot_be_scored_is_said(metric, labels: list, predictions: list) -> None:
    with pytest.raises(SettingsError, match="cannot score predictions of shape"):
        metric(labels, predictions)


def test_labels_outside_the_table_are_said() -> None:
    with pytest.raises(SettingsError, match="from 0 to 3; they must be from 0 to 2"):
        confusion_matrix([0, 1], [3, 1], 3)
    with pytest.raises(SettingsError, match="from -100 to 1; they must be from 0 to 1"):
        confusion_matrix([-100, 1], [1, 1])
    with pytest.raises(SettingsError, match="needs their numbers, found float64"):
        confusion_matrix([0, 1], [0.4, 1.0])

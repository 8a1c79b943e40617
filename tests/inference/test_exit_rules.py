"""Exit rules: what holds for any outputs, and what a user may ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from litebert.base.errors import SettingsError
from litebert.inference.calibrate import leave
from litebert.inference.exits import (
    CalibratedRule,
    Calibration,
    Confidence,
    ExitRule,
    FixedDepth,
    Patience,
    parse_exit,
)
from litebert.tasks.registry import build_task
from litebert.tasks.task import Output
from tests.tasks.small import TASKS, settings

CLASSIFY, TAG = (build_task(TASKS[name][0]) for name in ("classify", "tag"))
REGRESS = build_task(settings("regress", metrics=("pearson",), exit_tolerance=0.5))


def probabilities(logits: np.ndarray) -> Output:
    grown = np.exp(logits - logits.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True)


def outputs(*shape: int) -> st.SearchStrategy[list[Output]]:
    """What the heads of 1 to 8 depths say of a sequence; certainty (exactly 1) is among it."""
    one = arrays(np.float32, shape, elements=st.sampled_from([-200.0, -3.0, -1.0, 0.0, 2.0]))
    return st.lists(one.map(probabilities), min_size=1, max_size=8)


SAID = st.one_of(outputs(3), outputs(4, 3), outputs(0, 3))


def depth(rule: ExitRule, said: Sequence[Output]) -> int:
    return len(leave(rule, said))


@given(SAID, st.integers(1, 9))
def test_patience_never_exits_before_its_number_of_layers_and_one(
    said: list[Output], patience: int
) -> None:
    assert depth(Patience(patience, TAG.agree), said) >= min(patience + 1, len(said))


@given(SAID)
def test_confidence_of_one_is_full_depth(said: list[Output]) -> None:
    assert depth(Confidence(1.0, TAG.confidence), said) == len(said)


@given(SAID, st.integers(1, 8), st.integers(1, 8))
def test_more_patience_is_never_less_deep(said: list[Output], one: int, other: int) -> None:
    less, more = (depth(Patience(n, TAG.agree), said) for n in sorted((one, other)))
    assert less <= more


@given(SAID, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_threshold_is_never_less_deep(
    said: list[Output], one: float, other: float
) -> None:
    less, more = (depth(Confidence(p, TAG.confidence), said) for p in sorted((one, other)))
    assert less <= more


@given(st.lists(st.integers(0, 2), min_size=1, max_size=9), st.integers(1, 4))
def test_patience_is_that_of_the_paper(labels: list[int], patience: int) -> None:
    """PABEE's algorithm 1: a counter of equal answers, which a change sets back to zero."""
    counter, expected = 0, len(labels)
    for layer in range(1, len(labels)):
        counter = counter + 1 if labels[layer] == labels[layer - 1] else 0
        if counter == patience:
            expected = layer + 1
            break
    said: list[Any] = [np.eye(3)[label] for label in labels]
    assert depth(Patience(patience, CLASSIFY.agree), said) == expected


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=8), st.integers(1, 8))
def test_numbers_agree_within_the_tolerance(values: list[float], patience: int) -> None:
    said = [np.array([value]) for value in values]
    left = leave(Patience(patience, REGRESS.agree), said)
    assert len(left) >= min(patience + 1, len(said))
    if len(left) < len(said):
        steps = np.abs(np.diff(np.concatenate(left)))
        assert (steps[-patience:] <= 0.5).all()


def test_one_word_that_is_unsure_keeps_a_sentence() -> None:
    sure, unsure = [0.98, 0.01, 0.01], [0.4, 0.3, 0.3]
    rule = Confidence(0.9, TAG.confidence)
    assert rule.leaves([np.array([sure, sure])])
    assert not rule.leaves([np.array([sure, unsure])])
    changed = [np.array([sure, unsure]), np.array([sure, unsure[::-1]])]
    assert not Patience(1, TAG.agree).leaves([changed[0], changed[1][:, ::-1]])
    assert Patience(1, TAG.agree).leaves([changed[0], changed[0]])


TABLE = Calibration(
    "accuracy",
    (
        CalibratedRule("patience=1", 0.78, 2.1),
        CalibratedRule("patience=2", 0.796, 3.2),
        CalibratedRule("confidence=0.9", 0.799, 3.5),
        CalibratedRule("depth=4", 0.795, 4.0),
        CalibratedRule("depth=6", 0.80, 6.0),
    ),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("accuracy=-0.5", Patience(2, CLASSIFY.agree)),
        ("accuracy=-0.1", Confidence(0.9, CLASSIFY.confidence)),
        ("accuracy=0", FixedDepth(6)),
        ("accuracy=-3", Patience(1, CLASSIFY.agree)),
        ("patience=3", Patience(3, CLASSIFY.agree)),
        ("confidence=0.95", Confidence(0.95, CLASSIFY.confidence)),
        ("depth=4", FixedDepth(4)),
    ],
)
def test_rules_by_name(text: str, expected: ExitRule) -> None:
    assert parse_exit(text, CLASSIFY, TABLE) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hurry=1", "no such rule; choose patience=N, confidence=P, depth=N or accuracy=-POINTS"),
        ("patience", "expected a whole number of layers, at least 1"),
        ("patience=0", "expected a whole number of layers, at least 1"),
        ("patience=1.5", "expected a whole number of layers"),
        ("depth=nan", "expected a whole number of layers, at least 1"),
        ("confidence=95", "expected a probability from 0 to 1"),
        ("accuracy=0.5", "expected points to lose at most, as accuracy=-0.5"),
        ("accuracy=-0.5", "this model has no calibration of its exits"),
    ],
)
def test_what_is_no_rule(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=f"^--exit {text}: {message}"):
        parse_exit(text, CLASSIFY, None)


def test_a_number_has_no_probability() -> None:
    message = r"not for tasks of kind regress; choose depth=N, patience=N"
    with pytest.raises(SettingsError, match=message):
        parse_exit("confidence=0.9", REGRESS, None)

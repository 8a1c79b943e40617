"""Admission: what a queue takes, and when it says to come back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.base.errors import SettingsError
from litebert.serving.limits import Backlog, Limits


def test_an_empty_queue_takes_anything() -> None:
    assert Backlog(tokens=0, tokens_per_second=1.0).accepts(10**9, 0.001, Limits())


def test_a_wait_beyond_the_deadline_is_refused() -> None:
    backlog = Backlog(tokens=1000, tokens_per_second=100.0)
    assert backlog.accepts(500, 15.0, Limits())
    assert not backlog.accepts(501, 15.0, Limits())


def test_a_full_queue_is_refused_however_fast() -> None:
    backlog = Backlog(tokens=90, tokens_per_second=1e9)
    assert backlog.accepts(10, 30.0, Limits(queued_tokens=100))
    assert not backlog.accepts(11, 30.0, Limits(queued_tokens=100))


@given(st.lists(st.tuples(st.integers(1, 500), st.floats(0.001, 2.0)), min_size=1, max_size=60))
def test_speed_is_that_of_the_work(stretches: list[tuple[int, float]]) -> None:
    """One request after the other at a steady speed: the estimate goes there and stays between."""
    backlog, now = Backlog(tokens_per_second=1000.0), 0.0
    for tokens, _ in stretches:
        backlog.enter(tokens, now)
        now += tokens / 250.0
        backlog.leave(tokens, now)
        assert backlog.tokens == 0
        assert 250.0 - 1e-6 <= backlog.tokens_per_second <= 1000.0
    expected = 250 + 750 * 0.8 ** len(stretches)
    assert backlog.tokens_per_second == pytest.approx(expected)


@given(st.integers(1, 10**6), st.floats(1.0, 1e6))
def test_retry_after_is_a_whole_second_at_least(tokens: int, speed: float) -> None:
    found = Backlog(tokens=tokens, tokens_per_second=speed).retry_after()
    assert found >= 1
    assert found - 1 < max(1.0, tokens / 2 / speed) <= found or found == 1


def test_an_unknown_limit_names_the_nearest() -> None:
    with pytest.raises(SettingsError, match="did you mean 'inputs'"):
        Limits.build({"input": 3}, "limits")

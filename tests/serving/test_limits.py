"""Admission: what a queue takes, and when it says to come back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.base.errors import SettingsError
from litebert.serving.limits import Limits, Queue, retry_after


def test_an_empty_queue_takes_anything() -> None:
    assert retry_after(Queue(0, 0.0), 10**9, 0.001, Limits()) is None


def test_a_wait_beyond_the_deadline_is_refused() -> None:
    queue = Queue(tokens=1000, seconds=10.0)
    assert retry_after(queue, 500, 15.0, Limits()) is None
    assert retry_after(queue, 501, 15.0, Limits()) == 5


def test_a_full_queue_is_refused_however_fast() -> None:
    queue = Queue(tokens=90, seconds=1e-6)
    assert retry_after(queue, 10, 30.0, Limits(queued_tokens=100)) is None
    assert retry_after(queue, 11, 30.0, Limits(queued_tokens=100)) == 1


@given(st.integers(1, 10**6), st.floats(0.0, 1e6), st.integers(1, 10**6), st.floats(0.01, 100))
def test_whoever_is_sent_away_is_told_a_whole_second_at_least(
    waiting: int, seconds: float, tokens: int, deadline: float
) -> None:
    found = retry_after(Queue(waiting, seconds), tokens, deadline, Limits())
    if found is None:
        assert seconds <= deadline
        assert waiting + tokens <= Limits().queued_tokens
    else:
        assert found >= max(1, seconds / 2)


def test_an_unknown_limit_names_the_nearest() -> None:
    with pytest.raises(SettingsError, match="did you mean 'inputs'"):
        Limits.build({"input": 3}, "limits")

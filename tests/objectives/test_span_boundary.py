"""SpanBERT's boundary objective: which spans are asked, and the loss against a literal version."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from litebert.base.batches import Batch, split_by_tokens
from litebert.objectives.span_boundary import MAX_PAIR_TARGETS, SpanBoundary, boundaries
from tests.objectives.learners import make_batch, make_config, make_model
from tests.objectives.literal_losses import (
    Asked,
    assert_same_gradients,
    literal_boundaries,
    literal_span_boundary,
    term_of,
)


def found_boundaries(batch: Batch) -> list[Asked]:
    left, right, place, masked = (column.tolist() for column in boundaries(batch))
    tokens = batch.positions[masked].tolist()
    return [Asked(*row) for row in zip(left, right, place, tokens, strict=True)]


@pytest.mark.parametrize(
    ("masked", "asked"),
    [
        ([2], [(1, 3, 0, 2)]),
        ([2, 3], [(1, 4, 0, 2), (1, 4, 1, 3)]),  # adjacent tokens are one span
        ([2, 4], [(1, 3, 0, 2), (3, 5, 0, 4)]),  # one token between: two spans
        ([1, 2], []),  # touches the beginning of the text
        ([29, 30], []),  # touches its end
        ([1, 5, 30], [(4, 6, 0, 5)]),
        (list(range(1, 31)), []),
        (list(range(5, 22)), [(4, 22, place, 5 + place) for place in range(15)]),
        ([], []),
    ],
)
def test_which_spans_are_asked(masked: list[int], asked: list[tuple[int, ...]]) -> None:
    batch = make_batch([[30]], [masked])
    assert found_boundaries(batch) == [Asked(*row) for row in asked]
    assert SpanBoundary().count(batch) == len(asked)


def test_a_segments_edge_is_an_edge_too() -> None:
    batch = make_batch([[4, 4], [5]], [[4, 6], [2]])
    assert found_boundaries(batch) == [Asked(12, 14, 0, 13)]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data())
def test_boundaries_of_any_batch(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.lists(st.integers(1, 24), min_size=1, max_size=2), min_size=1,
                               max_size=4))  # fmt: skip
    masked = []
    for segments in texts:
        whole = make_batch([segments], [[]])
        chosen = data.draw(st.lists(st.booleans(), min_size=len(whole.ids),
                                    max_size=len(whole.ids)))  # fmt: skip
        masked.append(np.flatnonzero(whole.is_text & np.array(chosen)).tolist())
    batch = make_batch(texts, masked)
    found = found_boundaries(batch)
    assert found == literal_boundaries(batch)
    assert all(one.place < MAX_PAIR_TARGETS == 15 for one in found)
    parts = [SpanBoundary().count(part) for part in split_by_tokens(batch, 20)]
    assert sum(parts) == SpanBoundary().count(batch) == len(found)


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_span_boundary(family: str) -> None:
    model = make_model(make_config(family), ["span_boundary"])
    masked = [[3, 4, 5], [*range(2, 20), 25], [1, 2, 5, 9]]
    batch = make_batch([[9], [30], [9]], masked)
    loss, correct = term_of(SpanBoundary(), model, batch)
    literal, expected = literal_span_boundary(model, batch)
    torch.testing.assert_close(loss, literal, rtol=1e-10, atol=0)
    assert correct == expected
    assert SpanBoundary().count(batch) == 3 + 15 + 1 + 1
    assert_same_gradients(loss, literal, model)


def test_no_span_with_boundaries() -> None:
    model = make_model(make_config("bert"), ["span_boundary"])
    for masked in ([[1], [9]], [[], []]):
        batch = make_batch([[5], [9]], masked)
        loss, correct = term_of(SpanBoundary(), model, batch)
        assert (loss.item(), correct, SpanBoundary().count(batch)) == (0, 0, 0)

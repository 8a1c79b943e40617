"""Masked batches taken apart and put together again."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from litebert.base.batches import Batch, concatenate, split_by_tokens
from tests.objectives.word_batches import Shape, make_batch, mask


def masked_batch(shapes: list[Shape], seed: int) -> Batch:
    batch = make_batch(shapes, seed)
    labels = np.random.default_rng(seed).integers(-1, 2, len(batch)).astype(np.int8)
    return mask(replace(batch, labels=labels))


def assert_equal(one: Batch, two: Batch) -> None:
    for column in fields(Batch):
        mine, theirs = (np.asarray(getattr(batch, column.name)) for batch in (one, two))
        assert mine.dtype == theirs.dtype, column.name
        np.testing.assert_array_equal(mine, theirs, err_msg=column.name)


many_shapes = st.lists(
    st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=12), min_size=1, max_size=2),
    min_size=1,
    max_size=12,
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(shapes=many_shapes, seed=st.integers(0, 10**6), tokens=st.integers(1, 150))
def test_what_is_cut_can_be_joined(shapes: list[Shape], seed: int, tokens: int) -> None:
    batch = masked_batch(shapes, seed)
    parts = split_by_tokens(batch, tokens)
    assert_equal(concatenate(parts), batch)
    for part in parts:
        assert len(part) == 1 or len(part.ids) <= tokens
        assert len(part)
    for one, two in pairwise(parts):  # no part is smaller than it must be
        assert len(one.ids) + int(two.lengths[0]) > tokens


@settings(max_examples=80, deadline=None, derandomize=True)
@given(data=st.data(), shapes=many_shapes, seed=st.integers(0, 10**6))
def test_any_part_is_the_batch_of_its_sequences(
    data: st.DataObject, shapes: list[Shape], seed: int
) -> None:
    batch = masked_batch(shapes, seed)
    first = data.draw(st.integers(0, len(batch)))
    last = data.draw(st.integers(first, len(batch)))
    part = batch.slice(first, last)
    assert len(part) == last - first
    mine = (batch.sequence_ids >= first) & (batch.sequence_ids < last)
    assert part.ids.tolist() == batch.ids[mine].tolist()
    assert part.labels.tolist() == batch.labels[first:last].tolist()
    assert part.keys.tolist() == batch.keys[first:last].tolist()
    assert part.targets.tolist() == batch.targets[mine[batch.positions]].tolist()
    whole = batch.ids.copy()
    whole[batch.positions] = batch.targets
    again = part.ids.copy()
    again[part.positions] = part.targets
    assert again.tolist() == whole[mine].tolist()
    assert part.position_ids.tolist() == batch.position_ids[mine].tolist()
    assert_equal(concatenate([batch.slice(0, first), part, batch.slice(last, len(batch))]), batch)


def test_nothing_is_cut_into_nothing() -> None:
    assert split_by_tokens(make_batch([]), 10) == []
    batch = masked_batch([[[1] * 5], [[1] * 50]], 0)
    assert [part.lengths.tolist() for part in split_by_tokens(batch, 1)] == [[7], [52]]
    assert [part.lengths.tolist() for part in split_by_tokens(batch, 58)] == [[7], [52]]
    assert [part.lengths.tolist() for part in split_by_tokens(batch, 59)] == [[7, 52]]

"""Ragged arrays and batches: the algebra against plain loops."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from litebert.base.batches import (
    Batch,
    bucket_by_length,
    concatenate,
    split_by_tokens,
    split_evenly,
    take,
)
from litebert.base.ragged import offsets, positions_within, ranges, row_ids

LENGTHS = st.lists(st.integers(0, 9), max_size=12)


def make_batch(seed: int, sequences: int, group_size: int = 1) -> Batch:
    """Random sequences, some of their tokens masked."""
    chance = np.random.default_rng(seed)
    lengths = chance.integers(1, 9, sequences * group_size)
    size = int(lengths.sum())
    positions = np.flatnonzero(chance.random(size) < 0.3)
    return Batch(
        ids=chance.integers(0, 99, size).astype(np.int32),
        token_types=chance.integers(0, 2, size).astype(np.int8),
        is_text=chance.random(size) < 0.8,
        segment_starts=chance.random(size) < 0.2,
        lengths=lengths,
        labels=chance.integers(0, 2, len(lengths)),
        keys=chance.integers(0, 2**64, len(lengths), dtype=np.uint64),
        positions=positions,
        targets=chance.integers(0, 99, len(positions)).astype(np.int32),
        group_size=group_size,
    )


def assert_equal(one: Batch, other: Batch) -> None:
    for column in fields(Batch):
        mine, theirs = getattr(one, column.name), getattr(other, column.name)
        assert np.array_equal(mine, theirs), column.name
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype, column.name


@given(LENGTHS)
def test_ragged_arrays_are_loops(lengths: list[int]) -> None:
    rows = [(row, place) for row, length in enumerate(lengths) for place in range(length)]
    assert row_ids(lengths).tolist() == [row for row, _ in rows]
    assert positions_within(lengths).tolist() == [place for _, place in rows]
    assert offsets(lengths).tolist() == [sum(lengths[:n]) for n in range(len(lengths) + 1)]
    starts = np.array([7 * row % 5 for row in range(len(lengths))], dtype=np.int64)
    assert ranges(starts, lengths).tolist() == [7 * row % 5 + place for row, place in rows]


def test_taking_keeps_what_belongs_to_a_sequence() -> None:
    batch = make_batch(0, 12)
    chosen = [7, 2, 2, 11, 0]
    taken = take(batch, chosen)
    assert taken.lengths.tolist() == batch.lengths[chosen].tolist()
    for place, number in enumerate(chosen):
        assert_equal(taken.slice(place, place + 1), batch.slice(number, number + 1))
        one = batch.slice(number, number + 1)
        start = batch.starts[number]
        here = slice(start, start + batch.lengths[number])
        masked = (batch.positions >= here.start) & (batch.positions < here.stop)
        assert one.ids.tolist() == batch.ids[here].tolist()
        assert (one.positions + start).tolist() == batch.positions[masked].tolist()
        assert one.targets.tolist() == batch.targets[masked].tolist()
    assert len(take(batch, [])) == 0


@pytest.mark.parametrize("group_size", [1, 3])
@pytest.mark.parametrize("parts", [1, 2, 3, 50])
def test_even_parts_keep_groups_and_differ_by_one_group_at_most(
    group_size: int, parts: int
) -> None:
    batch = make_batch(2, 10, group_size)
    pieces = split_evenly(batch, parts)
    assert_equal(concatenate(pieces), batch)
    assert 0 < len(pieces) <= parts
    assert all(len(piece) and len(piece) % group_size == 0 for piece in pieces)
    longest = int(batch.group_lengths.max())
    fair = len(batch.ids) / parts
    assert all(len(piece.ids) <= fair + longest for piece in pieces)


@pytest.mark.parametrize("group_size", [1, 3])
def test_what_is_split_can_be_put_together_again(group_size: int) -> None:
    batch = make_batch(1, 10, group_size)
    assert_equal(
        concatenate([batch.slice(0, 6), batch.slice(6, 6), batch.slice(6, len(batch))]), batch
    )
    for limit in (1, 12, 40, 10**6):
        parts = split_by_tokens(batch, limit)
        assert_equal(concatenate(parts), batch)
        assert all(len(part) % group_size == 0 for part in parts)
        assert all(len(p.ids) <= limit or len(p) == group_size for p in parts)
    assert split_by_tokens(batch.slice(0, 0), 5) == []


def test_groups() -> None:
    batch = make_batch(2, 4, 3)
    assert batch.group_lengths.tolist() == [
        int(batch.lengths[n : n + 3].sum()) for n in (0, 3, 6, 9)
    ]
    assert batch.group_members(np.array([2, 0])).tolist() == [6, 7, 8, 0, 1, 2]
    assert replace(batch, group_size=1).group_lengths.tolist() == batch.lengths.tolist()


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(30, 90), st.booleans(), st.booleans())
def test_buckets_hold_like_lengths_within_the_limit(
    lengths: list[int], limit: int, padded: bool, descending: bool
) -> None:
    sizes = np.array(lengths, dtype=np.int64)
    buckets = bucket_by_length(sizes, max_tokens=limit, padded=padded, descending=descending)
    order = np.concatenate([np.zeros(0, np.int64), *buckets])
    assert sorted(order.tolist()) == list(range(len(lengths)))
    ranked = sizes[order].tolist()
    assert ranked == sorted(ranked, reverse=descending)
    costs = [int(sizes[b].max() * len(b) if padded else sizes[b].sum()) for b in buckets]
    assert all(cost <= limit for cost in costs)
    for one, two in pairwise(buckets):  # as large as the limit allows
        more = np.append(sizes[one], sizes[two[0]])
        assert (more.max() * len(more) if padded else more.sum()) > limit


def test_buckets_of_a_number_of_sequences() -> None:
    sizes = np.array([5, 1, 4, 1, 3])
    found = bucket_by_length(sizes, max_sequences=2)
    assert [bucket.tolist() for bucket in found] == [[1, 3], [4, 2], [0]]
    assert bucket_by_length(sizes[:0], max_sequences=2) == []

"""Arrangements: every sentence once, exact layouts, and the chances of the papers."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from litebert.base.batches import Batch
from litebert.base.errors import SettingsError
from litebert.corpus.sampling.assemble import assemble
from litebert.corpus.sampling.input_formats import INPUT_FORMATS, InputFormat, input_format
from litebert.corpus.sampling.samples import Samples, make_samples
from litebert.corpus.sampling.window import Window
from tests.corpus.stores import (
    FIRST_ID,
    SPECIAL,
    assert_distributed,
    assert_same_distribution,
    binomial_error,
    make_window,
    random_lengths,
    stub_tokenizer,
)

NAMES = sorted(INPUT_FORMATS)
PAIRS = [name for name in NAMES if INPUT_FORMATS[name].form == "pair"]
DECIDE_ORDER = ("albert", "albert-google")
RANDOM_NEXT = ("bert", "segment-pair", "sentence-pair")
ONE_DOCUMENT = ("doc-sentences", "spanbert")

documents = st.lists(
    st.lists(
        st.one_of(st.just(1), st.integers(1, 12), st.integers(1, 700)), min_size=1, max_size=9
    ),
    min_size=1,
    max_size=8,
)


def runs_of(samples: Samples, number: int) -> list[tuple[int, int]]:
    low, high = samples.fragments[number], samples.fragments[number + 1]
    return list(
        zip(samples.starts[low:high].tolist(), samples.ends[low:high].tolist(), strict=True)
    )


def document_of_token(window: Window) -> np.ndarray:
    tokens = np.diff(window.sentences[window.documents])
    return np.repeat(np.arange(len(window.keys)), tokens)


def check_primary(window: Window, samples: Samples, crosses: bool) -> None:
    """Sentences are cut into [first, last) without gap or overlap."""
    order = np.argsort(samples.first, kind="stable")
    first, last = samples.first[order], samples.last[order]
    assert (first < last).all()
    assert first[0] == 0
    assert last[-1] == len(window.sentences) - 1
    assert (last[:-1] == first[1:]).all()
    if not crosses:
        assert (window.document_of[first] == window.document_of[last - 1]).all()


def check_text(
    window: Window, samples: Samples, rules: InputFormat, text: int, between: int
) -> None:
    """What stands in each sample is its primary text, whole unless too long, or borrowed."""
    cum, owner = window.sentences, document_of_token(window)
    for number in range(len(samples)):
        runs = runs_of(samples, number)
        low, high = int(cum[samples.first[number]]), int(cum[samples.last[number]])
        size = sum(end - start for start, end in runs)
        separators = len(runs) - 1 if rules.form == "full" else between * (len(runs) - 1)
        assert all(start < end for start, end in runs)
        assert size + separators <= text
        assert all(owner[start] == owner[end - 1] for start, end in runs)
        if samples.truncated[number]:
            assert size + separators == text, "dropped more than needed"
        borrowed = [run for run in runs if not low <= run[0] < high]
        own = sorted(run for run in runs if run not in borrowed)
        assert samples.random_next[number] == sum(end - start for start, end in borrowed)
        if not samples.truncated[number]:
            assert own[0][0] == low
            assert own[-1][1] == high
            assert all(one[1] == two[0] for one, two in pairwise(own))
            assert all(edge in cum for run in runs for edge in run)
        if rules.form == "full":
            found = [int(owner[start]) for start, _ in runs]
            assert found == list(range(found[0], found[0] + len(runs)))
        else:
            assert len(runs) <= 2
            assert all(owner[start] == owner[low] for start, _ in own)
        for start, _ in borrowed:
            assert runs[-1] in borrowed
            assert owner[start] != owner[low]
            assert samples.labels[number] == 1


def check_layout(window: Window, samples: Samples, batch: Batch, rules: InputFormat) -> None:
    """[CLS] A [SEP] B [SEP] with types 0 0 0 1 1, token by token."""
    edges = np.concatenate([[0], np.cumsum(batch.lengths)]).tolist()
    assert (
        edges[-1]
        == len(batch.ids)
        == len(batch.token_types)
        == len(batch.is_text)
        == len(batch.segment_starts)
    )
    for number in range(len(samples)):
        ids, types, inside, begins = [SPECIAL.cls], [0], [False], [False]
        for place, (start, end) in enumerate(runs_of(samples, number)):
            kind = place if rules.form == "pair" else 0
            text = window.ids[start:end].tolist()
            ids += [*text, SPECIAL.sep]
            types += [kind] * (len(text) + 1)
            inside += [True] * len(text) + [False]
            begins += [True] + [False] * len(text)
        here = slice(edges[number], edges[number + 1])
        assert batch.ids[here].tolist() == ids
        assert batch.token_types[here].tolist() == types
        assert batch.is_text[here].tolist() == inside
        assert batch.segment_starts[here].tolist() == begins


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    documents=documents,
    length=st.one_of(st.integers(8, 24), st.integers(8, 512)),
    seed=st.integers(0, 2**64 - 1),
    copy=st.integers(0, 100),
)
def test_any_documents_at_any_length(
    name: str, documents: list[list[int]], length: int, seed: int, copy: int
) -> None:
    window, rules = make_window(documents), INPUT_FORMATS[name]
    samples = make_samples(window, rules, length, seed, copy)
    check_primary(window, samples, rules.form == "full")
    check_text(window, samples, rules, length - 2, between=1)
    batch = assemble(window, samples, stub_tokenizer())
    assert batch.lengths.max() <= length
    assert batch.lengths.tolist() == samples.lengths(1).tolist()
    check_layout(window, samples, batch, rules)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(documents=documents, length=st.integers(8, 512), seed=st.integers(0, 10**6))
def test_roberta_has_two_separators_in_a_pair_and_no_types(
    name: str, documents: list[list[int]], length: int, seed: int
) -> None:
    window, rules = make_window(documents), INPUT_FORMATS[name]
    separators = 2 if rules.form == "pair" else 1
    samples = make_samples(window, rules, length, seed, 0, separators)
    check_primary(window, samples, rules.form == "full")
    check_text(window, samples, rules, length - 2, separators)
    batch = assemble(window, samples, stub_tokenizer("bpe"), separators)
    assert batch.lengths.max() <= length
    assert batch.lengths.tolist() == samples.lengths(separators).tolist()
    assert not batch.token_types.any()
    edges = np.concatenate([[0], np.cumsum(batch.lengths)]).tolist()
    for number in range(len(samples)):
        wanted = [SPECIAL.cls]
        for place, (start, end) in enumerate(runs_of(samples, number)):
            wanted += [SPECIAL.sep] * separators * (place > 0) + window.ids[start:end].tolist()
        assert batch.ids[edges[number] : edges[number + 1]].tolist() == [*wanted, SPECIAL.sep]


@pytest.mark.parametrize("name", ["albert", "electra", "plain-pairs"])
def test_no_room_is_kept_for_separators_that_a_lone_sentence_does_not_have(name: str) -> None:
    window = make_window([[30]] * 50)
    for separators in (1, 2):
        samples = make_samples(window, INPUT_FORMATS[name], 12, 0, 0, separators)
        assert (samples.lengths(separators) == 12).all(), separators


@pytest.mark.parametrize("name", NAMES)
def test_every_token_once_by_tracing_ids(name: str) -> None:
    """Where nothing is truncated each token of the split stands in one sample, borrowed aside."""
    lengths = random_lengths(1, 400, sentences=(1, 9), tokens=(1, 9))
    window, rules = make_window(lengths), INPUT_FORMATS[name]
    samples = make_samples(window, rules, 512, 0, 0)
    assert not samples.truncated.any()
    batch = assemble(window, samples, stub_tokenizer())
    seen = Counter((batch.ids[batch.is_text] - FIRST_ID).tolist())
    borrowed: Counter[int] = Counter()
    for number in np.flatnonzero(samples.random_next):
        start, end = runs_of(samples, int(number))[1]
        borrowed.update(range(start, end))
    assert seen - borrowed == Counter(range(len(window.ids)))
    if name in ("albert", "plain-pairs", "electra", "full-sentences", "sentences", *ONE_DOCUMENT):
        assert not borrowed
    else:
        assert borrowed


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [16, 64])
def test_every_sentence_once_with_truncation(name: str, length: int) -> None:
    window = make_window(random_lengths(2, 500))
    samples = make_samples(window, INPUT_FORMATS[name], length, 3, 1)
    seen = np.zeros(len(window.sentences) - 1, dtype=int)
    for first, last in zip(samples.first, samples.last, strict=True):
        seen[first:last] += 1
    assert (seen == 1).all()
    text = samples.lengths(1) - 2 - (np.diff(samples.fragments) - 1)
    whole = np.diff(window.sentences[np.stack([samples.first, samples.last])], axis=0)[0]
    plain = samples.random_next == 0
    assert (text + samples.truncated)[plain].tolist() == whole[plain].tolist()


@pytest.mark.parametrize("name", ["albert", "plain-pairs", "electra", *ONE_DOCUMENT])
def test_what_a_sample_becomes_depends_on_its_names_alone(name: str) -> None:
    """The same documents with others or without them give the same samples."""
    lengths = random_lengths(3, 60)
    window = make_window(lengths)
    few = make_window(lengths[20:40])
    few = Window(few.ids, few.sentences, few.documents, window.keys[20:40])
    shift = int(window.sentences[window.documents[20]])
    whole = make_samples(window, INPUT_FORMATS[name], 40, 5, 2)
    part = make_samples(few, INPUT_FORMATS[name], 40, 5, 2)
    every = {
        int(key): (runs_of(whole, number), int(whole.labels[number]))
        for number, key in enumerate(whole.keys)
    }
    for number, key in enumerate(part.keys):
        moved = [(start + shift, end + shift) for start, end in runs_of(part, number)]
        assert every[int(key)] == (moved, int(part.labels[number]))


@pytest.mark.parametrize("name", NAMES)
def test_seed_and_copy_both_change_the_samples(name: str) -> None:
    window = make_window(random_lengths(4, 100))
    kept = [make_samples(window, INPUT_FORMATS[name], 40, seed, copy) for seed, copy in
            ((0, 0), (1, 0), (0, 1), (0, 0))]  # fmt: skip
    assert len({int(key) for samples in kept[:3] for key in samples.keys}) == sum(
        map(len, kept[:3])
    )
    for column in ("starts", "ends", "labels", "keys", "first", "last"):
        assert getattr(kept[0], column).tolist() == getattr(kept[3], column).tolist()
    if name in PAIRS:
        assert kept[0].starts.tolist() != kept[1].starts.tolist() != kept[2].starts.tolist()


def test_taking_samples_keeps_their_columns_together() -> None:
    window = make_window(random_lengths(5, 80))
    for name in ("albert", "full-sentences"):
        samples = make_samples(window, INPUT_FORMATS[name], 48, 0, 0)
        chosen = np.random.default_rng(0).permutation(len(samples))[:17]
        taken = samples.take(chosen)
        for place, number in enumerate(chosen.tolist()):
            assert runs_of(taken, place) == runs_of(samples, number)
            assert taken.keys[place] == samples.keys[number]
            assert taken.labels[place] == samples.labels[number]
            assert taken.first[place] == samples.first[number]
        assert taken.lengths(1).tolist() == samples.lengths(1)[chosen].tolist()
        assert len(samples.take(np.zeros(0, dtype=np.int64))) == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_window_without_documents_gives_no_samples(name: str) -> None:
    empty = np.zeros(1, dtype=np.int64)
    window = Window(np.zeros(0, np.uint16), empty, empty, np.zeros(0, np.uint64))
    samples = make_samples(window, INPUT_FORMATS[name], 64, 0, 0)
    assert len(samples) == 0
    assert len(assemble(window, samples, stub_tokenizer())) == 0


def test_an_unknown_arrangement_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(SettingsError, match="'albert'"):
        input_format("alber")


# Labels and lone sentences.


def order_of(window: Window, samples: Samples) -> dict[str, Any]:
    """For untruncated pairs: which came in order, swapped, borrowed, single."""
    pairs = np.diff(samples.fragments) == 2
    first = samples.fragments[:-1][pairs]
    a, b = samples.starts[first], samples.starts[first + 1]
    owner = document_of_token(window)
    same = owner[a] == owner[b]
    return {"pairs": pairs, "same": same, "ordered": same & (a < b), "swapped": same & (a > b)}


@pytest.mark.parametrize("name", DECIDE_ORDER)
def test_sentence_order_is_a_fair_coin_and_its_label_says_so(name: str) -> None:
    window = make_window(random_lengths(6, 70_000, sentences=(2, 5), tokens=(1, 12)))
    samples = make_samples(window, INPUT_FORMATS[name], 64, 0, 0)
    found = order_of(window, samples)
    labels = samples.labels[found["pairs"]]
    assert (labels[found["ordered"]] == 0).all()
    assert (labels[found["swapped"]] == 1).all()
    count = int(found["same"].sum())
    share = found["ordered"].sum() / count
    assert binomial_error(count, 0.5) < 0.01
    assert abs(share - 0.5) < binomial_error(count, 0.5)


@pytest.mark.parametrize("name", RANDOM_NEXT)
def test_borrowing_is_a_fair_coin_and_its_label_says_so(name: str) -> None:
    # A chunk of one sentence always borrows; first chunks of one-token sentences have two or more.
    window = make_window(random_lengths(7, 12_000, sentences=(2, 6), tokens=(1, 1)))
    samples = make_samples(window, INPUT_FORMATS[name], 64, 0, 0)
    found = order_of(window, samples)
    assert found["pairs"].all()
    assert not found["swapped"].any()
    assert (samples.labels == np.where(found["same"], 0, 1)).all()
    assert ((samples.random_next > 0) == ~found["same"]).all()
    opening = np.isin(samples.first, window.documents[:-1])
    share = samples.labels[opening].mean()
    assert binomial_error(int(opening.sum()), 0.5) < 0.03
    assert abs(share - 0.5) < binomial_error(int(opening.sum()), 0.5)


@pytest.mark.parametrize("name", RANDOM_NEXT)
def test_a_lone_sentence_always_borrows_for_next_sentence_prediction(name: str) -> None:
    window = make_window([[5]] * 500)
    samples = make_samples(window, INPUT_FORMATS[name], 64, 0, 0)
    assert (samples.labels == 1).all()
    assert (np.diff(samples.fragments) == 2).all()


def test_displaced_sentences_are_put_back() -> None:
    """BERT: after a borrowed second segment the next chunk begins where it would have."""
    window = make_window([[1] * 30] * 3000)
    samples = make_samples(window, INPUT_FORMATS["segment-pair"], 23, 0, 0)  # 20 tokens of text
    borrowed = samples.labels == 1
    own = samples.last - samples.first
    assert (own[~borrowed] <= 20).all()
    opening = np.isin(samples.first, window.documents[:-1])
    # The first segment of a chunk of 20 sentences has 1 … 19 of them, all alike.
    counts = np.bincount(own[opening & borrowed], minlength=20)[1:20]
    assert_distributed(counts, np.full(19, counts.sum() / 19))
    # Borrowed is as much as the target asks for, or as the other document has.
    ends = samples.ends[samples.fragments[1:] - 1]
    assert ((samples.lengths(1) == 23) | (ends % 30 == 0))[opening & borrowed].all()


def test_borrowed_documents_and_sentences_are_drawn_alike() -> None:
    window = make_window([[2] * 6] * 40)
    found = np.zeros((40, 40), dtype=int)
    start = np.zeros(6, dtype=int)
    for copy in range(200):
        samples = make_samples(window, INPUT_FORMATS["sentence-pair"], 32, 0, copy)
        chosen = np.flatnonzero(samples.labels == 1)
        there = samples.starts[samples.fragments[chosen] + 1] // 2
        np.add.at(found, (window.document_of[samples.first[chosen]], there // 6), 1)
        np.add.at(start, there % 6, 1)
    assert not np.diag(found).any()
    expected = np.full((40, 40), 1.0) - np.eye(40)
    expected *= found.sum(axis=1, keepdims=True) / 39
    freedom_checked = found[expected > 0], expected[expected > 0]
    assert_distributed(*freedom_checked)
    assert_distributed(start, np.full(6, start.sum() / 6))


def test_the_only_document_has_nobody_to_borrow_from() -> None:
    window = make_window([[3, 4, 5, 6]])
    for name in NAMES:
        samples = make_samples(window, INPUT_FORMATS[name], 32, 0, 0)
        assert not samples.random_next.any()
        check_primary(window, samples, crosses=False)


def test_albert_never_puts_two_documents_into_an_order_decision() -> None:
    window = make_window(random_lengths(8, 5000, sentences=(1, 4), tokens=(1, 60)))
    samples = make_samples(window, INPUT_FORMATS["albert"], 48, 0, 0)
    owner = document_of_token(window)
    sample = np.repeat(np.arange(len(samples)), np.diff(samples.fragments))
    documents = {(int(s), int(d)) for s, d in zip(sample, owner[samples.starts], strict=True)}
    assert len(documents) == len(samples)
    assert not samples.random_next.any()
    lone = samples.last - samples.first == 1
    assert lone.any()
    assert (samples.labels[lone] == -1).all()
    assert (np.diff(samples.fragments)[lone] == 1).all()
    assert (samples.labels[~lone] >= 0).all()
    assert (np.diff(samples.fragments)[~lone] == 2).all()


def test_google_borrows_for_a_lone_sentence_and_calls_it_swapped() -> None:
    window = make_window(random_lengths(8, 5000, sentences=(1, 4), tokens=(1, 60)))
    samples = make_samples(window, INPUT_FORMATS["albert-google"], 48, 0, 0)
    lone = samples.last - samples.first == 1
    owner = document_of_token(window)
    first = samples.fragments[:-1]
    assert (np.diff(samples.fragments) == 2).all()
    other = owner[samples.starts[first]] != owner[samples.starts[first + 1]]
    assert (other == lone).all()
    assert (samples.labels[lone] == 1).all()
    assert (owner[samples.starts[first]] == window.document_of[samples.first]).all()


@pytest.mark.parametrize("name", ["electra", "plain-pairs", "full-sentences", *ONE_DOCUMENT])
def test_where_nothing_is_decided_there_is_no_label(name: str) -> None:
    window = make_window(random_lengths(9, 300))
    samples = make_samples(window, INPUT_FORMATS[name], 64, 0, 0)
    assert (samples.labels == -1).all()
    if name in PAIRS:
        assert not order_of(window, samples)["swapped"].any()


def test_electra_leaves_a_tenth_of_the_pairs_single() -> None:
    window = make_window([[2] * 4] * 20_000)
    samples = make_samples(window, INPUT_FORMATS["electra"], 64, 0, 0)
    several = samples.last - samples.first > 1
    share = (np.diff(samples.fragments)[several] == 1).mean()
    assert abs(share - 0.1) < binomial_error(int(several.sum()), 0.1)


# Targets, split points, truncation.


@pytest.mark.parametrize(("name", "short"), [
    ("albert", 0.1), ("albert-google", 0.1), ("bert", 0.1), ("plain-pairs", 0.1),
    ("electra", 0.05), ("segment-pair", 0.0),
])  # fmt: skip
def test_target_lengths(name: str, short: float) -> None:
    """Documents of one-token sentences show their target: the size of a chunk."""
    limit, count = 21, 12_000
    window = make_window([[1] * (2 * limit)] * count)
    rules = INPUT_FORMATS[name].model_copy(update={"negatives": "none"})  # chunks in full view
    samples = make_samples(window, rules, limit + 3, 0, 0)
    sizes = samples.last - samples.first
    target = sizes[np.isin(samples.first, window.documents[:-1])]
    assert len(target) == count
    expected = np.zeros(limit + 1)
    expected[2:] = short * count / (limit - 1)
    expected[limit] += (1 - short) * count
    assert_distributed(np.bincount(target, minlength=limit + 1), expected)
    # Once a document: every chunk but the last has the same size.
    owner = window.document_of[samples.first]
    final = np.append(owner[1:] != owner[:-1], True)
    assert (sizes[~final] == target[owner[~final]]).all()


def test_targets_differ_between_copies() -> None:
    window = make_window([[1] * 30] * 4000)
    short = [make_samples(window, INPUT_FORMATS["albert"], 24, 0, copy) for copy in (0, 1)]
    cut = [{int(d) for d in window.document_of[s.first[s.last - s.first < 9]]} for s in short]
    both = len(cut[0] & cut[1]) / max(len(cut[0]), 1)
    assert both < 0.8


@pytest.mark.parametrize("name", ["albert", "plain-pairs", "electra"])
def test_chunks_end_at_the_target_or_with_the_document(name: str) -> None:
    lengths = random_lengths(10, 2000, sentences=(1, 20), tokens=(1, 20))
    window = make_window(lengths)
    limit = 47
    samples = make_samples(window, INPUT_FORMATS[name], limit + 3, 0, 0)
    cum, stop = window.sentences, window.documents[window.document_of[samples.first] + 1]
    ended = samples.last == stop
    size = cum[samples.last] - cum[samples.first]
    but_last = cum[samples.last - 1] - cum[samples.first]
    assert (but_last < limit).all()
    # One target a document explains all its chunks.
    low, high = np.full(2000, 2), np.full(2000, limit)
    owner = window.document_of[samples.first]
    np.maximum.at(low, owner, but_last + 1)
    np.minimum.at(high, owner[~ended], size[~ended])
    assert (low <= high).all()
    full = np.bincount(owner, ~ended & (size < limit), 2000) == 0
    assert abs(full.mean() - 0.9) < 0.1


@pytest.mark.parametrize("name", ["albert", "plain-pairs", "albert-google"])
@pytest.mark.parametrize("size", [2, 3, 7, 12])
def test_split_points_are_uniform(name: str, size: int) -> None:
    count = 8_000
    window = make_window([[3] * size] * count)
    samples = make_samples(window, INPUT_FORMATS[name], 64, 0, 0)
    whole = samples.last - samples.first == size
    first = samples.fragments[:-1][whole]
    a = (samples.ends - samples.starts)[first] // 3
    b = (samples.ends - samples.starts)[first + 1] // 3
    assert (a + b == size).all()
    earlier = np.where(samples.labels[whole] == 1, b, a)  # the part that was written first
    counts = np.bincount(earlier, minlength=size)[1:]
    assert len(counts) == size - 1
    assert_distributed(counts, np.full(size - 1, counts.sum() / (size - 1)))
    if name != "plain-pairs":  # swapping and splitting are separate decisions
        swapped = samples.labels[whole] == 1
        one = np.bincount(earlier[swapped], minlength=size)[1:]
        two = np.bincount(earlier[~swapped], minlength=size)[1:]
        assert_same_distribution(one, two)


def truncate_literally(a: int, b: int, limit: int, coin: random.Random) -> tuple[int, ...]:
    """Facts B, step 4, a token at a time: front and back removed of each side, and what is left."""
    front, back = [0, 0], [0, 0]
    left = [a, b]
    while sum(left) > limit:
        side = 0 if left[0] > left[1] else 1
        left[side] -= 1
        if coin.random() < 0.5:
            front[side] += 1
        else:
            back[side] += 1
    return front[0], back[0], front[1], back[1], *left


def truncated(a: int, b: int, limit: int, count: int, seed: int = 0) -> np.ndarray:
    """Front and back removed, and what is left, of many pairs of a and b tokens."""
    window = make_window([[a, b]] * count, seed)
    samples = make_samples(window, INPUT_FORMATS["sentence-pair"], limit + 3, seed, 0)
    first = samples.fragments[:-1][samples.labels == 0]
    document = samples.first[samples.labels == 0] // 2
    begin = document * (a + b)
    starts, ends = samples.starts, samples.ends
    return np.stack([
        starts[first] - begin, begin + a - ends[first],
        starts[first + 1] - begin - a, begin + a + b - ends[first + 1],
        ends[first] - starts[first], ends[first + 1] - starts[first + 1],
    ], axis=1)  # fmt: skip


def test_truncated_lengths_are_exactly_those_of_the_rule() -> None:
    coin = random.Random(0)
    for limit in (5, 6, 9, 12):
        for a in range(1, 17):
            for b in range(1, 17):
                found = truncated(a, b, limit, 5, seed=a * 100 + b)
                wanted = truncate_literally(a, b, limit, coin)[4:]
                assert {tuple(row) for row in found[:, 4:].tolist()} <= {wanted}, (a, b, limit)


@pytest.mark.parametrize(("a", "b", "limit"), [
    (9, 9, 8), (12, 3, 8), (2, 14, 9), (7, 6, 5), (6, 7, 5), (5, 4, 8), (4, 5, 8),
])  # fmt: skip
def test_truncation_is_distributed_like_the_rule(a: int, b: int, limit: int) -> None:
    found = Counter(tuple(row) for row in truncated(a, b, limit, 30_000).tolist())
    coin = random.Random(1)
    literal = Counter(truncate_literally(a, b, limit, coin) for _ in range(found.total()))
    cells = sorted({*found, *literal})
    assert_same_distribution([found[cell] for cell in cells], [literal[cell] for cell in cells])


def test_many_removed_tokens_are_binomial() -> None:
    found = truncated(300, 280, 200, 40_000)
    assert (found[:, 4:] == 100).all()
    for front, removed in ((found[:, 0], 200), (found[:, 2], 180)):
        assert abs(front.mean() - removed / 2) < 5 * math.sqrt(removed / 4 / len(front))
        assert abs(front.var() / (removed / 4) - 1) < 5 * math.sqrt(2 / len(front))
    together = np.corrcoef(found[:, 0], found[:, 2])[0, 1]
    assert abs(together) < 5 / math.sqrt(len(found))


@pytest.mark.parametrize("name", [*ONE_DOCUMENT, "full-sentences", "albert", "electra"])
def test_a_sentence_longer_than_the_limit_loses_from_both_ends(name: str) -> None:
    window = make_window([[30]] * 20_000)
    samples = make_samples(window, INPUT_FORMATS[name], 12, 0, 0)
    assert (samples.lengths(1) == 12).all()
    assert (samples.truncated == 20).all()
    front = samples.starts - window.sentences[:-1]
    chances = np.array([math.comb(20, k) for k in range(21)]) / 2**20
    kept = chances * len(front) >= 5
    tails = np.bincount(front, minlength=21)
    assert_distributed(tails[kept], chances[kept] * tails[kept].sum() / chances[kept].sum())


# Runs of whole sentences.


@pytest.mark.parametrize("name", [*ONE_DOCUMENT, "full-sentences"])
@pytest.mark.parametrize("length", [12, 40, 128])
def test_whole_sentences_are_packed_until_the_next_would_not_fit(name: str, length: int) -> None:
    window = make_window(random_lengths(11, 400, sentences=(1, 12), tokens=(1, 30)))
    samples = make_samples(window, INPUT_FORMATS[name], length, 0, 0)
    owner, cum = window.document_of, window.sentences
    expected, first = [], 0
    while first < len(owner):
        last, size = first + 1, int(cum[first + 1] - cum[first])
        while last < len(owner):
            crossing = owner[last] != owner[last - 1]
            more = int(cum[last + 1] - cum[last] + crossing)
            if size + more > length - 2 or (crossing and name != "full-sentences"):
                break
            size, last = size + more, last + 1
        expected.append((first, last))
        first = last
    assert list(zip(samples.first.tolist(), samples.last.tolist(), strict=True)) == expected


def test_full_sentences_cross_documents_with_one_separator() -> None:
    window = make_window([[2, 3], [4], [1, 1]])
    samples = make_samples(window, INPUT_FORMATS["full-sentences"], 64, 0, 0)
    batch = assemble(window, samples, stub_tokenizer())
    text = (np.arange(11) + FIRST_ID).tolist()
    sep = SPECIAL.sep
    assert batch.ids.tolist() == [SPECIAL.cls, *text[:5], sep, *text[5:9], sep, *text[9:], sep]
    assert not batch.token_types.any()
    assert samples.labels.tolist() == [-1]


@pytest.mark.parametrize("name", ONE_DOCUMENT)
def test_single_segments_never_cross_documents(name: str) -> None:
    window = make_window(random_lengths(12, 500))
    samples = make_samples(window, INPUT_FORMATS[name], 64, 0, 0)
    assert (np.diff(samples.fragments) == 1).all()
    owner = document_of_token(window)
    assert (owner[samples.starts] == owner[samples.ends - 1]).all()


def test_every_sentence_by_itself() -> None:
    window = make_window([[2, 30], [4]])
    samples = make_samples(window, INPUT_FORMATS["sentences"], 12, 0, 0)
    assert samples.first.tolist() == [0, 1, 2]
    assert (samples.last - samples.first == 1).all()
    assert samples.lengths(1).tolist() == [4, 12, 6]
    assert samples.truncated.tolist() == [0, 20, 0]
    assert len(set(samples.keys.tolist())) == 3

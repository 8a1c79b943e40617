"""Labels of sentence pairs: fair coins, borrowed segments and lone sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from litebert.corpus.sampling.input_formats import INPUT_FORMATS
from litebert.corpus.sampling.samples import Samples, make_samples
from litebert.corpus.sampling.window import Window
from tests.corpus.input_formats import NAMES, ONE_DOCUMENT, PAIRS, check_primary, document_of_token
from tests.corpus.stores import assert_distributed, binomial_error, make_window, random_lengths

DECIDE_ORDER = ("albert", "albert-google")
RANDOM_NEXT = ("bert", "segment-pair", "sentence-pair")


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

"""Lengths of samples: targets, split points, truncation, and whole sentences packed."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest

from litebert.corpus.sampling.assemble import assemble
from litebert.corpus.sampling.input_formats import INPUT_FORMATS
from litebert.corpus.sampling.samples import make_samples
from tests.corpus.input_formats import ONE_DOCUMENT, document_of_token
from tests.corpus.stores import (
    FIRST_ID,
    SPECIAL,
    assert_distributed,
    assert_same_distribution,
    make_window,
    random_lengths,
    stub_tokenizer,
)

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

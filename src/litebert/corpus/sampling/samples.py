"""Samples: runs of a window's tokens, chosen as an input format says.

Every sentence of a window enters exactly one sample as primary text. What a sample becomes depends
only on (seed, copy, document key, its first sentence), so it is the same in whatever order, on
whatever rank it is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from litebert.base.ragged import IntArray, offsets, ranges
from litebert.base.randomness import Bits, Purpose, binomial, integers, random_bits, uniform
from litebert.corpus.sampling.input_formats import InputFormat
from litebert.corpus.sampling.window import Window

NO_LABEL = -1
Run = tuple[IntArray, IntArray]  # tokens [start, end), of many samples
OF_FRAGMENTS = ("starts", "ends", "token_types")
OF_SAMPLES = ("labels", "keys", "first", "last", "truncated", "random_next")


@dataclass(frozen=True)
class Samples:
    """Samples as runs of a window's tokens: column-wise, fragments of a sample side by side."""

    fragments: IntArray  # first fragment of each sample, and the end
    starts: IntArray  # of each fragment
    ends: IntArray
    token_types: NDArray[np.int8]
    labels: NDArray[np.int8]  # 0 as written, 1 swapped or random next, -1 nothing to decide
    keys: Bits
    first: IntArray  # primary text: sentences [first, last)
    last: IntArray
    truncated: IntArray  # tokens lost to truncation
    random_next: IntArray  # tokens of other documents

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, chosen: IntArray) -> Self:
        """Some of the samples, in the given order."""
        counts = np.diff(self.fragments)[chosen]
        fragments = ranges(self.fragments[chosen], counts)
        columns = {name: getattr(self, name)[fragments] for name in OF_FRAGMENTS}
        columns |= {name: getattr(self, name)[chosen] for name in OF_SAMPLES}
        return type(self)(fragments=offsets(counts), **columns)

    def lengths(self, separators: int) -> IntArray:
        """Tokens of each sample with [CLS] and [SEP], so many of them between segments."""
        text = np.diff(offsets(self.ends - self.starts)[self.fragments])
        return text + 2 + separators * (np.diff(self.fragments) - 1)


def make_samples(
    window: Window, rules: InputFormat, max_length: int, seed: int, copy: int, separators: int = 1
) -> Samples:
    """All samples of a window, of at most `max_length` tokens with the special ones.

    `copy` names the pass over the data: the epoch, or its remainder when samples are to repeat.
    So many `separators` stand between the two segments of a pair (two for RoBERTa).
    """
    if rules.form == "pair":
        return _pairs(window, rules, max_length - 2, separators, seed, copy)
    if rules.form == "single":
        return _singles(window, rules, max_length - 2, seed, copy)
    return _full(window, max_length - 2, seed, copy)


def _pairs(
    window: Window, rules: InputFormat, room: int, separators: int, seed: int, copy: int
) -> Samples:
    """Chunks of sentences split in two: A, and B or what stands in its place."""
    chunks, cum = _Chunks(window, rules, room - separators, seed, copy), window.sentences
    first = _follow(chunks.next(np.arange(len(cum) - 1)))
    middle, last, key = chunks.split(first), chunks.end(first), chunks.key(first)
    random_next = chunks.has_random_next(first)
    drawn = uniform(random_bits(Purpose.SINGLE_SEGMENT, key)) < rules.single_segment_prob
    single = ((last - first == 1) | drawn) & ~random_next
    swapped = ~single & ~random_next & (uniform(random_bits(Purpose.NEGATIVE, key)) < 0.5)
    swapped &= rules.negatives == "swap"
    middle = np.where(single, last, middle)  # all of it is A
    a, b = (cum[first], cum[middle]), (cum[middle], cum[last])
    b = _either(random_next, chunks.random_next(first, key, middle), b)
    one, two = _either(swapped, b, a), _either(swapped, a, b)
    before = _tokens(one) + _tokens(two)
    one, two = _truncate(one, two, np.where(single, room, room - separators), key)
    labels = (swapped | random_next).astype(np.int8)
    labels[single | (rules.negatives == "none")] = NO_LABEL
    kept = np.stack([np.ones_like(single), ~single], axis=1)
    return Samples(
        fragments=offsets(kept.sum(axis=1)),
        starts=np.stack([one[0], two[0]], axis=1)[kept],
        ends=np.stack([one[1], two[1]], axis=1)[kept],
        token_types=np.broadcast_to(np.array([0, 1], dtype=np.int8), kept.shape)[kept],
        labels=labels,
        keys=key,
        first=first,
        last=np.where(random_next, middle, last),
        truncated=before - _tokens(one) - _tokens(two),
        random_next=np.where(random_next, _tokens(two), 0),
    )


def _either(choice: NDArray[np.bool_], yes: Run, no: Run) -> Run:
    return np.where(choice, yes[0], no[0]), np.where(choice, yes[1], no[1])


def _tokens(run: Run) -> IntArray:
    return run[1] - run[0]


class _Chunks:
    """Where a chunk of sentences that begins at a given sentence ends, and how it is used.

    All of it is a pure function of the first sentence, computed for many at once.
    """

    def __init__(
        self, window: Window, rules: InputFormat, limit: int, seed: int, copy: int
    ) -> None:
        self.window, self.rules = window, rules
        self.document = window.document_of
        self.names = (seed, copy)
        names = (seed, copy, window.keys)
        short = uniform(random_bits(Purpose.SHORT_SEQ, *names)) < rules.short_seq_prob
        bits = random_bits(Purpose.SHORT_SEQ_LENGTH, *names)
        self.target = np.where(short, 2 + integers(bits, max(limit - 1, 1)), limit)

    def end(self, first: IntArray) -> IntArray:
        """Sentences are taken until the target length is reached or the document ends."""
        stop = self.window.documents[self.document[first] + 1]
        if self.rules.unit == "sentence":
            return np.minimum(first + 2, stop)
        cum = self.window.sentences
        reached = np.searchsorted(cum, cum[first] + self.target[self.document[first]])
        return np.clip(reached, first + 1, stop)

    def key(self, first: IntArray) -> Bits:
        """The name of the sample."""
        document = self.document[first]
        within = first - self.window.documents[document]
        return random_bits(Purpose.SAMPLE, *self.names, self.window.keys[document], within)

    def split(self, first: IntArray) -> IntArray:
        """The second segment's first sentence: any but the first, all alike."""
        if self.rules.unit == "sentence":
            return first + 1
        size = self.end(first) - first
        bits = random_bits(Purpose.SPLIT, self.key(first))
        return first + 1 + integers(bits, np.maximum(size - 1, 1))

    def has_random_next(self, first: IntArray) -> NDArray[np.bool_]:
        """Whether the second segment comes from another document."""
        found = np.zeros(len(first), dtype=bool)
        if len(self.window.keys) < 2:
            return found
        if self.rules.negatives == "random_next":
            found |= uniform(random_bits(Purpose.NEGATIVE, self.key(first))) < 0.5
        if self.rules.lone == "random_next":
            found |= self.end(first) - first == 1
        return found

    def next(self, first: IntArray) -> IntArray:
        """Where the next chunk begins: sentences that a random next segment displaced come back."""
        if self.rules.negatives != "random_next":
            return self.end(first)
        return np.where(self.has_random_next(first), self.split(first), self.end(first))

    def random_next(self, first: IntArray, key: Bits, middle: IntArray) -> Run:
        """A run of tokens from a random sentence of a random other document."""
        documents, cum = self.window.documents, self.window.sentences
        own, count = self.document[first], len(self.window.keys)
        bits = random_bits(Purpose.RANDOM_NEXT_DOCUMENT, key)
        other = (own + 1 + integers(bits, max(count - 1, 1))) % count
        sentences = documents[other + 1] - documents[other]
        bits = random_bits(Purpose.RANDOM_NEXT_SENTENCE, key)
        start = documents[other] + integers(bits, sentences)
        wanted = self.target[own] - (cum[middle] - cum[first])
        if self.rules.unit == "sentence":
            wanted = np.ones_like(wanted)
        end = np.searchsorted(cum, cum[start] + np.maximum(wanted, 1))
        return cum[start], cum[np.clip(end, start + 1, documents[other + 1])]


def _follow(next_: IntArray) -> IntArray:
    """The chain of first sentences: from the window's first, each to its next."""
    following, chain, sentence = next_.tolist(), [], 0
    while sentence < len(following):
        chain.append(sentence)
        sentence = following[sentence]
    return np.array(chain, dtype=np.int64)


def _truncate(a: Run, b: Run, limit: IntArray, key: Bits) -> tuple[Run, Run]:
    """Drop tokens from the longer of two runs (ties: the second), front or back by a coin each.

    Dropping one at a time ends at the shorter run whole if it fits in half the limit, else at two
    halves; so only the number of heads among the coins is drawn.
    """
    long_a, long_b = a[1] - a[0], b[1] - b[0]
    over = long_a + long_b > limit
    half = limit // 2
    kept_a = np.where(long_b <= half, limit - long_b, np.minimum(long_a, limit - half))
    kept_a = np.where(over, kept_a, long_a)
    kept_b = np.where(over, limit - kept_a, long_b)
    return (
        _trim(a, long_a - kept_a, random_bits(Purpose.TRUNCATION_FIRST, key)),
        _trim(b, long_b - kept_b, random_bits(Purpose.TRUNCATION_SECOND, key)),
    )


def _trim(run: Run, removed: IntArray, bits: Bits) -> Run:
    front = binomial(bits, removed)
    return run[0] + front, run[1] - (removed - front)


def _singles(window: Window, rules: InputFormat, limit: int, seed: int, copy: int) -> Samples:
    """As many whole sentences of one document as fit, or one."""
    cum, document = window.sentences, window.document_of
    every = np.arange(len(document))
    if rules.unit == "sentence":
        return _runs(window, every, every + 1, every, limit, seed, copy)
    fits = np.searchsorted(cum, cum[:-1] + limit, side="right") - 1
    end = np.clip(fits, every + 1, window.documents[document + 1])
    first = _follow(end)
    return _runs(window, first, end[first], first, limit, seed, copy)


def _full(window: Window, limit: int, seed: int, copy: int) -> Samples:
    """As many whole sentences as fit, across documents, with a separator between documents."""
    cum, count = window.sentences, len(window.sentences) - 1
    begins = np.zeros(count, dtype=np.int64)
    begins[window.documents[:-1]] = 1
    separators = np.cumsum(begins)  # up to and with each sentence
    cost = cum + np.append(0, separators)
    every = np.arange(count)
    fits = np.searchsorted(cost, cum[:-1] + separators + limit, side="right") - 1
    end = np.clip(fits, every + 1, count)
    first = _follow(end)
    edges = np.union1d(first, window.documents[:-1])
    return _runs(window, first, end[first], edges, limit, seed, copy)


def _runs(
    window: Window,
    first: IntArray,
    last: IntArray,
    edges: IntArray,
    limit: int,
    seed: int,
    copy: int,
) -> Samples:
    """Samples of sentences [first, last), cut into fragments that begin at the given sentences."""
    cum, document = window.sentences, window.document_of
    within = first - window.documents[document[first]]
    key = random_bits(Purpose.SAMPLE, seed, copy, window.keys[document[first]], within)
    owner = np.searchsorted(first, edges, side="right") - 1
    starts, ends = cum[edges], cum[np.append(edges[1:], len(cum) - 1)]
    removed = np.maximum(ends - starts - limit, 0)  # only a sentence of its own can be too long
    starts, ends = _trim((starts, ends), removed, random_bits(Purpose.TRUNCATION_FIRST, key[owner]))
    return Samples(
        fragments=np.searchsorted(owner, np.arange(len(first) + 1)),
        starts=starts,
        ends=ends,
        token_types=np.zeros(len(edges), dtype=np.int8),
        labels=np.full(len(first), NO_LABEL, dtype=np.int8),
        keys=key,
        first=first,
        last=last,
        truncated=np.bincount(owner, removed, len(first)).astype(np.int64),
        random_next=np.zeros(len(first), dtype=np.int64),
    )

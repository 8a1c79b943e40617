"""Arrangements: how the sentences of documents become samples.

Every sentence of a window enters exactly one sample as primary text. What a sample becomes depends
only on (seed, copy, document key, its first sentence), so it is the same in whatever order, on
whatever rank it is made.

    albert           segment pairs, swapped half the time: sentence order (ALBERT, section 3.1)
    albert-google    the same, with Google's treatment of a lone sentence (below)
    bert             segment pairs, the second from another document half the time (NSP)
    segment-pair, sentence-pair, full-sentences, doc-sentences   RoBERTa's four (its section 4.2)
    spanbert         one segment of one document
    electra          segment pairs in order, a tenth of them single segments; nothing to decide
    plain-pairs      ALBERT's pairs, always in order: the "None" row of its Table 5

A chunk of one sentence cannot be split into two. Under sentence order ours (`lone = "single"`)
makes it a single segment without a label: no other document ever enters an order decision. Google's
code (`lone = "borrow"`) sets a random other document behind it and labels it as swapped.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from litebert.base.config import Settings
from litebert.base.errors import SettingsError, did_you_mean
from litebert.corpus.chance import Bits, For, below, draw, heads, uniform
from litebert.corpus.window import Numbers, Window

NO_LABEL = -1
Run = tuple[Numbers, Numbers]  # tokens [start, end), of many samples


class Arrangement(Settings):
    """The choices that tell arrangements apart."""

    form: Literal["pair", "single", "full"]
    unit: Literal["segment", "sentence"] = "segment"
    negatives: Literal["swap", "borrow", "none"] = "none"
    lone: Literal["single", "borrow"] = "single"
    short: float = 0.0  # share of documents cut to a random shorter length
    single: float = 0.0  # share of pairs left as one segment


ARRANGEMENTS = {
    "albert": Arrangement(form="pair", negatives="swap", short=0.1),
    "albert-google": Arrangement(form="pair", negatives="swap", lone="borrow", short=0.1),
    "bert": Arrangement(form="pair", negatives="borrow", lone="borrow", short=0.1),
    "segment-pair": Arrangement(form="pair", negatives="borrow", lone="borrow"),
    "sentence-pair": Arrangement(
        form="pair", unit="sentence", negatives="borrow", lone="borrow"
    ),
    "full-sentences": Arrangement(form="full"),
    "doc-sentences": Arrangement(form="single"),
    "spanbert": Arrangement(form="single"),
    "electra": Arrangement(form="pair", short=0.05, single=0.1),
    "plain-pairs": Arrangement(form="pair", short=0.1),
}  # fmt: skip


def arrangement(name: str) -> Arrangement:
    """An arrangement by name."""
    if name not in ARRANGEMENTS:
        raise SettingsError(f"arrangement {name!r}: {did_you_mean(name, ARRANGEMENTS)}")
    return ARRANGEMENTS[name]


@dataclass(frozen=True)
class Samples:
    """Samples as runs of a window's tokens: column-wise, fragments of a sample side by side."""

    fragments: Numbers  # first fragment of each sample, and the end
    starts: Numbers  # of each fragment
    ends: Numbers
    types: NDArray[np.int8]
    labels: NDArray[np.int8]  # 0 as written, 1 swapped or borrowed, -1 nothing to decide
    keys: Bits
    first: Numbers  # primary text: sentences [first, last)
    last: Numbers
    dropped: Numbers  # tokens lost to truncation
    borrowed: Numbers  # tokens of other documents

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, chosen: Numbers) -> Self:
        """Some of the samples, in the given order."""
        counts = np.diff(self.fragments)[chosen]
        edges = np.concatenate([[0], np.cumsum(counts)])
        pieces = np.repeat(self.fragments[chosen] - edges[:-1], counts) + np.arange(edges[-1])
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        of_fragments = {name: columns.pop(name)[pieces] for name in ("starts", "ends", "types")}
        columns.pop("fragments")
        of_samples = {name: column[chosen] for name, column in columns.items()}
        return type(self)(fragments=edges, **of_fragments, **of_samples)

    def lengths(self, joint: int) -> Numbers:
        """Tokens of each sample with [CLS] and [SEP], of which `joint` stand between segments."""
        edges = np.concatenate([[0], np.cumsum(self.ends - self.starts)])[self.fragments]
        return np.diff(edges) + 2 + joint * (np.diff(self.fragments) - 1)


def arrange(
    window: Window, rules: Arrangement, length: int, seed: int, copy: int, joint: int = 1
) -> Samples:
    """All samples of a window, of at most `length` tokens with the special ones.

    `copy` names the pass over the data: the epoch, or its remainder when samples are to repeat.
    `joint` separators stand between the two segments of a pair (two for RoBERTa).
    """
    if rules.form == "pair":
        return _pairs(window, rules, length - 2, joint, seed, copy)
    if rules.form == "single":
        return _singles(window, length - 2, seed, copy)
    return _full(window, length - 2, seed, copy)


def _pairs(
    window: Window, rules: Arrangement, room: int, joint: int, seed: int, copy: int
) -> Samples:
    """Chunks of sentences split in two: A, and B or what stands in its place."""
    chunks, cum = _Chunks(window, rules, room - joint, seed, copy), window.sentences
    first = _follow(chunks.next(np.arange(len(cum) - 1)))
    middle, last, key = chunks.split(first), chunks.end(first), chunks.key(first)
    borrows = chunks.borrows(first)
    alone = (last - first == 1) | (uniform(draw(For.SINGLE, key)) < rules.single)
    single = alone & ~borrows
    swaps = ~single & ~borrows & (uniform(draw(For.NEGATIVE, key)) < 0.5)
    swaps &= rules.negatives == "swap"
    middle = np.where(single, last, middle)  # all of it is A
    a, b = (cum[first], cum[middle]), (cum[middle], cum[last])
    b = _either(borrows, chunks.borrowed(first, key, middle), b)
    one, two = _either(swaps, b, a), _either(swaps, a, b)
    before = _tokens(one) + _tokens(two)
    one, two = _truncate(one, two, np.where(single, room, room - joint), key)
    labels = (swaps | borrows).astype(np.int8)
    labels[single | (rules.negatives == "none")] = NO_LABEL
    kept = np.stack([np.ones_like(single), ~single], axis=1)
    return Samples(
        fragments=np.concatenate([[0], np.cumsum(kept.sum(axis=1))]),
        starts=np.stack([one[0], two[0]], axis=1)[kept],
        ends=np.stack([one[1], two[1]], axis=1)[kept],
        types=np.broadcast_to(np.array([0, 1], dtype=np.int8), kept.shape)[kept],
        labels=labels,
        keys=key,
        first=first,
        last=np.where(borrows, middle, last),
        dropped=before - _tokens(one) - _tokens(two),
        borrowed=np.where(borrows, _tokens(two), 0),
    )


def _either(choice: NDArray[np.bool_], yes: Run, no: Run) -> Run:
    return np.where(choice, yes[0], no[0]), np.where(choice, yes[1], no[1])


def _tokens(run: Run) -> Numbers:
    return run[1] - run[0]


class _Chunks:
    """Where a chunk of sentences that begins at a given sentence ends, and how it is used.

    All of it is a pure function of the first sentence, computed for many at once.
    """

    def __init__(
        self, window: Window, rules: Arrangement, limit: int, seed: int, copy: int
    ) -> None:
        self.window, self.rules = window, rules
        self.document = window.document_of
        self.names = (seed, copy)
        short = uniform(draw(For.SHORT, *self.names, window.keys)) < rules.short
        shorter = 2 + below(draw(For.SHORT_LENGTH, *self.names, window.keys), max(limit - 1, 1))
        self.target = np.where(short, shorter, limit)

    def end(self, first: Numbers) -> Numbers:
        """Sentences are taken until the target length is reached or the document ends."""
        stop = self.window.documents[self.document[first] + 1]
        if self.rules.unit == "sentence":
            return np.minimum(first + 2, stop)
        cum = self.window.sentences
        reached = np.searchsorted(cum, cum[first] + self.target[self.document[first]])
        return np.clip(reached, first + 1, stop)

    def key(self, first: Numbers) -> Bits:
        """The name of the sample."""
        document = self.document[first]
        within = first - self.window.documents[document]
        return draw(For.SAMPLE, *self.names, self.window.keys[document], within)

    def split(self, first: Numbers) -> Numbers:
        """The second segment's first sentence: any but the first, all alike."""
        if self.rules.unit == "sentence":
            return first + 1
        size = self.end(first) - first
        return first + 1 + below(draw(For.SPLIT, self.key(first)), np.maximum(size - 1, 1))

    def borrows(self, first: Numbers) -> NDArray[np.bool_]:
        """Whether the second segment comes from another document."""
        borrows = np.zeros(len(first), dtype=bool)
        if len(self.window.keys) < 2:
            return borrows
        if self.rules.negatives == "borrow":
            borrows |= uniform(draw(For.NEGATIVE, self.key(first))) < 0.5
        if self.rules.lone == "borrow":
            borrows |= self.end(first) - first == 1
        return borrows

    def next(self, first: Numbers) -> Numbers:
        """Where the next chunk begins: sentences that a borrowed segment displaced are put back."""
        if self.rules.negatives != "borrow":
            return self.end(first)
        return np.where(self.borrows(first), self.split(first), self.end(first))

    def borrowed(self, first: Numbers, key: Bits, middle: Numbers) -> tuple[Numbers, Numbers]:
        """A run of tokens from a random sentence of a random other document."""
        documents, cum = self.window.documents, self.window.sentences
        own, count = self.document[first], len(self.window.keys)
        step = 1 + below(draw(For.BORROWED_DOCUMENT, key), max(count - 1, 1))
        other = (own + step) % count
        sentences = documents[other + 1] - documents[other]
        start = documents[other] + below(draw(For.BORROWED_SENTENCE, key), sentences)
        wanted = self.target[own] - (cum[middle] - cum[first])
        if self.rules.unit == "sentence":
            wanted = np.ones_like(wanted)
        end = np.searchsorted(cum, cum[start] + np.maximum(wanted, 1))
        return cum[start], cum[np.clip(end, start + 1, documents[other + 1])]


def _follow(next_: Numbers) -> Numbers:
    """The chain of first sentences: from the window's first, each to its next."""
    following, chain, sentence = next_.tolist(), [], 0
    while sentence < len(following):
        chain.append(sentence)
        sentence = following[sentence]
    return np.array(chain, dtype=np.int64)


def _truncate(a: Run, b: Run, limit: Numbers, key: Bits) -> tuple[Run, Run]:
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
        _trim(a, long_a - kept_a, draw(For.TRUNCATION_FIRST, key)),
        _trim(b, long_b - kept_b, draw(For.TRUNCATION_SECOND, key)),
    )


def _trim(run: Run, removed: Numbers, bits: Bits) -> Run:
    front = heads(bits, removed)
    return run[0] + front, run[1] - (removed - front)


def _singles(window: Window, limit: int, seed: int, copy: int) -> Samples:
    """As many whole sentences of one document as fit."""
    cum, document = window.sentences, window.document_of
    fits = np.searchsorted(cum, cum[:-1] + limit, side="right") - 1
    every = np.arange(len(document))
    end = np.clip(fits, every + 1, window.documents[document + 1])
    first = _follow(end)
    return _runs(window, first, end[first], first, limit, seed, copy)


def _full(window: Window, limit: int, seed: int, copy: int) -> Samples:
    """As many whole sentences as fit, across documents, with a separator between documents."""
    cum, count = window.sentences, len(window.sentences) - 1
    begins = np.zeros(count, dtype=np.int64)
    begins[window.documents[:-1]] = 1
    separators = np.cumsum(begins)  # up to and with each sentence
    cost = cum + np.concatenate([[0], separators])
    every = np.arange(count)
    fits = np.searchsorted(cost, cum[:-1] + separators + limit, side="right") - 1
    end = np.clip(fits, every + 1, count)
    first = _follow(end)
    pieces = np.union1d(first, window.documents[:-1])
    return _runs(window, first, end[first], pieces, limit, seed, copy)


def _runs(
    window: Window, first: Numbers, last: Numbers, pieces: Numbers, limit: int, seed: int, copy: int
) -> Samples:
    """Samples of sentences [first, last), cut into fragments that begin at the given sentences."""
    cum, document = window.sentences, window.document_of
    within = first - window.documents[document[first]]
    key = draw(For.SAMPLE, seed, copy, window.keys[document[first]], within)
    owner = np.searchsorted(first, pieces, side="right") - 1
    starts, ends = cum[pieces], cum[np.append(pieces[1:], len(cum) - 1)]
    removed = np.maximum(ends - starts - limit, 0)  # only a sentence of its own can be too long
    starts, ends = _trim((starts, ends), removed, draw(For.TRUNCATION_FIRST, key[owner]))
    return Samples(
        fragments=np.searchsorted(owner, np.arange(len(first) + 1)),
        starts=starts,
        ends=ends,
        types=np.zeros(len(pieces), dtype=np.int8),
        labels=np.full(len(first), NO_LABEL, dtype=np.int8),
        keys=key,
        first=first,
        last=last,
        dropped=np.bincount(owner, removed, len(first)).astype(np.int64),
        borrowed=np.zeros(len(first), dtype=np.int64),
    )

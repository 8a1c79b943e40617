"""Masking: which tokens to hide, and what to put in their place. Pure functions of the samples.

    token    single pieces (BERT, RoBERTa)
    word     whole words
    ngram    runs of 1 to 3 words, p(n) proportional to 1/n (ALBERT, section 4.1)
    span     runs of words, geometric lengths 1 to 10, p = 0.2 (SpanBERT, section 3.1)

Candidates are tried in a random order until the budget is filled. A run of words that would exceed
it is shortened word by word, and left out if any of it is hidden already; a span instead may cut a
word at the budget and may overlap others, as in SpanBERT's code. Runs never cross a separator
(Google's code lets them). Draws are named by sample and position, so a sample is masked alike in
whatever batch it stands; the loop runs over candidates, all sequences of a batch at once.

Shapes: B sequences, N tokens of a packed batch, W words.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from litebert.base.batch import Batch, Numbers
from litebert.base.config import Settings
from litebert.base.errors import SettingsError
from litebert.corpus.chance import Bits, For, below, draw, uniform
from litebert.text.tokenizer import Tokenizer


class Masking(Settings):
    """How tokens are hidden. The defaults are ALBERT's, 15 % without Google's cap."""

    unit: Literal["token", "word", "ngram", "span"] = "ngram"
    share: float = Field(default=0.15, gt=0, lt=1)
    most: int | None = Field(default=None, gt=0)  # tokens a sequence; Google's code has 20
    longest: int = Field(default=3, gt=0)  # words of an n-gram
    common: float | None = Field(default=None, gt=0, lt=1)  # pieces of a larger share of the text
    # are chosen less often, by sqrt(common / share), as word2vec's subsampling does
    rounding: Literal["nearest", "up", "random"] = "nearest"  # ALBERT, SpanBERT, RoBERTa
    mask: float = Field(default=0.8, ge=0, le=1)  # share that becomes [MASK]
    random: float = Field(
        default=0.1, ge=0, le=1
    )  # share that becomes a random token; the rest stays
    together: bool = False  # one decision for a whole run, as in SpanBERT; else for each token
    specials: bool = True  # random tokens may be special ones, as in Google's code
    filler: Literal["uniform", "unigram"] = "uniform"  # random tokens: any, or as often as in text
    repeated: bool = False  # places drawn with replacement, as in ELECTRA: some coincide

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.mask + self.random > 1 + 1e-9:
            raise ValueError(f"mask {self.mask} and random {self.random} add up to more than 1")
        if self.common is not None and self.unit != "token":
            raise ValueError(f"common weighs single tokens, not a {self.unit}: set unit to 'token'")
        if self.repeated and self.unit != "token":
            raise ValueError(
                f"repeated draws single tokens, not a {self.unit}: set unit to 'token'"
            )
        return self


@dataclass(frozen=True)
class Words:
    """The units of a batch that can be hidden, in order; word w covers tokens [start, end)."""

    start: Numbers
    end: Numbers
    left: Numbers  # words from this one to the end of its segment, itself included
    of: Numbers  # the word of each token, where it has one


class Masker:
    """Masking with a tokenizer's knowledge of words and special tokens.

    `counts` says how often each piece occurs, for random tokens drawn as the text has them and for
    common pieces to be chosen less.
    """

    def __init__(
        self, settings: Masking, tokenizer: Tokenizer, counts: NDArray[np.int64] | None = None
    ) -> None:
        self.settings = settings
        self.tokenizer = tokenizer.checksum
        self.starts = tokenizer.word_starts
        self.mask = tokenizer.special.mask
        ordinary = np.flatnonzero(~tokenizer.special_mask)
        self.fillers = np.arange(tokenizer.vocab_size) if settings.specials else ordinary
        self.shares: NDArray[np.float64] | None = None
        if settings.filler == "unigram":
            if counts is None:
                raise SettingsError("masking.filler 'unigram' needs the counts of the pieces")
            weights = counts[self.fillers].astype(np.float64)
            if not weights.sum():
                raise SettingsError("masking.filler 'unigram': the text has no pieces to draw from")
            self.shares = np.cumsum(weights) / weights.sum()
        self.weights: NDArray[np.float64] | None = None
        if settings.common is not None:
            if counts is None:
                raise SettingsError("masking.common needs the counts of the pieces")
            share = np.maximum(counts / max(counts.sum(), 1), 1e-12)
            self.weights = np.minimum(np.sqrt(settings.common / share), 1.0)

    def hidden(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """About how often each piece is hidden, on the scale of its counts."""
        if self.weights is None:
            return counts
        return np.rint(counts * self.weights).astype(np.int64)

    def fingerprint(self) -> dict[str, Any]:
        """What decides the masks beside the samples: a saved position holds for no other."""
        drawn = [part for part in (self.shares, self.weights) if part is not None]
        fillers = hashlib.sha256(b"".join(part.tobytes() for part in drawn)).hexdigest()
        return {**self.settings.model_dump(), "tokenizer": self.tokenizer, "fillers": fillers}

    def __call__(self, batch: Batch) -> Batch:
        """The batch with tokens hidden, their places and what they were."""
        words = find_words(batch, self._word_starts(batch))
        runs = choose(batch, words, self.settings, self.weights)
        positions = np.flatnonzero(runs)
        ids = batch.ids.copy()
        ids[positions] = self._replaced(batch, positions, runs)
        return replace(batch, ids=ids, positions=positions, targets=batch.ids[positions])

    def _word_starts(self, batch: Batch) -> NDArray[np.bool_]:
        if self.settings.unit == "token":
            return batch.inside
        return (self.starts[batch.ids] | batch.begins) & batch.inside

    def _replaced(self, batch: Batch, positions: Numbers, runs: Numbers) -> NDArray[np.int32]:
        """[MASK], a random token, or the token itself."""
        key = batch.keys[batch.sequence[positions]]
        offset = batch.offset[positions]
        decider = _run_starts(positions, runs, batch) if self.settings.together else offset
        kind = uniform(draw(For.MASK_KIND, key, decider))
        filler = self._fillers(draw(For.MASK_TOKEN, key, offset))
        hidden = kind < self.settings.mask
        other = kind < self.settings.mask + self.settings.random
        return np.where(hidden, self.mask, np.where(other, filler, batch.ids[positions])).astype(
            np.int32
        )

    def _fillers(self, bits: Bits) -> Numbers:
        if self.shares is None:
            return self.fillers[below(bits, len(self.fillers))]
        return self.fillers[np.searchsorted(self.shares, uniform(bits), side="right")]


def _run_starts(positions: Numbers, runs: Numbers, batch: Batch) -> Numbers:
    """For each hidden token the offset where its run begins; adjacent runs are one."""
    begins = np.ones(len(positions), dtype=bool)
    begins[1:] = (np.diff(positions) > 1) | (np.diff(batch.sequence[positions]) > 0)
    first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    return batch.offset[positions[first]]


def find_words(batch: Batch, starts: NDArray[np.bool_]) -> Words:
    """Words from the tokens that start one."""
    start = np.flatnonzero(starts)
    edges = np.append(np.flatnonzero(starts | ~batch.inside), len(starts))
    end = edges[np.searchsorted(edges, start, side="right")]
    segment = np.cumsum(batch.begins)[start]
    last = np.searchsorted(segment, segment, side="right")
    return Words(start, end, last - np.arange(len(start)), np.cumsum(starts) - 1)


def budgets(batch: Batch, settings: Masking) -> Numbers:
    """Tokens to hide in each sequence."""
    wanted = settings.share * batch.lengths
    if settings.rounding == "nearest":
        count = np.rint(wanted)
    elif settings.rounding == "up":
        count = np.ceil(wanted)
    else:
        count = np.floor(wanted + uniform(draw(For.MASK_BUDGET, batch.keys)))
    most = batch.lengths if settings.most is None else settings.most
    return np.minimum(np.maximum(count, 1), most).astype(np.int64)


def choose(
    batch: Batch, words: Words, settings: Masking, weights: NDArray[np.float64] | None = None
) -> Numbers:
    """For each token 0, or the number (from 1) of the run that hides it.

    With `weights`, one a piece, runs begin at pieces of a higher weight more often.
    """
    if settings.repeated:
        return _choose_repeatedly(batch, budgets(batch, settings))
    token_wise = settings.unit == "span"  # anchors are tokens, moved to their word's start
    anchors = np.flatnonzero(batch.inside) if token_wise else words.start
    candidates = _shuffled(batch, anchors, weights)
    counts = _lengths(batch, words, anchors, settings)
    runs = np.zeros(len(batch.ids), dtype=np.int64)
    left = budgets(batch, settings)
    for number, column in enumerate(candidates, start=1):
        open_ = np.flatnonzero((column >= 0) & (left > 0))
        if not len(open_):
            if not (left > 0).any():
                break
            continue
        anchor = column[open_]
        word = words.of[anchors[anchor]]
        if token_wise:
            taken = _take_span(runs, words, word, counts[anchor], left[open_], anchors[anchor])
        else:
            taken = _take_whole(runs, words, word, counts[anchor], left[open_])
        tokens, owner = taken
        runs[tokens] = number
        left[open_] -= np.bincount(owner, minlength=len(open_))
    return runs


def _choose_repeatedly(batch: Batch, counts: Numbers) -> Numbers:
    """Places drawn with replacement, as in ELECTRA: fewer than the budget, as some coincide."""
    places = np.flatnonzero(batch.inside)
    room = np.bincount(batch.sequence[places], minlength=len(batch))
    counts = np.where(room > 0, counts, 0)
    owner = np.repeat(np.arange(len(batch)), counts)
    turn = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    chance = draw(For.MASK_ORDER, batch.keys[owner], turn)
    runs = np.zeros(len(batch.ids), dtype=np.int64)
    runs[places[(np.cumsum(room) - room)[owner] + below(chance, room[owner])]] = 1
    return runs


def _shuffled(
    batch: Batch, anchors: Numbers, weights: NDArray[np.float64] | None
) -> NDArray[np.int64]:
    """Candidates in random order, one column a sequence, -1 where there are no more.

    Weights: who waits for an event that comes so often comes first so often (Efraimidis and
    Spirakis 2006).
    """
    sequence = batch.sequence[anchors]
    chance = draw(For.MASK_ORDER, batch.keys[sequence], batch.offset[anchors])
    if weights is not None:
        chance = -np.log1p(-uniform(chance)) / weights[batch.ids[anchors]]
    order = np.lexsort((chance, sequence))
    counts = np.bincount(sequence, minlength=len(batch))
    rank = np.arange(len(anchors)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((int(counts.max(initial=0)), len(batch)), -1, dtype=np.int64)
    table[rank, sequence[order]] = order
    return table


def _lengths(batch: Batch, words: Words, anchors: Numbers, settings: Masking) -> Numbers:
    """How many words a run beginning at each anchor shall have."""
    left = words.left[words.of[anchors]]
    if settings.unit in ("token", "word"):
        return np.ones(len(anchors), dtype=np.int64)
    chance = draw(For.MASK_LENGTH, batch.keys[batch.sequence[anchors]], batch.offset[anchors])
    if settings.unit == "ngram":
        weights = np.cumsum(1 / np.arange(1, settings.longest + 1))
        scale = weights[np.minimum(left, settings.longest) - 1]
        return 1 + np.searchsorted(weights, uniform(chance) * scale, side="right")
    weights = np.cumsum(0.2 * 0.8 ** np.arange(10))
    count = 1 + np.searchsorted(weights, uniform(chance) * weights[-1], side="right")
    return np.minimum(count, left)


def _take_whole(
    runs: Numbers, words: Words, word: Numbers, count: Numbers, left: Numbers
) -> tuple[Numbers, Numbers]:
    """Tokens of runs of whole words that fit in what is left and are not hidden yet."""
    begin = words.start[word]
    count = count.copy()
    while ((count > 0) & (over := words.end[word + count - 1] - begin > left)).any():
        count -= (count > 0) & over
    length = np.where(count > 0, words.end[word + count - 1] - begin, 0)
    tokens, owner = _spread(begin, length)
    covered = np.bincount(owner, runs[tokens] > 0, len(word)) > 0
    keep = ~covered[owner]
    return tokens[keep], owner[keep]


def _take_span(
    runs: Numbers, words: Words, word: Numbers, count: Numbers, left: Numbers, anchor: Numbers
) -> tuple[Numbers, Numbers]:
    """Tokens of spans whose anchor is not hidden yet, as far as the budget reaches."""
    begin = words.start[word]
    length = np.where(runs[anchor] > 0, 0, words.end[word + count - 1] - begin)
    tokens, owner = _spread(begin, length)
    fresh = runs[tokens] == 0
    tokens, owner = tokens[fresh], owner[fresh]
    counts = np.bincount(owner, minlength=len(word))
    rank = np.arange(len(tokens)) - np.repeat(np.cumsum(counts) - counts, counts)
    keep = rank < left[owner]
    return tokens[keep], owner[keep]


def _spread(begin: Numbers, length: Numbers) -> tuple[Numbers, Numbers]:
    """All tokens of the runs [begin, begin + length), and the run of each."""
    owner = np.repeat(np.arange(len(begin)), length)
    before = np.cumsum(length) - length
    return np.arange(len(owner)) - before[owner] + begin[owner], owner

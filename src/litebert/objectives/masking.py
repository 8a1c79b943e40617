"""Masking: which tokens to mask, and what to put in their place. Pure functions of the samples.

    token    single tokens (BERT, RoBERTa)
    word     whole words
    ngram    runs of 1 to 3 words, p(n) proportional to 1/n (ALBERT, section 4.1)
    span     runs of words, geometric lengths 1 to 10, p = 0.2 (SpanBERT, section 3.1)

Candidates are tried in a random order until the budget is filled. A run of words that would exceed
it is shortened word by word, and left out if any of it is masked already; a span instead may cut a
word at the budget and may overlap others, as in SpanBERT's code. Runs never cross a separator
(Google's code lets them). Draws are named by sample and position, so a sample is masked alike in
whatever batch it stands; the loop runs over candidates, all sequences of a batch at once.

Shapes: B sequences, N tokens of a packed batch, W words.
"""

from __future__ import annotations

import hashlib
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from litebert.base.batches import Batch
from litebert.base.errors import SettingsError
from litebert.base.ragged import IntArray, positions_within
from litebert.base.randomness import Bits, Purpose, integers, random_bits, uniform
from litebert.base.settings import Settings
from litebert.text.tokenizer import Tokenizer


class Masking(Settings):
    """How tokens are masked. The defaults are ALBERT's, 15 % without Google's cap."""

    unit: Literal["token", "word", "ngram", "span"] = Field(
        default="ngram", description="what is masked as a whole"
    )
    fraction: float = Field(default=0.15, gt=0, lt=1, description="of tokens that are masked")
    max_predictions: int | None = Field(
        default=None, gt=0, description="masked tokens a sequence at most; Google's code has 20"
    )
    max_ngram: int = Field(default=3, gt=0, description="words of an n-gram at most")
    subsampling: float | None = Field(
        default=None, gt=0, lt=1,
        description="tokens more frequent than this are masked less, by sqrt(subsampling / "
        "frequency), as word2vec subsamples frequent words",
    )  # fmt: skip
    rounding: Literal["nearest", "up", "random"] = Field(
        default="nearest", description="of the number to mask: ALBERT, SpanBERT, RoBERTa"
    )
    mask_fraction: float = Field(default=0.8, ge=0, le=1, description="replaced by [MASK]")
    random_fraction: float = Field(
        default=0.1, ge=0, le=1, description="replaced by a random token; the rest stays"
    )
    per_span: bool = Field(
        default=False, description="one replacement decision a span, as SpanBERT; else a token"
    )
    random_special_tokens: bool = Field(
        default=True, description="random tokens may be special ones, as in Google's code"
    )
    random_tokens: Literal["uniform", "unigram"] = Field(
        default="uniform", description="random tokens: any alike, or as often as in the text"
    )
    with_replacement: bool = Field(
        default=False, description="positions drawn with replacement, as ELECTRA: some coincide"
    )

    @model_validator(mode="after")
    def _fractions(self) -> Self:
        if self.mask_fraction + self.random_fraction > 1 + 1e-9:
            raise ValueError(
                f"mask_fraction {self.mask_fraction} and random_fraction {self.random_fraction} "
                "add up to more than 1"
            )
        for name in ("subsampling", "with_replacement"):
            if getattr(self, name) and self.unit != "token":
                raise ValueError(f"{name} needs unit 'token', not {self.unit!r}")
        return self


@dataclass(frozen=True)
class Words:
    """The units of a batch that can be masked, in order; word w covers tokens [start, end)."""

    start: IntArray
    end: IntArray
    left: IntArray  # words from this one to the end of its segment, itself included
    of: IntArray  # the word of each token, where it has one


class Masker:
    """Masking with a tokenizer's knowledge of words and special tokens.

    `counts` says how often each token occurs, for random tokens drawn as the text has them and for
    frequent tokens to be chosen less.
    """

    def __init__(
        self, settings: Masking, tokenizer: Tokenizer, counts: NDArray[np.int64] | None = None
    ) -> None:
        self.settings = settings
        self.tokenizer = tokenizer.checksum
        self.word_starts = tokenizer.word_starts
        self.mask_id = tokenizer.special.mask
        ordinary = np.flatnonzero(~tokenizer.special_mask)
        every = np.arange(tokenizer.vocab_size)
        self.random_ids = every if settings.random_special_tokens else ordinary
        self.unigram_cdf: NDArray[np.float64] | None = None
        if settings.random_tokens == "unigram":
            weights = _needed(counts, "masking.random_tokens 'unigram'")[self.random_ids]
            if not weights.sum():
                raise SettingsError("masking.random_tokens 'unigram': the text has no tokens")
            self.unigram_cdf = np.cumsum(weights, dtype=np.float64) / weights.sum()
        self.weights: NDArray[np.float64] | None = None
        if settings.subsampling is not None:
            known = _needed(counts, "masking.subsampling")
            frequency = np.maximum(known / max(known.sum(), 1), 1e-12)
            self.weights = np.minimum(np.sqrt(settings.subsampling / frequency), 1.0)

    def with_fraction(self, fraction: float | None) -> Masker:
        """The same masking of another fraction of the tokens; None changes nothing."""
        if fraction is None:
            return self
        other = copy(self)
        other.settings = self.settings.model_copy(update={"fraction": fraction})
        return other

    def masked_counts(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """About how often each token is masked, on the scale of its counts."""
        if self.weights is None:
            return counts
        return np.rint(counts * self.weights).astype(np.int64)

    def fingerprint(self) -> dict[str, Any]:
        """What decides the masks beside the samples: a saved position holds for no other."""
        drawn = [part for part in (self.unigram_cdf, self.weights) if part is not None]
        fillers = hashlib.sha256(b"".join(part.tobytes() for part in drawn)).hexdigest()
        return {**self.settings.model_dump(), "tokenizer": self.tokenizer, "fillers": fillers}

    def __call__(self, batch: Batch) -> Batch:
        """The batch with tokens masked, their places and what they were."""
        words = find_words(batch, self._word_starts(batch))
        runs = choose(batch, words, self.settings, self.weights)
        positions = np.flatnonzero(runs)
        ids = batch.ids.copy()
        ids[positions] = self._replaced(batch, positions, runs)
        return replace(batch, ids=ids, positions=positions, targets=batch.ids[positions])

    def _word_starts(self, batch: Batch) -> NDArray[np.bool_]:
        if self.settings.unit == "token":
            return batch.is_text
        return (self.word_starts[batch.ids] | batch.segment_starts) & batch.is_text

    def _replaced(self, batch: Batch, positions: IntArray, runs: IntArray) -> NDArray[np.int32]:
        """[MASK], a random token, or the token itself."""
        key = batch.keys[batch.sequence_ids[positions]]
        offset = batch.position_ids[positions]
        decider = _run_starts(positions, runs, batch) if self.settings.per_span else offset
        kind = uniform(random_bits(Purpose.MASK_KIND, key, decider))
        filler = self._random_tokens(random_bits(Purpose.MASK_TOKEN, key, offset))
        masked = kind < self.settings.mask_fraction
        other = kind < self.settings.mask_fraction + self.settings.random_fraction
        return np.where(masked, self.mask_id, np.where(other, filler, batch.ids[positions])).astype(
            np.int32
        )

    def _random_tokens(self, bits: Bits) -> IntArray:
        if self.unigram_cdf is None:
            return self.random_ids[integers(bits, len(self.random_ids))]
        return self.random_ids[np.searchsorted(self.unigram_cdf, uniform(bits), side="right")]


def _needed(counts: NDArray[np.int64] | None, setting: str) -> NDArray[np.int64]:
    if counts is None:
        raise SettingsError(f"{setting} needs the counts of the tokens")
    return counts


def _run_starts(positions: IntArray, runs: IntArray, batch: Batch) -> IntArray:
    """For each masked token the offset where its run begins; adjacent runs are one."""
    begins = np.ones(len(positions), dtype=bool)
    begins[1:] = (np.diff(positions) > 1) | (np.diff(batch.sequence_ids[positions]) > 0)
    first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    return batch.position_ids[positions[first]]


def find_words(batch: Batch, starts: NDArray[np.bool_]) -> Words:
    """Words from the tokens that start one."""
    start = np.flatnonzero(starts)
    edges = np.append(np.flatnonzero(starts | ~batch.is_text), len(starts))
    end = edges[np.searchsorted(edges, start, side="right")]
    segment = np.cumsum(batch.segment_starts)[start]
    last = np.searchsorted(segment, segment, side="right")
    return Words(start, end, last - np.arange(len(start)), np.cumsum(starts) - 1)


def mask_counts(batch: Batch, settings: Masking) -> IntArray:
    """Tokens to mask in each sequence."""
    wanted = settings.fraction * batch.lengths
    if settings.rounding == "nearest":
        count = np.rint(wanted)
    elif settings.rounding == "up":
        count = np.ceil(wanted)
    else:
        count = np.floor(wanted + uniform(random_bits(Purpose.MASK_BUDGET, batch.keys)))
    most = batch.lengths if settings.max_predictions is None else settings.max_predictions
    return np.minimum(np.maximum(count, 1), most).astype(np.int64)


def choose(
    batch: Batch, words: Words, settings: Masking, weights: NDArray[np.float64] | None = None
) -> IntArray:
    """For each token 0, or the number (from 1) of the run that masks it.

    With `weights`, one a token, runs begin at tokens of a higher weight more often.
    """
    if settings.with_replacement:
        return _choose_repeatedly(batch, mask_counts(batch, settings))
    token_wise = settings.unit == "span"  # anchors are tokens, moved to their word's start
    anchors = np.flatnonzero(batch.is_text) if token_wise else words.start
    if settings.unit == "token":
        return _choose_tokens(batch, anchors, mask_counts(batch, settings), weights)
    candidates = _shuffled(batch, anchors, weights)
    counts = _lengths(batch, words, anchors, settings)
    runs = np.zeros(len(batch.ids), dtype=np.int64)
    left = mask_counts(batch, settings)
    for number, column in enumerate(candidates, start=1):
        active = np.flatnonzero((column >= 0) & (left > 0))
        if not len(active):
            if not (left > 0).any():
                break
            continue
        anchor = column[active]
        word = words.of[anchors[anchor]]
        if token_wise:
            taken = _take_span(runs, words, word, counts[anchor], left[active], anchors[anchor])
        else:
            taken = _take_whole(runs, words, word, counts[anchor], left[active])
        tokens, owner = taken
        runs[tokens] = number
        left[active] -= np.bincount(owner, minlength=len(active))
    return runs


def _choose_repeatedly(batch: Batch, counts: IntArray) -> IntArray:
    """Places drawn with replacement, as in ELECTRA: fewer than the budget, as some coincide."""
    places = np.flatnonzero(batch.is_text)
    room = np.bincount(batch.sequence_ids[places], minlength=len(batch))
    counts = np.where(room > 0, counts, 0)
    owner = np.repeat(np.arange(len(batch)), counts)
    turn = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    chance = random_bits(Purpose.MASK_ORDER, batch.keys[owner], turn)
    runs = np.zeros(len(batch.ids), dtype=np.int64)
    runs[places[(np.cumsum(room) - room)[owner] + integers(chance, room[owner])]] = 1
    return runs


def _choose_tokens(
    batch: Batch, anchors: IntArray, counts: IntArray, weights: NDArray[np.float64] | None
) -> IntArray:
    """Single tokens never overlap, so the first candidates of each sequence are the chosen ones."""
    order, rank = _ranked(batch, anchors, weights)
    taken = rank < counts[batch.sequence_ids[anchors[order]]]
    runs = np.zeros(len(batch.ids), dtype=np.int64)
    runs[anchors[order[taken]]] = rank[taken] + 1
    return runs


def _shuffled(
    batch: Batch, anchors: IntArray, weights: NDArray[np.float64] | None
) -> NDArray[np.int64]:
    """Candidates in random order, one column a sequence, -1 where there are no more."""
    order, rank = _ranked(batch, anchors, weights)
    table = np.full((int(rank.max(initial=-1)) + 1, len(batch)), -1, dtype=np.int64)
    table[rank, batch.sequence_ids[anchors[order]]] = order
    return table


def _ranked(
    batch: Batch, anchors: IntArray, weights: NDArray[np.float64] | None
) -> tuple[IntArray, IntArray]:
    """Candidates sequence by sequence, each in random order, and the place of each in that.

    Weights: who waits for an event that comes so often comes first so often (Efraimidis and
    Spirakis 2006).
    """
    sequence = batch.sequence_ids[anchors]
    chance = random_bits(Purpose.MASK_ORDER, batch.keys[sequence], batch.position_ids[anchors])
    if weights is not None:
        chance = -np.log1p(-uniform(chance)) / weights[batch.ids[anchors]]
    order = np.lexsort((chance, sequence))
    counts = np.bincount(sequence, minlength=len(batch))
    return order, positions_within(counts)


def _lengths(batch: Batch, words: Words, anchors: IntArray, settings: Masking) -> IntArray:
    """How many words a run beginning at each anchor shall have."""
    left = words.left[words.of[anchors]]
    if settings.unit in ("token", "word"):
        return np.ones(len(anchors), dtype=np.int64)
    chance = random_bits(
        Purpose.MASK_LENGTH, batch.keys[batch.sequence_ids[anchors]], batch.position_ids[anchors]
    )
    if settings.unit == "ngram":
        weights = np.cumsum(1 / np.arange(1, settings.max_ngram + 1))
        scale = weights[np.minimum(left, settings.max_ngram) - 1]
        return 1 + np.searchsorted(weights, uniform(chance) * scale, side="right")
    weights = np.cumsum(0.2 * 0.8 ** np.arange(10))
    count = 1 + np.searchsorted(weights, uniform(chance) * weights[-1], side="right")
    return np.minimum(count, left)


def _take_whole(
    runs: IntArray, words: Words, word: IntArray, count: IntArray, left: IntArray
) -> tuple[IntArray, IntArray]:
    """Tokens of runs of whole words that fit in what is left and are not masked yet."""
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
    runs: IntArray, words: Words, word: IntArray, count: IntArray, left: IntArray, anchor: IntArray
) -> tuple[IntArray, IntArray]:
    """Tokens of spans whose anchor is not masked yet, as far as the budget reaches."""
    begin = words.start[word]
    length = np.where(runs[anchor] > 0, 0, words.end[word + count - 1] - begin)
    tokens, owner = _spread(begin, length)
    fresh = runs[tokens] == 0
    tokens, owner = tokens[fresh], owner[fresh]
    counts = np.bincount(owner, minlength=len(word))
    rank = np.arange(len(tokens)) - np.repeat(np.cumsum(counts) - counts, counts)
    keep = rank < left[owner]
    return tokens[keep], owner[keep]


def _spread(begin: IntArray, length: IntArray) -> tuple[IntArray, IntArray]:
    """All tokens of the runs [begin, begin + length), and the run of each."""
    owner = np.repeat(np.arange(len(begin)), length)
    before = np.cumsum(length) - length
    return np.arange(len(owner)) - before[owner] + begin[owner], owner

"""Masking as ELECTRA and SpanBERT do it: draws with replacement, tokens as the text has them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from pydantic import ValidationError

from litebert.base.errors import SettingsError
from litebert.configs.load import load_preset
from litebert.objectives.masking import Masker, Masking, choose, find_words
from tests.corpus.stores import SPECIAL, assert_distributed, binomial_error
from tests.objectives.word_batches import (
    VOCABULARY,
    Shape,
    alike,
    make_batch,
    make_tokenizer,
    mask,
    piece_counts,
    shapes,
    wanted_budget,
)

ELECTRA: dict[str, Any] = {
    "unit": "token", "mask_fraction": 0.85, "random_fraction": 0.0, "with_replacement": True
}  # fmt: skip
SPANBERT = load_preset("spanbert-base").masking


def test_the_presets_say_so() -> None:
    electra = load_preset("electra-small").masking
    assert electra == Masking(**ELECTRA)
    assert (SPANBERT.unit, SPANBERT.rounding, SPANBERT.random_tokens) == ("span", "up", "unigram")
    assert (SPANBERT.per_span, SPANBERT.fraction, SPANBERT.mask_fraction) == (True, 0.15, 0.8)


# ELECTRA: places drawn with replacement.


@pytest.mark.parametrize("length", [12, 33, 128, 512])
def test_places_coincide_as_often_as_draws_with_replacement(length: int) -> None:
    """k draws from n places leave n (1 - (1 - 1/n)^k) distinct ones on average."""
    count = 200_000 // length
    batch = alike([[1] * (length - 2)], count)
    found = mask(batch, **ELECTRA)
    distinct = np.bincount(batch.sequence_ids[found.positions], minlength=count)
    places, draws = length - 2, wanted_budget(length)
    missed = (1 - 1 / places) ** draws
    pair = (1 - 2 / places) ** draws  # that two given places are both missed
    spread = places * missed * (1 - missed) + places * (places - 1) * (pair - missed**2)
    error = 5 * math.sqrt(max(spread, 0.0) / count) + 1e-9
    assert abs(distinct.mean() - places * (1 - missed)) < error
    assert distinct.max() <= draws
    assert distinct.min() >= 1


def test_a_large_fraction_still_leaves_tokens_unmasked() -> None:
    """With replacement 60 % of draws leave (1 - 1/n)^0.6n = 55 % of tokens; without, 40 %."""
    batch = alike([[1] * 98], 500)
    found = mask(batch, **ELECTRA, fraction=0.6)
    hidden = len(found.positions) / (98 * 500)
    assert abs(hidden - (1 - (1 - 1 / 98) ** 60)) < 0.01


def test_all_places_are_drawn_alike() -> None:
    batch = alike([[1] * 17, [1] * 20], 20_000)
    found = mask(batch, **ELECTRA)
    places = np.bincount(batch.position_ids[found.positions], minlength=40)
    assert places[[0, 18, 39]].tolist() == [0, 0, 0]
    text = np.delete(places, [0, 18, 39])
    chance = 1 - (1 - 1 / 37) ** wanted_budget(40)
    assert np.abs(text / 20_000 - chance).max() < binomial_error(20_000, chance)


def test_electra_masks_85_percent_and_keeps_the_rest() -> None:
    batch = alike([[1] * 126], 3000)
    found = mask(batch, **ELECTRA)
    now = found.ids[found.positions]
    hidden = now == SPECIAL.mask
    assert (now[~hidden] == found.targets[~hidden]).all(), "a token became a random one"
    assert abs(hidden.mean() - 0.85) < binomial_error(len(now), 0.85)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(shapes=shapes, seed=st.integers(0, 10**6), fraction=st.sampled_from([0.01, 0.15, 0.25, 0.9]))
def test_any_batch_repeatedly(shapes: list[Shape], seed: int, fraction: float) -> None:
    batch = make_batch(shapes, seed)
    found = mask(batch, **ELECTRA, fraction=fraction)
    assert batch.is_text[found.positions].all()
    assert (np.diff(found.positions) > 0).all()
    assert (found.targets == batch.ids[found.positions]).all()
    counts = np.bincount(batch.sequence_ids[found.positions], minlength=len(batch))
    draws = np.maximum(np.rint(fraction * batch.lengths), 1)
    assert (counts >= 1).all()
    assert (counts <= draws).all()
    for number in range(len(batch)):
        alone = mask(batch.slice(number, number + 1), **ELECTRA, fraction=fraction)
        assert alone.ids.tolist() == found.slice(number, number + 1).ids.tolist()


def test_draws_with_replacement_need_single_tokens() -> None:
    with pytest.raises(ValidationError, match="token"):
        Masking(unit="span", with_replacement=True)


# SpanBERT: random tokens as the text has them.


def fillers(specials: bool, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each piece came in place of a token, of 200,000."""
    options = Masking(
        unit="token",
        fraction=0.5,
        mask_fraction=0.0,
        random_fraction=1.0,
        random_tokens="unigram",
        random_special_tokens=specials,
    )
    batch = alike([[1] * 98], 4000)
    found = Masker(options, make_tokenizer(), counts)(batch)
    return np.bincount(found.ids[found.positions], minlength=VOCABULARY)


@pytest.mark.parametrize("specials", [True, False])
def test_random_tokens_follow_the_counts(specials: bool) -> None:
    counts = piece_counts()
    found = fillers(specials, counts)
    allowed = counts.astype(float)
    if not specials:
        allowed[:5] = 0
    assert found.sum() == 200_000
    assert_distributed(found, allowed / allowed.sum() * found.sum())


@pytest.mark.parametrize("piece", [5, VOCABULARY - 1])
def test_a_text_of_one_piece(piece: int) -> None:
    counts = np.zeros(VOCABULARY, dtype=np.int64)
    counts[piece] = 3
    assert fillers(True, counts)[piece] == 200_000


def test_unigram_needs_counts() -> None:
    with pytest.raises(SettingsError, match="counts"):
        Masker(Masking(random_tokens="unigram"), make_tokenizer())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("specials", [True, False])
def test_counts_of_nothing_are_refused_in_a_sentence(specials: bool) -> None:
    """An empty text, or one of unknown pieces only where special ones may not be drawn."""
    counts = np.zeros(VOCABULARY, dtype=np.int64)
    counts[1] = 0 if specials else 9
    with pytest.raises(SettingsError):
        Masker(
            Masking(random_tokens="unigram", random_special_tokens=specials),
            make_tokenizer(),
            counts,
        )


def test_mean_length_of_spanberts_spans() -> None:
    """Geometric with p = 0.2 over 1 … 10 words, renormalised: 3.80 on average."""
    batch = alike([[1] * 510], 1500)
    starts = (make_tokenizer().word_starts[batch.ids] | batch.segment_starts) & batch.is_text
    runs = choose(batch, find_words(batch, starts), SPANBERT)
    lengths = []
    for row in runs.reshape(len(batch), -1):
        first = np.flatnonzero(row == row[row > 0].min())
        if first[0] <= 501:  # ten words are left
            lengths.append(len(first))
    share = 0.2 * 0.8 ** np.arange(10) / (1 - 0.8**10)
    mean = float((share * np.arange(1, 11)).sum())
    assert mean == pytest.approx(3.80, abs=0.005)
    assert abs(np.mean(lengths) - mean) < 5 * np.std(lengths) / math.sqrt(len(lengths))
    assert max(lengths) == 10


def test_spanbert_as_a_whole() -> None:
    """Budget rounded up and filled; a merged span is masked, replaced or kept as one."""
    batch = alike([[1, 2, 1, 3] * 30], 1500)
    counts = piece_counts()
    counts[:105] = 0  # random tokens cannot be what stood there: these continue a word
    batch = replace(batch, ids=np.where(batch.is_text, 7, batch.ids).astype(np.int32))
    found = Masker(SPANBERT, make_tokenizer(), counts)(batch)
    hidden = np.bincount(batch.sequence_ids[found.positions], minlength=1500)
    assert set(hidden.tolist()) == {wanted_budget(int(batch.lengths[0]), "up")}
    now = found.ids[found.positions]
    kind = np.where(now == SPECIAL.mask, 0, np.where(now == 7, 2, 1))
    span = np.cumsum(np.append(True, np.diff(found.positions) > 1)) - 1
    size = np.bincount(span)
    kinds = np.stack([np.bincount(span, kind == one) for one in range(3)])
    assert ((kinds == 0) | (kinds == size)).all(), "a span was treated in two ways"
    assert_distributed((kinds > 0).sum(1), np.array([0.8, 0.1, 0.1]) * len(size))


def test_the_counts_are_part_of_what_decides_the_masks() -> None:
    """A saved position must not go on with another text's random tokens."""
    one = Masker(SPANBERT, make_tokenizer(), piece_counts())
    two = Masker(SPANBERT, make_tokenizer(), piece_counts()[::-1].copy())
    assert one.fingerprint() == Masker(SPANBERT, make_tokenizer(), piece_counts()).fingerprint()
    assert one.fingerprint() != two.fingerprint()

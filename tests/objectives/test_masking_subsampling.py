"""Common pieces, chosen less often by their counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from litebert.base.errors import SettingsError
from litebert.objectives.masking import Masker, Masking
from tests.corpus.stores import assert_distributed
from tests.objectives.word_batches import VOCABULARY, alike, make_tokenizer, piece_counts


def test_subsampled_tokens_are_chosen_less() -> None:
    """One token a sequence: which one follows the weights exactly."""
    batch = alike([[1] * 12], 40_000)
    places = np.flatnonzero(batch.is_text[: batch.lengths[0]])
    pieces = np.arange(10, 22)
    ids = batch.ids.copy().reshape(len(batch), -1)
    ids[:, places] = pieces
    batch = replace(batch, ids=ids.ravel())
    counts = np.zeros(VOCABULARY, dtype=np.int64)
    counts[pieces] = [10, 10, 20, 20, 50, 50, 100, 100, 400, 900, 2000, 6000]
    masker = Masker(
        Masking(unit="token", fraction=0.01, subsampling=0.002), make_tokenizer(), counts
    )
    found = masker(batch)
    assert len(found.positions) == len(batch)
    share = counts[pieces] / counts.sum()
    weights = np.minimum(np.sqrt(0.002 / share), 1)
    assert weights.min() < 0.06
    assert weights.max() == 1
    hidden = np.bincount(found.targets, minlength=VOCABULARY)[pieces]
    assert_distributed(hidden, weights / weights.sum() * len(batch))


def test_what_is_masked_follows_from_the_counts() -> None:
    counts = piece_counts()
    plain = Masker(Masking(), make_tokenizer(), counts)
    assert plain.masked_counts(counts) is counts
    hidden = Masker(
        Masking(unit="token", subsampling=1e-3), make_tokenizer(), counts
    ).masked_counts(counts)
    share = counts / counts.sum()
    rare = share <= 1e-3
    assert (hidden[rare] == counts[rare]).all()
    np.testing.assert_allclose(hidden[~rare], counts[~rare] * np.sqrt(1e-3 / share[~rare]), atol=1)


def test_subsampling_needs_counts_and_is_part_of_the_fingerprint() -> None:
    with pytest.raises(SettingsError, match="counts"):
        Masker(Masking(unit="token", subsampling=1e-4), make_tokenizer())
    one = Masker(Masking(unit="token", subsampling=1e-3), make_tokenizer(), piece_counts())
    two = Masker(
        Masking(unit="token", subsampling=1e-3), make_tokenizer(), piece_counts()[::-1].copy()
    )
    assert one.fingerprint() != two.fingerprint()


def test_subsampling_is_for_single_tokens() -> None:
    with pytest.raises(ValidationError, match="token"):
        Masking(unit="ngram", subsampling=1e-4)

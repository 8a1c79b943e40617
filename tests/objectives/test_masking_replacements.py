"""What stands in place of a masked token: [MASK], another, itself; by token or by span."""

from __future__ import annotations

import numpy as np
import pytest

from litebert.base.batches import Batch
from tests.corpus.stores import SPECIAL, assert_distributed, binomial_error
from tests.objectives.word_batches import UNITS, VOCABULARY, alike, mask


def kinds(found: Batch) -> np.ndarray:
    """0 [MASK], 1 another token, 2 the token itself (a random token may be either by chance)."""
    now = found.ids[found.positions]
    return np.where(now == SPECIAL.mask, 0, np.where(now == found.targets, 2, 1))


def expected_kinds(shares: tuple[float, float, float]) -> np.ndarray:
    """With random tokens drawn from all of the vocabulary."""
    hidden, other, same = shares
    lucky = other / VOCABULARY
    return np.array([hidden + lucky, other - 2 * lucky, same + lucky])


@pytest.mark.parametrize("unit", UNITS)
def test_eighty_ten_ten(unit: str) -> None:
    batch = alike([[1, 2, 1, 3] * 14], 3000)
    found = mask(batch, unit=unit)
    counts = np.bincount(kinds(found), minlength=3)
    assert counts.sum() > 40_000
    assert_distributed(counts, expected_kinds((0.8, 0.1, 0.1)) * counts.sum())


@pytest.mark.parametrize(("hidden", "other"), [(0.85, 0.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)])
def test_other_shares(hidden: float, other: float) -> None:
    """ELECTRA: 85 % [MASK], the rest unchanged."""
    found = mask(alike([[1] * 60], 2000), unit="token", mask_fraction=hidden, random_fraction=other)
    counts = np.bincount(kinds(found), minlength=3)
    assert_distributed(counts, expected_kinds((hidden, other, 1 - hidden - other)) * counts.sum())


def test_each_piece_is_decided_on_its_own() -> None:
    batch = alike([[2] * 30], 4000)
    found = mask(batch, unit="word")
    kind = kinds(found).reshape(-1, 2)
    table = np.bincount(kind[:, 0] * 3 + kind[:, 1], minlength=9)
    shares = expected_kinds((0.8, 0.1, 0.1))
    assert_distributed(table, np.outer(shares, shares).ravel() * table.sum())


@pytest.mark.parametrize("unit", ["span", "ngram"])
def test_per_span_is_one_decision_for_each_merged_run(unit: str) -> None:
    batch = alike([[1, 2] * 12, [1] * 20], 6000)
    found = mask(batch, unit=unit, per_span=True, random_special_tokens=False)
    kind = kinds(found)
    begins = np.append(True, np.diff(found.positions) > 1)
    run = np.cumsum(begins) - 1
    first = kind[begins]
    replaced = np.bincount(run, kind == 1) > 0  # a filler can equal the token, by chance
    hidden = np.bincount(run, kind == 0) > 0
    size = np.bincount(run)
    assert (np.bincount(run, kind == 0)[hidden] == size[hidden]).all()
    assert not (replaced & hidden).any()
    lucky = np.bincount(run, kind == 2)[replaced].sum() / size[replaced].sum()
    assert lucky < 0.03
    assert len(first) > 10_000
    shares = np.array([hidden.mean(), replaced.mean(), 1 - hidden.mean() - replaced.mean()])
    assert np.abs(shares - [0.8, 0.1, 0.1]).max() < binomial_error(len(first), 0.8) + 0.001


@pytest.mark.parametrize("specials", [True, False])
def test_random_tokens_are_uniform(specials: bool) -> None:
    batch = alike([[1] * 100], 6000)
    found = mask(
        batch, unit="token", mask_fraction=0.0, random_fraction=1.0, random_special_tokens=specials
    )
    counts = np.bincount(found.ids[found.positions], minlength=VOCABULARY)
    expected = np.full(VOCABULARY, 1.0)
    expected[:5] = specials
    assert_distributed(counts, expected / expected.sum() * counts.sum())


def test_the_filler_does_not_depend_on_the_decision() -> None:
    batch = alike([[1] * 100], 10_000)
    found = mask(
        batch, unit="token", mask_fraction=0.4, random_fraction=0.2, random_special_tokens=False
    )
    replaced = found.ids[found.positions][kinds(found) == 1]
    counts = np.bincount(replaced, minlength=VOCABULARY)[5:]
    same = np.bincount(found.targets[kinds(found) == 1], minlength=VOCABULARY)[5:]
    expected = (counts.sum() - same) / (VOCABULARY - 6)  # never the token itself: that looks kept
    assert_distributed(counts, expected * counts.sum() / expected.sum())

"""A few of the strikes of `python -m tests.faults`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.lives import strike_preparing, strike_pretraining

pytestmark = pytest.mark.slow


def test_a_run_struck_at_the_moments_of_writing_ends_the_same(tmp_path: Path) -> None:
    assert strike_pretraining(tmp_path, 1, 4, seed=3).strikes == 4


def test_a_preparation_struck_at_the_moments_of_writing_ends_the_same(tmp_path: Path) -> None:
    assert strike_preparing(tmp_path, 1, "parent", 3, seed=1).strikes == 3

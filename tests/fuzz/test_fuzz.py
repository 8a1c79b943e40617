"""A few seconds of `make fuzz`: the same mutants every time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.campaign import run
from tests.fuzz.surfaces import SURFACES

TRIES = 25


@pytest.mark.parametrize("name", SURFACES)
def test_mutants_are_refused_well(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITEBERT_CACHE", str(tmp_path / "cache"))
    tally = run(name, TRIES, 0, tmp_path / "fuzz")
    assert tally.tries == TRIES
    assert tally.findings == {}

"""One service for all tests that only ask it something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving.service import Service, start, write_models


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def service(
    folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    runs = tmp_path_factory.mktemp("runs")
    (runs / "one").mkdir()
    line = {"kind": "training", "loss": {"masked_lm": 3.5}, "step": 1, "tokens": 64}
    (runs / "one" / "metrics.jsonl").write_text(json.dumps(line) + '\nnot JSON\n{"half')
    found = start(
        folders["tuned"], folders["pretrained"], "--precision", "fp32", "--runs", runs,
        "--set", "inputs=8", "--set", "characters=2000", "--set", "body_bytes=20000",
    )  # fmt: skip
    yield found
    assert found.stop() == 0

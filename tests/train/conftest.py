"""A small corpus, and the undisturbed runs that others are compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from litebert.configs.schema import Preset
from tests.train.runs import train, write_store


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Any:
    """The undisturbed run of a preset, made when first asked for."""
    made: dict[str, Path] = {}

    def undisturbed(preset: Preset) -> Path:
        name = preset.model_dump_json()
        if name not in made:
            made[name] = tmp_path_factory.mktemp("undisturbed") / "run"
            (told,) = train(preset, corpus, made[name])
            assert told.result is not None
            assert told.result.finished
        return made[name]

    return undisturbed

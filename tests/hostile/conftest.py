"""Sound things to be damaged: files and values from anywhere end in one sentence.

One test a finding. `make fuzz` looks for more of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import litebert
from litebert.model.model import Model
from tests.hostile.small import RUN, TINY
from tests.train.runs import write_store


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    """A model without a manifest, as people hand them on."""
    config = litebert.EncoderConfig(**TINY)  # type: ignore[arg-type]
    Model.create(config, ("masked_lm",)).save(tmp_path / "model")
    (tmp_path / "model" / "manifest.json").unlink()
    return tmp_path / "model"


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store and a finished run of a few steps."""
    folder = tmp_path_factory.mktemp("finished")
    store = write_store(folder)
    name, *overrides = RUN
    assert litebert.pretrain(name, store, folder / "run", overrides=overrides).finished
    return store, folder / "run"

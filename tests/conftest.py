"""What tests share: quiet transformers, one thread, fixed seeds, and the optional real data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"
torch.set_num_threads(1)  # a worker has a core; sums of equal order whatever the machine

REAL_DATA = Path(os.environ.get("LITEBERT_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def real_data() -> Path:
    """A folder of real texts and weights, where there is one."""
    if not REAL_DATA.is_dir():
        pytest.skip("no real data here; set LITEBERT_DATA to use some")
    return REAL_DATA

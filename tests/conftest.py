"""What tests share: quiet transformers, one thread, fixed seeds, and the optional real data."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

os.environ["HF_HUB_OFFLINE"] = "1"
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
# The same examples every time, however slow the machine is today.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")
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

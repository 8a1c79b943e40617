"""What tests share: quiet transformers, one thread, fixed seeds, and the optional real data."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the processes that tests start
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
# The same examples every time, however slow the machine is today.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")
torch.set_num_threads(1)  # a worker has a core; sums of equal order whatever the machine

ROOMY = 4 * 2**30  # bytes; the tests leave a few hundred megabytes behind


def _temporary_files_in_memory() -> None:
    """Hundreds of runs flush what they save, which disks are slow at; memory where it has room."""
    memory = Path("/dev/shm")
    if "TMPDIR" not in os.environ and memory.is_dir() and os.access(memory, os.W_OK):
        facts = os.statvfs(memory)
        if facts.f_bavail * facts.f_frsize > ROOMY:
            os.environ["TMPDIR"] = tempfile.tempdir = str(memory)


_temporary_files_in_memory()
REAL_DATA = Path(os.environ.get("LITEBERT_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on real data are extra: most machines have none, and reading it takes its time."""
    for item in items:
        if "real_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.extra)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def real_data() -> Path:
    """A folder of real texts and weights, where there is one."""
    if not REAL_DATA.is_dir():
        pytest.skip("no real data here; set LITEBERT_DATA to use some")
    return REAL_DATA

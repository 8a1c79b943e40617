"""AMX that a hypervisor passes on half: found out in a fork, before it can end the process."""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from litebert.base import runtime
from litebert.base.errors import SettingsError

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test asks anew, and leaves what the process had found out."""
    for name in ("has_amx", "has_amd_bf16", "onednn_is_safe"):
        monkeypatch.setattr(runtime, name, getattr(runtime, name).__wrapped__)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "ALL")
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)


def die() -> None:
    faulthandler.disable()
    os.kill(os.getpid(), signal.SIGILL)


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        (lambda: os._exit(0), True),
        (die, False),
        (lambda: os._exit(1), False),
        (signal.pause, False),
    ],
    ids=["ends well", "illegal instruction", "fails", "hangs"],
)
def test_a_product_is_tried_in_a_fork(
    product: Callable[[], None], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "_multiply_and_exit", product)
    if product is signal.pause:
        monkeypatch.setattr(runtime, "_PROBE_SECONDS", 0.05)
    assert runtime._survives_bf16() is expected


def test_onednn_does_without_an_amx_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fork of a process that was told in time succeeds, that of one told too late does not."""
    for told_in_time in (True, False):
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "ALL")
        monkeypatch.setattr(
            runtime, "_survives_bf16",
            lambda told=told_in_time: told and os.environ["ONEDNN_MAX_CPU_ISA"] != "ALL",
        )  # fmt: skip
        assert not runtime.has_fast_bf16(CPU)
        assert os.environ["ONEDNN_MAX_CPU_ISA"] == "AVX10_1_512"
        assert runtime.resolve_precision("auto", CPU) == "fp32"
        if told_in_time:
            assert runtime.resolve_precision("bf16", CPU) == "bf16"
        else:
            with pytest.raises(SettingsError, match="AMX does not work under oneDNN"):
                runtime.resolve_precision("bf16", CPU)


def test_an_amx_that_works_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_survives_bf16", lambda: True)
    assert runtime.resolve_precision("auto", CPU) == "bf16"
    assert os.environ["ONEDNN_MAX_CPU_ISA"] == "ALL"


def test_a_users_limit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_survives_bf16", lambda: True)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "avx512_core")
    assert runtime.resolve_precision("auto", CPU) == "fp32"
    assert os.environ["ONEDNN_MAX_CPU_ISA"] == "avx512_core"


@pytest.mark.parametrize(
    ("supported", "maker", "expected"),
    [
        (True, "AuthenticAMD", "bf16"),
        (True, "GenuineIntel", "fp32"),
        (False, "AuthenticAMD", "fp32"),
    ],
)
def test_without_amx_bf16_is_for_amd(
    supported: bool, maker: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Theirs multiply bfloat16 faster than fp32, Intel's slower."""
    (tmp_path / "cpuinfo").write_text(f"processor : 0\nvendor_id : {maker}\n")
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: supported)
    monkeypatch.setattr(runtime, "CPU_FACTS", tmp_path / "cpuinfo")
    assert runtime.resolve_precision("auto", CPU) == expected

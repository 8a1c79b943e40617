"""The machine: device, precision, allocator, memory. Read where it matters, set nowhere else."""

from __future__ import annotations

import ctypes
import platform
import resource
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Literal

import torch

from litebert.base.errors import SettingsError

Precision = Literal["auto", "bf16", "fp32"]

# glibc's <malloc.h>
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_NEVER = 2**31 - 1


def default_device() -> torch.device:
    """A GPU where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def has_fast_bf16(device: torch.device) -> bool:
    """Whether the hardware multiplies bfloat16 matrices itself; emulation is slower than fp32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def resolve_precision(precision: Precision, device: torch.device) -> Literal["bf16", "fp32"]:
    """What "auto" means here: bf16 where the hardware has it, else fp32."""
    if precision == "auto":
        return "bf16" if has_fast_bf16(device) else "fp32"
    return precision


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Matrix products in the given precision; weights and sums stay fp32."""
    if resolve_precision(precision, device) == "fp32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Everything in the types it has; the meta device has no autocast to switch off."""
    if device.type == "meta":
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def keep_freed_memory() -> bool:
    """Let malloc keep what tensors free instead of returning it to the system page by page.

    A training step frees and asks for the same large buffers again and again; by default each
    round trip has the kernel unmap, map and clear its pages, which costs more than the arithmetic
    of a small model. For processes that train. Says whether it applies (Linux with glibc).
    """
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_M_MMAP_MAX, 0) and mallopt(_M_TRIM_THRESHOLD, _NEVER))


def release_freed_memory() -> None:
    """Give what was freed back to the system, after much of it was used for a moment."""
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def memory_now() -> int:
    """Bytes this process holds in memory (Linux; elsewhere its peak so far)."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize()
    return memory_peak()


def memory_peak() -> int:
    """The most bytes this process has held in memory."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def memory_free(device: torch.device) -> int | None:
    """Bytes a process can still get, where that can be known."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    facts = Path("/proc/meminfo")
    if not facts.exists():
        return None
    lines = dict(line.split(":", 1) for line in facts.read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024


def check_precision(name: str) -> Precision:
    """A precision from the command line."""
    if name not in ("auto", "bf16", "fp32"):
        raise SettingsError(f"precision {name!r}: choose auto, bf16 or fp32")
    return name  # type: ignore[return-value]

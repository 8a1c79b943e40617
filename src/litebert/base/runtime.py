"""The machine: device, precision, allocator, memory. Read where it matters, set nowhere else."""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import gc
import os
import platform
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Thread
from typing import Literal

import torch

from litebert.base.errors import SettingsError

Precision = Literal["auto", "bf16", "fp32"]

# glibc's <malloc.h>
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_KERNELS, _MOST_KERNELS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "256"
_NEVER = 2**31 - 1

CPU_FACTS = Path("/proc/cpuinfo")
_ISA = "ONEDNN_MAX_CPU_ISA"  # read by oneDNN before its first product, and never again
_WITHOUT_AMX = "AVX10_1_512"
_PROBE_SECONDS = 10


def default_device() -> torch.device:
    """A GPU where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def has_fast_bf16(device: torch.device) -> bool:
    """Whether products of bfloat16 matrices are faster than those of fp32.

    On CPUs that takes AMX, or AVX512-BF16 of AMD's, which does them at four times the speed of
    fp32; Intel's without AMX does them at half of it (docs/log/foundation.md).
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and (has_amx() or has_amd_bf16())


@functools.cache
def has_amd_bf16() -> bool:
    """Whether this is a CPU of AMD's with AVX512-BF16 (Zen 4 and later)."""
    if not CPU_FACTS.exists() or not torch.cpu._is_avx512_bf16_supported():
        return False
    return "AuthenticAMD" in CPU_FACTS.read_text(errors="replace")


@functools.cache
def has_amx() -> bool:
    """Whether the CPU has AMX and oneDNN can use it; where it cannot, oneDNN is told to do without.

    Some hypervisors pass AMX on but hide the CPUID leaves by which oneDNN lays out its tiles: the
    first product of bytes or bfloat16 is an illegal instruction then, and ends the process.
    """
    if not torch.cpu._is_amx_tile_supported() or _isa_is_limited():
        return False
    if _survives_bf16():
        return True
    os.environ[_ISA] = _WITHOUT_AMX
    return False


@functools.cache
def onednn_is_safe() -> bool:
    """Whether products of bytes or bfloat16 end well: not once oneDNN took up a broken AMX."""
    return not torch.cpu._is_amx_tile_supported() or has_amx() or _survives_bf16()


def _isa_is_limited() -> bool:
    limit = os.environ.get(_ISA, "ALL").upper()
    return limit not in ("ALL", "DEFAULT") and "AMX" not in limit


def _survives_bf16() -> bool:
    """Whether a product of bfloat16 matrices succeeds, tried in a fork of this process."""
    with warnings.catch_warnings():  # of forks beside threads: the fork runs one product and ends
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _multiply_and_exit()
    end = time.monotonic() + _PROBE_SECONDS
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _multiply_and_exit() -> None:
    code = 1
    try:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        torch.set_num_threads(1)  # the threads of the parent are not here
        x = torch.ones(32, 64, dtype=torch.bfloat16)
        torch.nn.functional.linear(x, x)
        code = 0
    finally:
        os._exit(code)


def resolve_precision(precision: Precision, device: torch.device) -> Literal["bf16", "fp32"]:
    """What "auto" means here: bf16 where it is faster, else fp32."""
    is_fast = has_fast_bf16(device)  # asked first in any case: it keeps oneDNN from a broken AMX
    if precision == "auto":
        return "bf16" if is_fast else "fp32"
    if precision == "bf16" and device.type == "cpu" and not onednn_is_safe():
        raise SettingsError(
            f"precision bf16: this machine's AMX does not work under oneDNN; set {_ISA}="
            f"{_WITHOUT_AMX} before Python starts, or choose fp32"
        )
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


def kernel_rows(rows: int) -> int:
    """The next number of rows that oneDNN is asked for.

    It compiles a kernel for every shape and keeps it, which takes as long as ten products of a
    small model, and a megabyte; with batches that change at every step there would be no end of it.
    """
    step = 1 if rows <= 32 else 8 if rows <= 128 else 32 if rows <= 512 else 64
    return (rows + step - 1) // step * step


def keep_freed_memory() -> bool:
    """Let malloc keep what tensors free instead of returning it to the system page by page.

    A training step frees and asks for the same large buffers again and again; by default each
    round trip has the kernel unmap, map and clear its pages, which costs more than the arithmetic
    of a small model. For processes that train. Says whether it applies (Linux with glibc).

    Of what oneDNN compiles, half a megabyte a kernel, only the latest ones are kept: it reads its
    setting when it is first used.
    """
    os.environ.setdefault(_KERNELS, _MOST_KERNELS)
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_M_MMAP_MAX, 0) and mallopt(_M_TRIM_THRESHOLD, _NEVER))


def use_threads(count: int, cores: int) -> None:
    """So many threads for the operations of this thread; threads that begin later have all cores.

    torch gives those the number that was set last, whichever thread it was for.
    """
    if torch.get_num_threads() == count:
        return
    torch.set_num_threads(count)
    if count != cores:
        after = Thread(target=torch.set_num_threads, args=(cores,))
        after.start()
        after.join()


@contextmanager
def settled_objects() -> Iterator[None]:
    """Objects that are there now stay: Python does not look through them for what to free.

    Steps of a small model make and drop so many that it would look often: one part in twenty.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


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

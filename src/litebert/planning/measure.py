"""Measuring: how long a training step takes on this machine, by taking some."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import torch

from litebert.base.runtime import Precision, default_device, keep_freed_memory
from litebert.planning.workload import Workload
from litebert.presets.recipe import Preset

FEWEST_STEPS = 3
WARM_UP_STEPS = 2


@dataclass(frozen=True)
class Measurement:
    """What a few steps showed."""

    seconds_per_step: float
    tokens_per_second: float
    steps: int


def measure(
    preset: Preset,
    batch: int,
    length: int,
    precision: Precision = "auto",
    checkpointing: bool = False,
    seconds: float = 10.0,
) -> Measurement:
    """Train on random tokens for about `seconds`, at least three steps; the median counts."""
    keep_freed_memory()
    device = default_device()
    work = Workload(preset, batch, length, precision, checkpointing, device)
    for _ in range(WARM_UP_STEPS):
        _timed(work, device)
    times: list[float] = []
    while len(times) < FEWEST_STEPS or sum(times) < seconds:
        times.append(_timed(work, device))
    median = statistics.median(times)
    return Measurement(median, batch * length / median, len(times))


def _timed(work: Workload, device: torch.device) -> float:
    begin = time.perf_counter()
    work.step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin

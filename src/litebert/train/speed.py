"""How fast pretraining is on this machine: real training steps, on random tokens.

The step, the losses, the optimizer and the micro-batches are those of `pretrain`; only the text is
random, which changes nothing about the arithmetic. Of a batch too large to wait for, one
micro-batch and the update are timed apart, and put together as the whole step would be.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from litebert.base.batches import Batch
from litebert.base.runtime import default_device, keep_freed_memory
from litebert.configs.schema import Preset
from litebert.model.config import EncoderConfig
from litebert.model.heads import MASKED_FRACTION
from litebert.planning.report import Speed, micro_batch_size
from litebert.train.build import build_learner, build_step
from litebert.train.distributed import DistributedGroup
from litebert.train.optimizer import build_optimizer
from litebert.train.step import StepResult

MIN_STEPS = 3
WARMUP_STEPS = 2
BATCHES = 8
LEARNING_RATE = 1e-4


class SyntheticTraining:
    """A preset's training step on random batches: one alone would be learned by heart."""

    def __init__(
        self, preset: Preset, batch_size: int, max_length: int, device: torch.device | None = None
    ) -> None:
        group = DistributedGroup(device=device or default_device())
        self.learner = build_learner(preset, group.device, (None, None), lambda _: None)
        self.optimizer = build_optimizer(self.learner, preset.optimizer)
        self.training_step = build_step(preset, self.learner, self.optimizer, group)
        self.batches = [
            random_batch(preset.model, batch_size, max_length, preset.seed + number)
            for number in range(BATCHES)
        ]
        self.device, self.number = group.device, 0

    def step(self) -> StepResult:
        """Forward, backward, update."""
        self.number += 1
        batch = self.batches[(self.number - 1) % len(self.batches)]
        return self.training_step(batch, self.number, LEARNING_RATE)


def random_batch(config: EncoderConfig, batch_size: int, max_length: int, seed: int = 0) -> Batch:
    """Full sequences of random tokens, 15 % of them masked, a sentence-pair label each."""
    generator = np.random.default_rng(seed)
    count = batch_size * max_length
    ids = generator.integers(config.vocab_size, size=count, dtype=np.int32)
    is_text = np.arange(count) % max_length > 0
    second = np.arange(count) % max_length > max_length // 2
    masked = generator.permutation(np.flatnonzero(is_text))
    positions = np.sort(masked[: max(1, round(MASKED_FRACTION * count))])
    return Batch(
        ids=ids,
        token_types=(second & (config.type_vocab_size > 1)).astype(np.int8),
        is_text=is_text,
        segment_starts=np.arange(count) % max_length == 1,
        lengths=np.full(batch_size, max_length),
        labels=generator.integers(2, size=batch_size).astype(np.int8),
        keys=np.arange(batch_size).astype(np.uint64),
        positions=positions,
        targets=ids[positions],
    )


def measure_speed(preset: Preset, batch_size: int, max_length: int, seconds: float = 10.0) -> Speed:
    """Train for about `seconds`, at least three steps; medians count."""
    keep_freed_memory()
    fitting = micro_batch_size(preset, batch_size, max_length)
    training = SyntheticTraining(preset, fitting, max_length)
    for _ in range(WARMUP_STEPS):
        _timed(training.step, training.device)
    times: list[float] = []
    updates: list[float] = []
    while len(times) < MIN_STEPS or sum(times) < seconds:
        times.append(_timed(training.step, training.device))
        updates.append(_timed(training.optimizer.step, training.device))
    step, update = statistics.median(times), statistics.median(updates)
    whole = (step - update) * batch_size / fitting + update
    return Speed(whole, batch_size * max_length / whole, len(times))


def _timed(work: Callable[[], object], device: torch.device) -> float:
    started = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started

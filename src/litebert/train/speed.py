"""How fast pretraining is on this machine: real training steps, on a corpus or on random tokens.

The step, the losses, the optimizer and the micro-batches are those of `pretrain`. With a corpus the
batches are its own: where documents end sequences are short, and how many tokens are masked follows
from the text. Without, sequences are full and tokens random. Of a batch too large to wait for, one
micro-batch and the update are timed apart, and put together as the whole step would be.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
import torch

from litebert.base.batches import Batch
from litebert.base.errors import SettingsError
from litebert.base.runtime import default_device, keep_freed_memory
from litebert.configs.schema import Preset
from litebert.corpus.loader import Loader
from litebert.corpus.statistics import token_counts
from litebert.corpus.store import Store
from litebert.model.config import EncoderConfig
from litebert.model.heads import MASKED_FRACTION
from litebert.objectives.masking import Masker
from litebert.planning.report import Speed, micro_batch_size
from litebert.train.build import build_learner, build_step, fit_to_corpus
from litebert.train.distributed import DistributedGroup
from litebert.train.optimizer import build_optimizer
from litebert.train.stages import resolve_stages
from litebert.train.step import StepResult

MIN_STEPS = 3
WARMUP_STEPS = 2
BATCHES = 8
TEXT_BATCHES = 64  # which differ in their shapes, and each shape has kernels of its own
LEARNING_RATE = 1e-4


class SampleTraining:
    """A preset's training step on a few batches in turn: one alone would be learned by heart."""

    def __init__(
        self, preset: Preset, batches: Sequence[Batch], device: torch.device | None = None
    ) -> None:
        group = DistributedGroup(device=device or default_device())
        self.learner = build_learner(preset, group.device, (None, None), lambda _: None)
        self.optimizer = build_optimizer(self.learner, preset.optimizer)
        self.training_step = build_step(preset, self.learner, self.optimizer, group)
        self.batches, self.device, self.number = batches, group.device, 0

    @property
    def next_batch(self) -> Batch:
        """What the next step trains on."""
        return self.batches[self.number % len(self.batches)]

    def step(self) -> StepResult:
        """Forward, backward, update."""
        batch = self.next_batch
        self.number += 1
        return self.training_step(batch, self.number, LEARNING_RATE)

    def update(self) -> None:
        """The optimizer's part of a step, on as many cores."""
        threads = self.training_step.threads
        if threads.parts(len(self.next_batch.ids)) > 1:
            torch.set_num_threads(1)
        self.optimizer.step()
        threads.release()


def random_batches(preset: Preset, batch_size: int, max_length: int) -> list[Batch]:
    """Some of random tokens."""
    return [
        random_batch(preset.model, batch_size, max_length, preset.seed + number)
        for number in range(BATCHES)
    ]


def text_batches(preset: Preset, store: Store, batch_size: int, max_length: int) -> list[Batch]:
    """The first ones that a run on a corpus would read; the preset fits the corpus."""
    loading = resolve_stages(preset)[0].loading.model_copy(
        update={"batch_size": batch_size, "max_length": max_length}
    )
    masker = Masker(preset.masking, store.tokenizer, token_counts(store))
    found = list(islice(Loader(store, loading, masker), TEXT_BATCHES))
    if not found:
        raise SettingsError(f"{store.folders[0]}: gives no sample to train on")
    return found


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


def measure_speed(
    preset: Preset, batch_size: int, max_length: int, seconds: float = 10.0,
    store: Store | None = None,
) -> Speed:  # fmt: skip
    """Train for about `seconds`, at least three steps.

    Means count, of the tokens and of the time of the same steps: batches of text differ in size,
    and what holds up a step here will hold up one of the run.
    """
    keep_freed_memory()
    fitting = micro_batch_size(preset, batch_size, max_length)
    if store is None:
        batches = random_batches(preset, fitting, max_length)
    else:
        preset = fit_to_corpus(preset, store)
        batches = text_batches(preset, store, fitting, max_length)
    training = SampleTraining(preset, batches)
    for _ in range(WARMUP_STEPS):
        _timed(training.step, training.device)
    times: list[float] = []
    updates: list[float] = []
    tokens: list[int] = []
    while len(times) < MIN_STEPS or sum(times) < seconds:
        tokens.append(len(training.next_batch.ids))
        times.append(_timed(training.step, training.device))
        updates.append(_timed(training.update, training.device))
    step, update = statistics.fmean(times), statistics.fmean(updates)
    micro_batches = batch_size / fitting
    whole = (step - update) * micro_batches + update
    return Speed(whole, statistics.fmean(tokens) * micro_batches / whole, len(times))


def _timed(work: Callable[[], object], device: torch.device) -> float:
    started = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started

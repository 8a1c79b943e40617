"""A job: sequences to encode, what is read off them, and what becomes of it.

Whatever is asked of a model, the engine sees only this: a batch, how deep to go, which tokens
matter at the end, and what a head says of them. Answers are put together by `finish`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import torch

from litebert.base.batches import Batch, bucket_by_length, take
from litebert.base.errors import InputError
from litebert.base.ragged import IntArray
from litebert.base.runtime import use_threads
from litebert.inference.exits import ExitRule, FixedDepth
from litebert.model.inputs import Inputs, to_inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.tasks.features import Features
from litebert.tasks.task import Prediction, Task

SLICE_TOKENS = 1024  # that go through the encoder together


class Readout(Protocol):
    """What is read off encoded sequences; those of one readout are read off together."""

    def reads(self, batch: Batch) -> IntArray | None:
        """The tokens that are looked at; None for all."""
        ...

    def outputs(
        self, model: Model, state: State, inputs: Inputs, depth: int | None = None
    ) -> Sequence[Any]:
        """Something for each sequence; with a depth, by the head that is there."""
        ...


@dataclass(frozen=True)
class Job:
    """Sequences through the encoder, and an answer out of them."""

    batch: Batch
    readout: Readout
    depth: int  # layers, at most
    rule: ExitRule | None
    finish: Callable[[Sequence[Any], IntArray], Any]  # of outputs and depths, one a sequence
    truncated: int = 0  # inputs that lost text to fit


def predict_job(
    task: Task, examples: Sequence[Any], features: Features, depth: int, rule: ExitRule | None,
    tell_depth: bool = True,
) -> Job:  # fmt: skip
    """Predictions of a task, each with the depth it took."""
    if isinstance(rule, FixedDepth):  # known beforehand: no head is asked on the way
        depth, rule = min(depth, rule.layers), None

    def finish(outputs: Sequence[Any], depths: IntArray) -> list[Prediction]:
        predictions = task.decode(examples, features, list(outputs))
        if not tell_depth:
            return predictions
        deepest = depths
        if len(depths) != len(predictions):  # several sequences an example: windows, options
            deepest = np.zeros(len(predictions), np.int64)
            np.maximum.at(deepest, features.example_of, depths)
        pairs = zip(predictions, deepest.tolist(), strict=True)
        return [replace(one, depth=depth) for one, depth in pairs]

    return Job(features.batch, task, depth, rule, finish, features.truncated)


def check_overflow(
    features: Features, overflow: str | None, examples: int, max_length: int
) -> None:
    """Refuse texts that were cut off, where the caller does not want that."""
    if overflow not in ("error", "stride") or not features.truncated:
        return
    some = f"{features.truncated:,} of {examples:,} inputs" if examples > 1 else "the input"
    verb = "have" if features.truncated > 1 else "has"
    hint = "overflow='truncate' cuts them off"
    if overflow == "stride":
        hint = f"this kind of task cannot be read in windows; {hint}"
    raise InputError(f"{some} {verb} more than the model's {max_length} tokens; {hint}")


OnProgress = Callable[[int, int], None]  # how many sequences are done, and of how many


def no_progress(done: int, size: int) -> None:
    """Nobody watches."""


def run_job(model: Model, job: Job, on_progress: OnProgress = no_progress, workers: int = 1) -> Any:
    """A job without a rule, all at once: slices of like length, each to its depth in one go."""
    batch, device = job.batch, next(model.parameters()).device
    outputs: list[Any] = [None] * len(batch)
    done = 0

    @torch.inference_mode()
    def encoded(chosen: IntArray | None) -> Sequence[Any]:
        part = batch if chosen is None else take(batch, chosen)
        inputs = to_inputs(part, device)
        state = as_fp32(inputs.encode(model, job.depth, job.readout.reads(part)))
        return job.readout.outputs(model, state, inputs, job.depth)

    parts = slices(batch)
    for chosen, found in zip(parts, side_by_side(encoded, parts, workers), strict=True):
        if chosen is None:
            outputs = list(found)
        else:
            for place, output in zip(chosen.tolist(), found, strict=True):
                outputs[place] = output
        done += len(found)
        on_progress(done, len(batch))
    return job.finish(outputs, np.full(len(batch), job.depth))


Item = TypeVar("Item")
Found = TypeVar("Found")


def side_by_side(
    work: Callable[[Item], Found], items: Sequence[Item], workers: int
) -> Iterator[Found]:
    """What is found of each, in order; by workers that share the cores, where there are several."""
    count, cores = min(workers, len(items)), torch.get_num_threads()
    if count < 2:
        yield from map(work, items)
        return

    def by_a_worker(item: Item) -> Found:
        use_threads(max(cores // count, 1), cores)
        return work(item)

    with ThreadPoolExecutor(count) as pool:
        try:
            yield from pool.map(by_a_worker, items)
        finally:
            pool.shutdown(cancel_futures=True)


def as_fp32(state: State) -> State:
    """As heads take it: they are small, and stay in full precision."""
    return state if state.x_NH.dtype == torch.float32 else replace(state, x_NH=state.x_NH.float())


def slices(batch: Batch) -> Sequence[IntArray | None]:
    """The sequences that go through together; [None] where that is the batch as it is."""
    if len(batch) == batch.group_size and len(batch.ids) <= SLICE_TOKENS:
        return [None]
    groups = bucket_by_length(batch.group_lengths, max_tokens=SLICE_TOKENS, descending=True)
    return [batch.group_members(some) for some in groups]

"""Features through a model, in batches of like length, and decoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from litebert.base.batches import Batch, bucket_by_length, take
from litebert.base.ragged import IntArray
from litebert.base.runtime import Precision, autocast
from litebert.model.inputs import Inputs, to_inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.tasks.features import Features
from litebert.tasks.task import Prediction, Task

BATCH_TOKENS = 4096
Progress = Callable[[int, int], None]  # how many are done, and of how many


def no_progress(done: int, size: int) -> None:
    """Nobody looks on."""


@torch.no_grad()
def run_batches(
    model: Model, batch: Batch, outputs_of: Callable[[State, Inputs], Sequence[Any]],
    reads: Callable[[Batch], IntArray | None], *,
    precision: Precision = "auto", max_tokens: int = BATCH_TOKENS,
    on_progress: Progress = no_progress,
) -> list[Any]:  # fmt: skip
    """The outputs of each sequence once it is encoded, in the order of the batch.

    The longest come first, so that memory that will not suffice is known at once.
    """
    device = next(model.parameters()).device
    training = model.training
    model.eval()
    outputs: list[Any] = [None] * len(batch)
    done = 0
    for groups in bucket_by_length(batch.group_lengths, max_tokens=max_tokens, descending=True):
        chosen = batch.group_members(groups)
        inputs = to_inputs(take(batch, chosen), device)
        with autocast(precision, device):
            state = inputs.encode(model, read=reads(inputs.batch))
            found = outputs_of(state, inputs)
        for place, output in zip(chosen.tolist(), found, strict=True):
            outputs[place] = output
        done += len(chosen)
        on_progress(done, len(batch))
    model.train(training)
    return outputs


def predict_examples(
    task: Task, model: Model, examples: Sequence[Any], features: Features, *,
    precision: Precision = "auto", max_tokens: int = BATCH_TOKENS,
    on_progress: Progress = no_progress,
) -> list[Prediction]:  # fmt: skip
    """One prediction for each example."""
    outputs = run_batches(
        model, features.batch, lambda state, inputs: task.outputs(model, state, inputs),
        task.reads, precision=precision, max_tokens=max_tokens, on_progress=on_progress,
    )  # fmt: skip
    return task.decode(examples, features, outputs)

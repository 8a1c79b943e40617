"""Predictions for examples: features in batches of like length through the model, then decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from litebert.base.batch import Batch, Numbers
from litebert.base.runtime import Precision, autocast
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.tasks.base import Outputs, Prediction, Task, read_by_head
from litebert.tasks.features import Features, take

TOKENS = 4096  # of a batch
Progress = Callable[[int], None]


def batches_by_length(batch: Batch, tokens: int) -> Iterator[Numbers]:
    """The sequences of a batch in groups of at most so many tokens, longest first.

    Equal lengths lie side by side, where attention takes them in one call; the longest come first,
    so that memory that will not suffice is known at once.
    """
    groups = batch.lengths.reshape(-1, batch.together).sum(1)
    order = np.argsort(-groups, kind="stable")
    chosen: list[int] = []
    held = 0
    for group in order.tolist():
        if chosen and held + groups[group] > tokens:
            yield np.array(chosen)
            chosen, held = [], 0
        first = group * batch.together
        chosen += range(first, first + batch.together)
        held += int(groups[group])
    if chosen:
        yield np.array(chosen)


@torch.no_grad()
def run(
    task: Task, model: Model, features: Features, *, device: torch.device | None = None,
    precision: Precision = "auto", tokens: int = TOKENS, progress: Progress | None = None,
) -> Outputs:  # fmt: skip
    """What the model says of every sequence, in the order of the features."""
    where = device or next(model.parameters()).device
    was = model.training
    model.eval()
    outputs: list[Any] = [None] * len(features.batch)
    for chosen in batches_by_length(features.batch, tokens):
        inputs = to_inputs(take(features.batch, chosen), where)
        with autocast(precision, where):
            state = inputs.encode(model, read=read_by_head(task.head, inputs.batch))
            said = task.outputs(model, state, inputs)
        for place, output in zip(chosen.tolist(), said, strict=True):
            outputs[place] = output
        if progress is not None:
            progress(len(chosen))
    model.train(was)
    return outputs


def predict_examples(
    task: Task, model: Model, examples: Sequence[Any], features: Features, **options: Any
) -> list[Prediction]:
    """One prediction for each example; the options are those of `run`."""
    return task.decode(examples, features, run(task, model, features, **options))

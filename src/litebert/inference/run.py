"""Features through a model, in batches of like length, and decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from litebert.base.batch import Batch, Numbers
from litebert.base.runtime import Precision, autocast
from litebert.model.inputs import Inputs, to_inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.tasks.features import Features, group_lengths, sequences_of, take
from litebert.tasks.task import Prediction, Task

BATCH_TOKENS = 4096


def bucket_by_length(
    lengths: Numbers, *, max_tokens: float = np.inf, batch_size: float = np.inf,
    longest_first: bool = False,
) -> Iterator[Numbers]:  # fmt: skip
    """What has these lengths in batches of like length, each of so many tokens or so many.

    Equal lengths lie side by side, where attention takes them in one call.
    """
    order = np.argsort(-lengths if longest_first else lengths, kind="stable")
    chosen: list[int] = []
    tokens = 0
    for place in order.tolist():
        if chosen and (len(chosen) >= batch_size or tokens + lengths[place] > max_tokens):
            yield np.array(chosen)
            chosen, tokens = [], 0
        chosen.append(place)
        tokens += int(lengths[place])
    if chosen:
        yield np.array(chosen)


@torch.no_grad()
def run_batches(
    model: Model, batch: Batch, outputs_of: Callable[[State, Inputs], Sequence[Any]],
    reads: Callable[[Batch], Numbers | None], *,
    precision: Precision = "auto", max_tokens: int = BATCH_TOKENS,
) -> list[Any]:  # fmt: skip
    """The outputs of each sequence once it is encoded, in the order of the batch.

    The longest come first, so that memory that will not suffice is known at once.
    """
    device = next(model.parameters()).device
    training = model.training
    model.eval()
    outputs: list[Any] = [None] * len(batch)
    for groups in bucket_by_length(group_lengths(batch), max_tokens=max_tokens, longest_first=True):
        chosen = sequences_of(batch, groups)
        inputs = to_inputs(take(batch, chosen), device)
        with autocast(precision, device):
            state = inputs.encode(model, read=reads(inputs.batch))
            found = outputs_of(state, inputs)
        for place, output in zip(chosen.tolist(), found, strict=True):
            outputs[place] = output
    model.train(training)
    return outputs


def predict_examples(
    task: Task, model: Model, examples: Sequence[Any], features: Features, *,
    precision: Precision = "auto", max_tokens: int = BATCH_TOKENS,
) -> list[Prediction]:  # fmt: skip
    """One prediction for each example."""
    outputs = run_batches(
        model, features.batch, lambda state, inputs: task.outputs(model, state, inputs),
        task.reads, precision=precision, max_tokens=max_tokens,
    )  # fmt: skip
    return task.decode(examples, features, outputs)

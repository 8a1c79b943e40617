"""Features through a model, in batches of like length, and decoded.

With an exit rule, sequences leave a batch when they are done, and those that stay are regrouped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from litebert.base.batches import Batch, bucket_by_length, take
from litebert.base.ragged import IntArray
from litebert.base.runtime import Precision, autocast
from litebert.inference.exits import ExitRule
from litebert.model.inputs import Inputs, to_inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.tasks.features import Features
from litebert.tasks.task import Output, Prediction, Task

BATCH_TOKENS = 4096


@torch.no_grad()
def in_batches(
    model: Model, batch: Batch, outputs_of: Callable[[Inputs], Sequence[Any]], *,
    precision: Precision = "auto", max_tokens: int = BATCH_TOKENS,
) -> list[Any]:  # fmt: skip
    """What is found of each sequence, in the order of the batch.

    The longest come first, so that memory that will not suffice is known at once.
    """
    device = next(model.parameters()).device
    training = model.training
    model.eval()
    outputs: list[Any] = [None] * len(batch)
    for groups in bucket_by_length(batch.group_lengths, max_tokens=max_tokens, descending=True):
        chosen = batch.group_members(groups)
        with autocast(precision, device):
            found = outputs_of(to_inputs(take(batch, chosen), device))
        for place, output in zip(chosen.tolist(), found, strict=True):
            outputs[place] = output
    model.train(training)
    return outputs


def run_batches(
    model: Model, batch: Batch, outputs_of: Callable[[State, Inputs], Sequence[Any]],
    reads: Callable[[Batch], IntArray | None], *, depth: int | None = None,
    precision: Precision = "auto", max_tokens: int = BATCH_TOKENS,
) -> list[Any]:  # fmt: skip
    """The outputs of each sequence once it is encoded, in the order of the batch."""

    def encoded(inputs: Inputs) -> Sequence[Any]:
        return outputs_of(inputs.encode(model, depth, reads(inputs.batch)), inputs)

    return in_batches(model, batch, encoded, precision=precision, max_tokens=max_tokens)


def run_depths(
    task: Task, model: Model, batch: Batch, rule: ExitRule | None = None, *,
    depth: int | None = None, precision: Precision = "auto", max_tokens: int = BATCH_TOKENS,
) -> list[list[Output]]:  # fmt: skip
    """What the head of each depth says of each sequence, up to where the rule lets it leave."""
    stop = depth or model.config.num_hidden_layers
    return in_batches(
        model, batch, lambda inputs: _deeper(task, model, inputs, rule, stop),
        precision=precision, max_tokens=max_tokens,
    )  # fmt: skip


def _deeper(
    task: Task, model: Model, inputs: Inputs, rule: ExitRule | None, stop: int
) -> list[list[Output]]:
    """Layer by layer; after each, those that leave are left out of the batch.

    The sequences of a group are told one and the same, so they leave together.
    """
    said: list[list[Output]] = [[] for _ in range(len(inputs.batch))]
    staying, state = np.arange(len(said)), inputs.embed(model)
    for depth in range(1, stop + 1):
        read = task.reads(inputs.batch) if depth == stop else None
        state = inputs.layers(model, state, depth - 1, depth, read)
        outputs = task.outputs(model, state, inputs, depth)
        for place, output in zip(staying.tolist(), outputs, strict=True):
            said[place].append(output)
        stay = [n for n, i in enumerate(staying) if rule is None or not rule.leaves(said[i])]
        if not stay:
            break
        if len(stay) < len(staying) and depth < stop:
            staying, state = staying[stay], state.select(stay)
            inputs = to_inputs(take(inputs.batch, stay), inputs.ids.device)
    return said


def predict_examples(
    task: Task, model: Model, examples: Sequence[Any], features: Features, *,
    rule: ExitRule | None = None, depth: int | None = None,
    precision: Precision = "auto", max_tokens: int = BATCH_TOKENS,
) -> list[Prediction]:  # fmt: skip
    """One prediction for each example; `depth` layers at most, or until a rule lets it leave."""
    if rule is not None:
        said = run_depths(
            task, model, features.batch, rule, depth=depth, precision=precision,
            max_tokens=max_tokens,
        )  # fmt: skip
        predictions = task.decode(examples, features, [outputs[-1] for outputs in said])
        return _with_depths(predictions, features, [len(outputs) for outputs in said])
    outputs = run_batches(
        model, features.batch, lambda state, inputs: task.outputs(model, state, inputs, depth),
        task.reads, depth=depth, precision=precision, max_tokens=max_tokens,
    )  # fmt: skip
    predictions = task.decode(examples, features, outputs)
    return [replace(one, depth=depth) for one in predictions] if depth else predictions


def _with_depths(
    predictions: Sequence[Prediction], features: Features, depths: Sequence[int]
) -> list[Prediction]:
    """The depth of an example is that of its deepest window."""
    deepest = np.zeros(len(predictions), np.int64)
    np.maximum.at(deepest, features.example_of, depths)
    return [replace(one, depth=int(n)) for one, n in zip(predictions, deepest, strict=True)]

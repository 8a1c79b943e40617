"""The last layer of a head, fitted on a frozen encoder: texts are encoded once, then L-BFGS.

The problem is convex, so there is no seed, no learning rate and no number of steps. Rows are moved
to mean 0 and scaled to a mean squared norm of 1, so that one penalty does for every encoder; both
are folded into the layer afterwards, and the model is one like any other.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from litebert.base.runtime import Precision
from litebert.inference.run import run_batches
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.tasks.features import Features
from litebert.tasks.task import Task

C = 10.0  # the inverse of the penalty on squared weights, as in scikit-learn
ITERATIONS = 500


def fit_head(
    task: Task, model: Model, features: Features, *, precision: Precision, max_tokens: int
) -> None:
    """Fit the last layer of the task's head to the training examples; all else stays."""
    rows, answers = _encode(task, model, features, precision, max_tokens)
    center = rows.mean(0)
    rows = rows - center
    scale = rows.square().sum(1).mean().sqrt().clamp(min=torch.finfo(rows.dtype).tiny)
    layer = model.head(task.head).dense
    weight, bias = fit_linear(task, rows / scale, answers, len(layer.bias))
    with torch.no_grad():
        layer.weight.copy_(weight / scale)
        layer.bias.copy_(bias - weight @ center / scale)


def fit_linear(task: Task, rows: Tensor, answers: Tensor, outputs: int) -> tuple[Tensor, Tensor]:
    """Weights (outputs, width) and biases of the least penalised loss."""
    weight = rows.new_zeros(outputs, rows.shape[1]).requires_grad_()
    bias = rows.new_zeros(outputs).requires_grad_()
    optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=ITERATIONS, tolerance_grad=1e-6, tolerance_change=1e-9,
        line_search_fn="strong_wolfe",
    )  # fmt: skip

    def penalised() -> Tensor:
        optimizer.zero_grad()
        loss = task.loss(rows @ weight.T + bias, answers).loss
        loss = (loss + weight.square().sum() / (2 * C)) / len(rows)
        loss.backward()
        return loss

    with torch.enable_grad():
        optimizer.step(penalised)  # type: ignore[arg-type]
    return weight.detach(), bias.detach()


def _encode(
    task: Task, model: Model, features: Features, precision: Precision, max_tokens: int
) -> tuple[Tensor, Tensor]:
    rows: list[Tensor] = []
    answers: list[Tensor] = []

    def collect(state: State, inputs: Inputs) -> list[Any]:
        found, asked = task.head_rows(model, state, inputs)
        rows.append(found.float())
        answers.append(asked)
        return [None] * len(inputs.batch)

    run_batches(
        model, features.batch, collect, task.reads, precision=precision, max_tokens=max_tokens
    )
    return torch.cat(rows), torch.cat(answers)

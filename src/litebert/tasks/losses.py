"""What each head is trained on: summed losses, divided by the counts of the whole step elsewhere.

The contract is that of a pretraining objective (objectives/base.py), so one step and one loop serve
both.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from litebert.base.batch import Batch, Numbers
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.objectives.base import Objective, Term
from litebert.tasks.base import Task, read_by_head
from litebert.tasks.spans import answerable


class _Loss:
    """What all of them have in common."""

    weight, extra = 1.0, 0
    head: str

    def reads(self, batch: Batch) -> Numbers | None:
        """The tokens that the head looks at."""
        return read_by_head(self.head, batch)


class Labels(_Loss):
    """Cross-entropy over a sequence's label."""

    def __init__(self, head: str, name: str) -> None:
        self.head, self.name = head, name

    def count(self, batch: Batch) -> int:
        """Sequences with a label."""
        return int((batch.labels >= 0).sum())

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """Loss and right labels."""
        logits = getattr(model, self.head)(state)
        return _cross_entropy(logits, inputs.labels[:: inputs.batch.together])


class Ratings(_Loss):
    """Squared error of a number. `right` is minus the error: what is better is higher."""

    def __init__(self, head: str, name: str) -> None:
        self.head, self.name = head, name

    def count(self, batch: Batch) -> int:
        """Sequences with a number."""
        return int(np.isfinite(batch.labels).sum())

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """The squared error."""
        labels = inputs.labels[:: inputs.batch.together]
        known = labels.isfinite()
        values = getattr(model, self.head)(state).squeeze(-1).float()[known]
        loss = F.mse_loss(values, labels[known], reduction="sum")
        return Term(loss, -loss.detach())


class WordLabels(_Loss):
    """Cross-entropy over the tags of words, asked at their first pieces."""

    name, head = "tags", "token_classification"

    def count(self, batch: Batch) -> int:
        """Words with a tag."""
        return int((batch.targets >= 0).sum())

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """Loss and right tags."""
        logits = model.token_classification(state)[inputs.positions]
        return _cross_entropy(logits, inputs.targets)


class Choices(_Loss):
    """Cross-entropy over the options of a question; its first option carries the answer."""

    name, head = "choice", "multiple_choice"

    def count(self, batch: Batch) -> int:
        """Questions with an answer."""
        return int((batch.labels >= 0).sum())

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """Loss and right choices."""
        options = inputs.batch.together
        logits = model.multiple_choice(state, options)
        return _cross_entropy(logits, inputs.labels.view(-1, options)[:, 0])


class Spans(_Loss):
    """SQuAD 1.1's head: the mean of two cross-entropies; windows without the answer point at 0."""

    name, head = "span", "span"

    def count(self, batch: Batch) -> int:
        """Windows."""
        return len(batch)

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """Loss, and windows whose start and end are both right."""
        lengths = inputs.batch.lengths.tolist()
        logits = model.span(state).float().split(lengths)
        start_BT, end_BT = (_spread([one[:, side] for one in logits]) for side in (0, 1))
        start, end = inputs.labels[:, 0], inputs.labels[:, 1]
        loss = F.cross_entropy(start_BT, start, reduction="sum")
        loss = (loss + F.cross_entropy(end_BT, end, reduction="sum")) / 2
        right = (start_BT.argmax(-1) == start) & (end_BT.argmax(-1) == end)
        return Term(loss, right.sum())


class ConditionalSpans(_Loss):
    """SQuAD 2.0's head: half the mean of start and end, half whether there is an answer."""

    name, head = "span", "conditional_span"

    def count(self, batch: Batch) -> int:
        """Windows."""
        return len(batch)

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """Loss, and windows whose start and end are both right."""
        start, end, missing = inputs.labels.unbind(-1)
        span = model.conditional_span(state, answerable(inputs, state), start)
        loss = F.cross_entropy(span.start_BT.float(), start, reduction="sum")
        loss = (loss + F.cross_entropy(span.end.float(), end, reduction="sum")) / 2
        unsure = span.unanswerable_B.float()
        doubt = F.binary_cross_entropy_with_logits(unsure, missing.float(), reduction="sum")
        right = (span.start_BT.argmax(-1) == start) & (span.end.argmax(-1) == end)
        return Term((loss + doubt) / 2, right.sum())


def loss_of(task: Task) -> Objective:
    """The loss that trains a task's head."""
    kind, name = task.settings.kind, task.settings.name
    if kind == "qa":
        return ConditionalSpans() if task.settings.conditional else Spans()
    if kind in ("tag", "choice"):
        return WordLabels() if kind == "tag" else Choices()
    return (Ratings if kind == "regress" else Labels)(task.head, name)


def _cross_entropy(logits: Tensor, labels: Tensor) -> Term:
    asked = labels >= 0
    logits, labels = logits[asked].float(), labels[asked]
    loss = F.cross_entropy(logits, labels, reduction="sum")
    return Term(loss, (logits.argmax(-1) == labels).sum())


def _spread(rows: list[Tensor]) -> Tensor:
    """Rows of several lengths as (B, T), the rest as unlikely as can be."""
    longest = max(len(row) for row in rows)
    floor = -1e30
    return torch.stack([F.pad(row, (0, longest - len(row)), value=floor) for row in rows])

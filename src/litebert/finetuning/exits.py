"""A head at every depth, trained in one forward pass."""

from __future__ import annotations

import torch

from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import Term
from litebert.objectives.learner import Learner
from litebert.tasks.task import Task


class ExitLearner(Learner):
    """Learns a task at all depths at once, deeper ones weighing more (PABEE, section 3.3).

    The loss is the mean of the depths' losses, weighted by depth: Σ j·L_j / Σ j. What is counted as
    correct is what the last head says.
    """

    def __init__(self, model: Model, task: Task) -> None:
        super().__init__(model, [task])
        self.task = task

    def forward(self, inputs: Inputs, depth: int | None = None) -> list[Term]:
        terms = [
            self.task.term(self.model, state, inputs, depth)
            for depth, state in enumerate(self._states(inputs), 1)
        ]
        losses = torch.stack([term.loss for term in terms])
        weights = torch.arange(1, len(terms) + 1).to(losses)
        return [Term((weights * losses).sum() / weights.sum(), terms[-1].counts)]

    def _states(self, inputs: Inputs) -> list[State]:
        """The state after each layer; the last one only where it is read."""
        blocks: list[State] = []
        inputs.encode(self.model, read=self.task.reads(inputs.batch), collect=blocks)
        inner = self.model.config.inner_group_num
        return blocks[inner - 1 :: inner]

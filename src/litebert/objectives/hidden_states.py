"""Hidden states: what the teacher makes of each token, through a projection (TinyBERT, 3.1).

Both sides are standardised token by token, so that units of great size do not drown the others.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from litebert.base.batches import Batch
from litebert.model.config import EncoderConfig
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import Term
from litebert.objectives.distillation import Distillation, Teacher, TeacherSettings

SEED = 2


class HiddenStates(Distillation):
    """The mean squared error of the teacher's units; a token an answer."""

    name = "hidden_states"

    def __init__(self, student: EncoderConfig, teacher: Teacher, settings: TeacherSettings) -> None:
        super().__init__(student, teacher, settings)
        self.projection = nn.Linear(student.hidden_size, teacher.config.hidden_size)
        generator = torch.Generator().manual_seed(SEED)
        nn.init.orthogonal_(self.projection.weight, generator=generator)
        nn.init.zeros_(self.projection.bias)

    def count(self, batch: Batch) -> int:
        return len(batch.ids)

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        taught = self.teacher.hidden_states(inputs, self.layer).float()
        width = taught.shape[-1:]
        ours = F.layer_norm(self.projection(state.x_NH).float(), width)
        loss = F.mse_loss(ours, F.layer_norm(taught, width), reduction="sum")
        return Term(loss / width[0])

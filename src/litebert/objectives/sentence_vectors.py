"""Sentence vectors: a text's place among texts, as the teacher has it.

The mean of the student's tokens learns to point where the teacher's vector does. A teacher that is
wider than the student is seen through the principal components of its vectors, which keep the
angles between texts as well as so many numbers can; so no layer of translation stands between
student and use, and its vectors can be compared as they are. A narrower teacher's vectors fill the
first units.

Shapes: B sequences, H units of the teacher, S of the student.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from litebert.base.batches import Batch
from litebert.model.config import EncoderConfig
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import Term
from litebert.objectives.distillation import Distillation, Teacher, TeacherSettings

SAMPLES = 4  # times the teacher's width: so many vectors tell its principal components


class SentenceVectors(Distillation):
    """1 - cosine; a sequence an answer."""

    name = "sentence_vectors"
    needs_same_tokens = False

    def __init__(self, student: EncoderConfig, teacher: Teacher, settings: TeacherSettings) -> None:
        super().__init__(student, teacher, settings)
        shape = (teacher.config.hidden_size, student.hidden_size)
        self.basis = nn.Parameter(torch.eye(*shape), requires_grad=False)

    def prepare(self, samples: Iterator[Inputs]) -> None:
        """Find the principal components of the teacher's vectors, where they are needed."""
        width, wanted = self.basis.shape
        if wanted >= width:
            return
        found: list[Tensor] = []
        while sum(map(len, found)) < SAMPLES * width:
            inputs = next(samples, None)
            if inputs is None:
                break
            found.append(self.teacher.vectors(inputs))
        with torch.no_grad():
            self.basis.copy_(principal_components(F.normalize(torch.cat(found)), wanted))

    def count(self, batch: Batch) -> int:
        return len(batch)

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        taught_BS = self.teacher.vectors(inputs).to(self.basis) @ self.basis
        cosine_B = F.cosine_similarity(state.mean().float(), taught_BS)
        return Term((1 - cosine_B).sum())


def principal_components(rows: Tensor, count: int) -> Tensor:
    """The directions, at right angles, that keep most of the rows' squared length: (H, count)."""
    moments = rows.double().T @ rows.double()
    strength, directions = torch.linalg.eigh(moments)  # rising
    return directions[:, strength.argsort(descending=True)[:count]].to(rows)

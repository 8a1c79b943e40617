"""Sentence vectors: a text's place among texts, as the teacher has it.

The mean of the student's tokens learns to point where the teacher's vector does. A teacher that is
wider than the student is seen through the principal components of its vectors, which keep the
angles between texts as well as so many numbers can. Angles do not change when all vectors are
turned alike, so the teacher's are turned to where the student's stand before the first step
(orthogonal Procrustes), and nothing need be unlearned. No layer of translation stands between
student and use, and its vectors can be compared as they are.

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
from litebert.objectives.distillation import Distillation, Encode, Teacher, TeacherSettings

SAMPLES = 4  # times the teacher's width: so many vectors tell its principal components


class SentenceVectors(Distillation):
    """1 - cosine; a sequence an answer."""

    name = "sentence_vectors"
    needs_same_tokens = False

    def __init__(self, student: EncoderConfig, teacher: Teacher, settings: TeacherSettings) -> None:
        super().__init__(student, teacher, settings)
        shape = (teacher.config.hidden_size, student.hidden_size)
        self.basis = nn.Parameter(torch.eye(*shape), requires_grad=False)

    def prepare(self, samples: Iterator[Inputs], student: Encode) -> None:
        """Choose the student's units for the teacher's vectors, by some samples."""
        taught: list[Tensor] = []
        ours: list[Tensor] = []
        for inputs in samples:
            taught.append(F.normalize(self.teacher.vectors(inputs)).float())
            ours.append(F.normalize(student(inputs).mean().float()))
            if sum(map(len, taught)) >= SAMPLES * len(self.basis):
                break
        if taught:
            self.basis.copy_(turned(torch.cat(taught), torch.cat(ours)))

    def count(self, batch: Batch) -> int:
        return len(batch)

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        taught_BS = self.teacher.vectors(inputs).to(self.basis) @ self.basis
        cosine_B = F.cosine_similarity(state.mean().float(), taught_BS)
        return Term((1 - cosine_B).sum())


def turned(taught_BH: Tensor, ours_BS: Tensor) -> Tensor:
    """A basis (H, S) that keeps the angles of the taught vectors and points where ours do."""
    width = min(taught_BH.shape[1], ours_BS.shape[1])
    basis_HK = principal_components(taught_BH, width)
    seen_BK = taught_BH @ basis_HK
    shared_KS = (seen_BK - seen_BK.mean(0)).double().T @ (ours_BS - ours_BS.mean(0)).double()
    left, _, right = torch.linalg.svd(shared_KS, full_matrices=False)
    return basis_HK @ (left @ right).to(basis_HK)


def principal_components(rows: Tensor, count: int) -> Tensor:
    """The directions, at right angles, that keep most of the rows' squared length: (H, count)."""
    moments = rows.double().T @ rows.double()
    strength, directions = torch.linalg.eigh(moments)  # rising
    return directions[:, strength.argsort(descending=True)[:count]].to(rows)

"""The objectives of pretraining, by name. A new one is a class and a row here.

Those of `TAUGHT` learn from a teacher (distillation.py) and have no head of the model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from litebert.model.config import EncoderConfig
from litebert.model.objective import Objective
from litebert.objectives.distillation import Distillation, Teacher, TeacherSettings
from litebert.objectives.hidden_states import HiddenStates
from litebert.objectives.masked_lm import MaskedLM
from litebert.objectives.relations import Relations
from litebert.objectives.replaced_token import ReplacedToken
from litebert.objectives.sentence_pairs import NextSentence, SentenceOrder
from litebert.objectives.sentence_vectors import SentenceVectors
from litebert.objectives.span_boundary import SpanBoundary


class PretrainingObjective(Objective, Protocol):
    """An objective with the head that it trains, and the negatives that its samples must have."""

    head: str
    negatives: str | None  # of the input format: "swap", "random_next"; None for any


OBJECTIVES: dict[str, type[PretrainingObjective]] = {
    "masked_lm": MaskedLM,
    "sentence_order": SentenceOrder,
    "next_sentence": NextSentence,
    "replaced_token": ReplacedToken,
    "span_boundary": SpanBoundary,
}


TAUGHT: dict[str, type[Distillation]] = {
    "relations": Relations,
    "hidden_states": HiddenStates,
    "sentence_vectors": SentenceVectors,
}


def heads_of(objectives: Sequence[str]) -> tuple[str, ...]:
    """The heads that objectives train, in their order."""
    return tuple(dict.fromkeys(OBJECTIVES[name].head for name in objectives if name in OBJECTIVES))


def build_objectives(
    names: Sequence[str], discriminator_weight: float | None = None
) -> list[PretrainingObjective]:
    """The objectives that need no teacher; ELECTRA's discriminator may have a weight of its own."""
    built = [OBJECTIVES[name]() for name in names if name in OBJECTIVES]
    for objective in built:
        if discriminator_weight is not None and isinstance(objective, ReplacedToken):
            objective.weight = discriminator_weight
    return built


def build_taught(
    names: Sequence[str], student: EncoderConfig, teacher: Teacher, settings: TeacherSettings
) -> list[Distillation]:
    """The objectives that learn from a teacher."""
    return [TAUGHT[name](student, teacher, settings) for name in names if name in TAUGHT]

"""Classification: one label of several for a text (`classify`) or a pair of texts (`pair`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from litebert.base.errors import FormatError
from litebert.model.model import Model
from litebert.model.objective import cross_entropy_term
from litebert.tasks.features import NO_LABEL, Features, entropy
from litebert.tasks.metrics.classification import (
    CLASSIFICATION_METRICS,
    confusion_matrix,
    per_label,
)
from litebert.tasks.readers.column_mapping import ID, ColumnMapping, Role
from litebert.tasks.readers.rows import Row
from litebert.tasks.task import Prediction, Scores, Term
from litebert.tasks.texts import (
    LABEL,
    PAIR,
    TEXT,
    Examples,
    TextExample,
    TextSettings,
    TextTask,
    both_texts,
)
from litebert.tasks.tfidf import tfidf_probabilities

MAX_LABELS = 1000
SMALLEST = 1e-6  # probability of a teacher's that is told from none
INTEGER = re.compile(r"-?\d{1,18}")


@dataclass(frozen=True)
class LabelPrediction(Prediction):
    """The likeliest label, and how likely each one is."""

    label: str
    probabilities: dict[str, float]

    def brief(self) -> dict[str, str]:
        return {"label": self.label, "probability": f"{self.probabilities[self.label]:.1%}"}


class Classification(TextTask[LabelPrediction]):
    """Classify texts."""

    kind = "classify"
    contrasts = True
    known_metrics = CLASSIFICATION_METRICS
    no_label = NO_LABEL
    trivial_answer = "always the most frequent label"

    def __init__(self, settings: TextSettings) -> None:
        super().__init__(settings)
        self._number = {label: number for number, label in enumerate(settings.labels)}

    @classmethod
    def roles(cls, columns: Sequence[str], given: ColumnMapping) -> tuple[Role, ...]:
        return TEXT, ID, LABEL

    @classmethod
    def label_in(cls, row: Row, needed: bool) -> str | None:
        return row.label("label", needed=needed)

    @classmethod
    def settings_for(cls, examples: Examples, path: Path) -> TextSettings:
        labels = _labels([str(example.label) for example in examples], path)
        metrics = ("accuracy", "macro_f1")
        return TextSettings(name=cls.kind, kind=cls.kind, metrics=metrics, labels=labels)

    @classmethod
    def settings_of(cls, model: Model) -> TextSettings | None:
        """A head of several labels, of which one is right."""
        if "classification" not in model.heads or len(model.labels) < 2:
            return None
        problem = model.metadata.get("problem_type")
        if problem == "multi_label_classification":
            raise FormatError("problem_type multi_label_classification: one label a text only")
        if problem == "regression":
            return None
        return TextSettings(
            name=cls.kind, kind=cls.kind, metrics=("accuracy", "macro_f1"), labels=model.labels,
            max_length=model.config.longest_sequence,
        )  # fmt: skip

    @staticmethod
    def labels_of(example: TextExample) -> tuple[str, ...]:
        return () if example.label is None else (str(example.label),)

    def target_of(self, example: TextExample) -> int:
        known = example.label is not None  # there may be a label of the name "None"
        return self._number.get(str(example.label), NO_LABEL) if known else NO_LABEL

    def loss(self, outputs: Tensor, answers: Tensor) -> Term:
        return cross_entropy_term(outputs, answers, self.settings.label_weights)

    def soft_loss(self, outputs: Tensor, taught: Tensor, temperature: float) -> Tensor:
        """The divergence of softened probabilities, at the size of a loss of plain ones."""
        theirs = (taught.clamp(min=SMALLEST).log() / temperature).log_softmax(-1)
        ours = (outputs / temperature).log_softmax(-1)
        return F.kl_div(ours, theirs, reduction="sum", log_target=True) * temperature**2

    def chance_loss(self, features: Features) -> float:
        labels = features.batch.labels[:: features.batch.group_size]
        return entropy(labels, self.settings.label_weights)

    def plain_rows(self, train: Examples, examples: Examples) -> NDArray[np.floating]:
        labels = list(map(self.target_of, train))
        texts, classes = both_texts(examples), len(self.settings.labels)
        return tfidf_probabilities(both_texts(train), labels, texts, classes)

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits.softmax(-1)

    def to_prediction(self, id: str, row: NDArray[np.floating]) -> LabelPrediction:
        best = self.settings.labels[int(row.argmax())]
        return LabelPrediction(id, best, dict(zip(self.settings.labels, row.tolist(), strict=True)))

    def to_row(self, prediction: LabelPrediction) -> list[float]:
        return list(prediction.probabilities.values())

    def row_of_target(self, target: float) -> list[float]:
        return [float(number == target) for number in range(len(self.settings.labels))]

    def is_better(self, scores: Scores, trivial: Scores) -> bool:
        """By any metric: rare labels are found at the price of accuracy."""
        return any(scores[metric] > trivial[metric] for metric in self.settings.metrics)

    def number_of(self, prediction: LabelPrediction) -> int:
        return self._number[prediction.label]

    def details(self, examples: Examples, predictions: Sequence[LabelPrediction]) -> dict[str, Any]:
        """Precision, recall and F1 of each label, and which is taken for which."""
        numbers, names = self.to_numbers(examples, predictions), self.settings.labels
        return {
            "labels": {name: asdict(row) for name, row in per_label(*numbers, names).items()},
            "confusion": confusion_matrix(*numbers, len(names)).tolist(),
        }

    def all_alike(self, predictions: Sequence[LabelPrediction]) -> bool:
        return len({prediction.label for prediction in predictions}) < 2


class PairClassification(Classification):
    """Classify pairs of texts."""

    kind = "pair"
    contrasts = False
    takes_several = True
    example_input = {"text_a": "A man plays a guitar.", "text_b": "Someone makes music."}  # noqa: RUF012

    @property
    def needs_pairs(self) -> bool:
        return True

    @classmethod
    def settings_of(cls, model: Model) -> None:
        """A foreign folder does not say that it reads pairs; `classify` takes both."""
        return None

    @classmethod
    def roles(cls, columns: Sequence[str], given: ColumnMapping) -> tuple[Role, ...]:
        return PAIR, ID, LABEL


def _labels(found: list[str], path: Path) -> tuple[str, ...]:
    """The labels in a fixed order: numbers by size, words by the alphabet."""
    distinct = set(found)
    if len(distinct) < 2:
        raise FormatError(f"{path}: all examples have the label {found[0]!r}; there must be two")
    if len(distinct) > MAX_LABELS:
        raise FormatError(
            f"{path}: {len(distinct):,} different labels; is this the right column "
            "(--column label=NAME), or a number to predict (--task regress)?"
        )
    if all(INTEGER.fullmatch(label) for label in distinct):
        return tuple(sorted(distinct, key=int))
    return tuple(sorted(distinct))

"""Regression: a number for a text or a pair of texts (`regress`)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from litebert.base.batches import Batch
from litebert.base.errors import FormatError
from litebert.model.model import Model
from litebert.tasks.features import Features
from litebert.tasks.metrics.correlation import CORRELATION_METRICS
from litebert.tasks.readers.column_mapping import ID, ColumnMapping, Role, candidates
from litebert.tasks.readers.rows import Row
from litebert.tasks.readers.text_file import Say
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
from litebert.tasks.tfidf import tfidf_values

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)

TOLERANCE = 0.1  # of the labels' standard deviation


@dataclass(frozen=True)
class ValuePrediction(Prediction):
    """A number."""

    value: float

    def brief(self) -> dict[str, str]:
        return {"value": f"{self.value:.4g}"}


class Regression(TextTask[ValuePrediction]):
    """Predict a number."""

    kind = "regress"
    known_metrics = CORRELATION_METRICS
    label_type = np.float32
    no_label = math.nan
    takes_several = True
    trivial_answer = "always the mean value"
    counters = ()  # a number is near or far, never correct
    exit_rules = ("depth", "patience")  # a number has no probability

    @classmethod
    def roles(cls, columns: Sequence[str], given: ColumnMapping) -> tuple[Role, ...]:
        """Of pairs where a table has them, unless one text is named."""
        named = "text_a" in given.columns or "text_b" in given.columns
        paired = "text" not in given.columns and (named or bool(candidates(PAIR, columns)))
        return (PAIR if paired else TEXT), ID, LABEL

    @classmethod
    def label_in(cls, row: Row, needed: bool) -> float | None:
        label = row.label("label", needed=needed)
        if label is None:
            return None
        value = float(label) if _NUMBER.fullmatch(label) else math.inf
        if not math.isfinite(value):
            raise FormatError(f"{row.place('label')} is {label!r}, expected a number")
        return value

    @classmethod
    def settings_for(cls, examples: Examples, path: Path) -> TextSettings:
        return TextSettings(name=cls.kind, kind=cls.kind, metrics=("pearson", "spearman"))

    @classmethod
    def settings_of(cls, model: Model) -> TextSettings | None:
        """A head of one number."""
        one = len(model.labels) == 1
        if "classification" not in model.heads or not (
            one or model.metadata.get("problem_type") == "regression"
        ):
            return None
        if not one:
            raise FormatError(f"problem_type regression with {len(model.labels)} numbers a text")
        return TextSettings(
            name=cls.kind, kind=cls.kind, metrics=("pearson", "spearman"),
            max_length=model.config.longest_sequence,
        )  # fmt: skip

    @property
    def needs_pairs(self) -> bool:
        return super().needs_pairs or self.settings.pairs is True

    def problem_of(self, example: TextExample) -> str | None:
        is_pair = example.second is not None
        if self.settings.pairs in (None, is_pair):
            return None
        told, wanted = ("a pair", "lone texts") if is_pair else ("one text", "pairs")
        return f"{told}; the model was trained on {wanted} (--column says what is what)"

    @classmethod
    def counted_of(cls, example: TextExample) -> tuple[str, ...]:
        """The nearest whole number, which makes a histogram of small scores."""
        return () if example.label is None else (f"{float(example.label):.0f}",)

    def target_of(self, example: TextExample) -> float:
        return math.nan if example.label is None else float(example.label)

    def count(self, batch: Batch) -> int:
        return int(np.isfinite(batch.labels).sum())

    def loss(self, outputs: Tensor, answers: Tensor) -> Term:
        """The squared error."""
        values, answers = outputs.squeeze(-1), self._standardized(answers)
        # Those without an answer count as correct; choosing the others would wait for a GPU.
        answers = torch.where(answers.isfinite(), answers, values.detach())
        return Term(F.mse_loss(values, answers, reduction="sum"))

    def soft_loss(self, outputs: Tensor, taught: Tensor, temperature: float) -> Tensor:
        """The squared error; a number has no temperature."""
        return F.mse_loss(outputs, self._standardized(taught), reduction="sum")

    def _standardized(self, numbers: Tensor) -> Tensor:
        return (numbers - self.settings.label_mean) / self.settings.label_deviation

    @contextmanager
    def own_units(self, model: Model) -> Iterator[None]:
        """The mean and the deviation of the numbers, folded into the head's last layer."""
        deepest = model.config.num_hidden_layers
        first = 1 if model.has_exits(self.head) else deepest
        layers = [model.head(self.head, depth).dense for depth in range(first, deepest + 1)]
        before = [(layer.weight.clone(), layer.bias.clone()) for layer in layers]
        try:
            with torch.no_grad():
                for layer in layers:
                    layer.weight.mul_(self.settings.label_deviation)
                    layer.bias.mul_(self.settings.label_deviation).add_(self.settings.label_mean)
            yield
        finally:
            with torch.no_grad():
                for layer, (weight, bias) in zip(layers, before, strict=True):
                    layer.weight.copy_(weight)
                    layer.bias.copy_(bias)

    def calibrated(self, scores: Scores) -> TextSettings:
        """A saved head answers in the numbers' own units."""
        return self.settings.model_copy(update={"label_mean": 0.0, "label_deviation": 1.0})

    def plain_rows(self, train: Examples, examples: Examples) -> NDArray[np.floating]:
        values = list(map(self.target_of, train))
        return tfidf_values(both_texts(train), values, both_texts(examples))[:, None]

    def chance_loss(self, features: Features) -> float:
        labels = features.batch.labels[:: features.batch.group_size]
        return float(np.var(labels)) / self.settings.label_deviation**2

    def configured(self, recipe: Mapping[str, Any], train: Examples, say: Say) -> Self:
        """Numbers are learned in deviations from their mean, whatever their size.

        With exits, they are the same answer where they differ by little of their spread.
        """
        numbers = [self.target_of(example) for example in train if example.label is not None]
        spread = float(np.std(numbers)) if numbers else 0.0
        known: dict[str, Any] = {"pairs": any(example.second is not None for example in train)}
        if recipe.get("exits"):
            known["exit_tolerance"] = TOLERANCE * spread
        if spread > 0:
            known |= {"label_mean": float(np.mean(numbers)), "label_deviation": spread}
        return super().configured({**recipe, **known}, train, say)

    def agree(self, one: NDArray[np.floating], other: NDArray[np.floating]) -> bool:
        return abs(float(one[0] - other[0])) <= self.settings.exit_tolerance

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits

    def to_prediction(self, id: str, row: NDArray[np.floating]) -> ValuePrediction:
        return ValuePrediction(id, float(row[0]))

    def to_row(self, prediction: ValuePrediction) -> list[float]:
        return [prediction.value]

    def row_of_target(self, target: float) -> list[float]:
        return [target]

    def number_of(self, prediction: ValuePrediction) -> float:
        return prediction.value

    def all_alike(self, predictions: Sequence[ValuePrediction]) -> bool:
        """Also where a value is not finite."""
        values = [prediction.value for prediction in predictions]
        spread = float(np.std(values))
        return not math.isfinite(spread) or spread < 1e-3 * (1 + abs(float(np.mean(values))))

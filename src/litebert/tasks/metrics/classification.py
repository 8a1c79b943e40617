"""Metrics of labels: pure functions of (labels, predictions), fractions between 0 and 1.

Labels may be numbers or words. The conventions are GLUE's: where a score is not defined, because
everything is of one class, it is 0 and not a warning. What is wrong with the input (nothing to
score, or two lengths) is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from litebert.base.errors import SettingsError
from litebert.base.intervals import Metric, paired


@dataclass(frozen=True)
class LabelScore:
    """How well one label, or one type of entity, is found; `support` is how often it is true."""

    precision: float
    recall: float
    f1: float
    support: int


def label_score(true_positives: int, predicted: int, support: int) -> LabelScore:
    """Precision, recall and F1 out of counts; 0 where nothing was predicted or nothing is true."""
    return LabelScore(
        precision=true_positives / predicted if predicted else 0.0,
        recall=true_positives / support if support else 0.0,
        f1=2 * true_positives / (predicted + support) if predicted + support else 0.0,
        support=support,
    )


def accuracy(labels: ArrayLike, predictions: ArrayLike) -> float:
    """The fraction of predictions that are correct."""
    labels, predictions = paired(labels, predictions)
    return float(np.mean(labels == predictions))


def f1(labels: ArrayLike, predictions: ArrayLike, label: int | str = 1) -> float:
    """F1 of one label: the second of two, as in MRPC and QQP, unless another is named."""
    return _score_of(label, *paired(labels, predictions)).f1


def macro_f1(labels: ArrayLike, predictions: ArrayLike) -> float:
    """The mean of every label's F1, over the labels that occur on either side."""
    labels, predictions = paired(labels, predictions)
    distinct = np.union1d(labels, predictions)
    return float(np.mean([_score_of(label, labels, predictions).f1 for label in distinct]))


def matthews(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Matthews correlation, for any number of labels (Gorodkin 2004); 0 if either has only one."""
    labels, predictions = paired(labels, predictions)
    _, codes = np.unique(np.concatenate([labels, predictions]), return_inverse=True)
    table = confusion_matrix(codes[: len(labels)], codes[len(labels) :])
    true, predicted, count = table.sum(axis=1), table.sum(axis=0), int(table.sum())
    covariance = int(np.trace(table)) * count - int(true @ predicted)
    variances = (count**2 - int(true @ true)) * (count**2 - int(predicted @ predicted))
    return covariance / sqrt(variances) if variances else 0.0


def confusion_matrix(
    labels: ArrayLike, predictions: ArrayLike, classes: int | None = None
) -> NDArray[np.int64]:
    """How often label r (row) was taken for label c (column), of labels numbered from 0."""
    labels, predictions = paired(labels, predictions)
    for side in (labels, predictions):
        if not np.issubdtype(side.dtype, np.integer):
            raise SettingsError(f"a table of labels needs their numbers, found {side.dtype} values")
    smallest, largest = min(labels.min(), predictions.min()), max(labels.max(), predictions.max())
    classes = int(largest) + 1 if classes is None else classes
    if smallest < 0 or largest >= classes:
        raise SettingsError(
            f"labels run from {smallest} to {largest}; they must be from 0 to {classes - 1}"
        )
    cells = labels.astype(np.int64) * classes + predictions.astype(np.int64)
    return np.bincount(cells, minlength=classes * classes).reshape(classes, classes)


def per_label(
    labels: ArrayLike, predictions: ArrayLike, names: Sequence[str]
) -> dict[str, LabelScore]:
    """Precision, recall, F1 and support of every label, by the name of its number."""
    table = confusion_matrix(labels, predictions, len(names))
    correct, predicted, support = np.diag(table), table.sum(axis=0), table.sum(axis=1)
    return {
        name: label_score(int(correct[label]), int(predicted[label]), int(support[label]))
        for label, name in enumerate(names)
    }


def _score_of(label: int | str, labels: NDArray, predictions: NDArray) -> LabelScore:
    true, predicted = labels == label, predictions == label
    return label_score(int((true & predicted).sum()), int(predicted.sum()), int(true.sum()))


CLASSIFICATION_METRICS: dict[str, Metric] = {
    "accuracy": accuracy, "f1": f1, "macro_f1": macro_f1, "matthews": matthews,
}  # fmt: skip

"""What fine-tuning is scored by: pure functions of (truth, guess), as shares between 0 and 1.

Labels may be numbers or words. The conventions are GLUE's: where a score is not defined, because
everything is of one class or of one value, it is 0 and not a warning. What is wrong with the input
(nothing to score, or two lengths) is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from litebert.base.errors import SettingsError

Metric = Callable[[ArrayLike, ArrayLike], float]


@dataclass(frozen=True)
class LabelScore:
    """How well one label, or one type of entity, is found; `count` is how often it is true."""

    precision: float
    recall: float
    f1: float
    count: int


def label_score(right: int, guessed: int, count: int) -> LabelScore:
    """Precision, recall and F1 out of counts; 0 where nothing was guessed or nothing is true."""
    return LabelScore(
        precision=right / guessed if guessed else 0.0,
        recall=right / count if count else 0.0,
        f1=2 * right / (guessed + count) if guessed + count else 0.0,
        count=count,
    )


def accuracy(truth: ArrayLike, guess: ArrayLike) -> float:
    """The share of guesses that are right."""
    truth, guess = paired(truth, guess)
    return float(np.mean(truth == guess))


def f1(truth: ArrayLike, guess: ArrayLike, label: int | str = 1) -> float:
    """F1 of one label: the second of two, as in MRPC and QQP, unless another is named."""
    truth, guess = paired(truth, guess)
    return _found(truth, guess, label).f1


def macro_f1(truth: ArrayLike, guess: ArrayLike) -> float:
    """The mean of every label's F1, over the labels that occur in the truth or in the guesses."""
    truth, guess = paired(truth, guess)
    labels = np.union1d(truth, guess)
    return float(np.mean([_found(truth, guess, label).f1 for label in labels]))


def matthews(truth: ArrayLike, guess: ArrayLike) -> float:
    """Matthews correlation, for any number of labels (Gorodkin 2004); 0 if either has only one."""
    truth, guess = paired(truth, guess)
    _, codes = np.unique(np.concatenate([truth, guess]), return_inverse=True)
    table = confusion_matrix(codes[: len(truth)], codes[len(truth) :])
    true, guessed, count = table.sum(axis=1), table.sum(axis=0), int(table.sum())
    together = int(np.trace(table)) * count - int(true @ guessed)
    apart = (count**2 - int(true @ true)) * (count**2 - int(guessed @ guessed))
    return together / sqrt(apart) if apart else 0.0


def pearson(truth: ArrayLike, guess: ArrayLike) -> float:
    """Linear correlation; 0 if either side is constant, not a number if either has such a value.

    The correlation of a constant is not defined. GLUE's scorers count it as 0, which is what a
    model that gives every pair the same number has earned.
    """
    truth, guess = (side.astype(np.float64) for side in paired(truth, guess))
    if not (np.isfinite(truth).all() and np.isfinite(guess).all()):
        return float("nan")
    if (truth == truth[0]).all() or (guess == guess[0]).all():
        return 0.0
    return float(np.clip(_direction(truth) @ _direction(guess), -1.0, 1.0))


def spearman(truth: ArrayLike, guess: ArrayLike) -> float:
    """Correlation of the ranks, equal values sharing the mean of theirs; else as `pearson`."""
    truth, guess = (side.astype(np.float64) for side in paired(truth, guess))
    if not (np.isfinite(truth).all() and np.isfinite(guess).all()):
        return float("nan")
    return pearson(ranks(truth), ranks(guess))


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """The rank of each value, from 1; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def confusion_matrix(
    truth: ArrayLike, guess: ArrayLike, labels: int | None = None
) -> NDArray[np.int64]:
    """How often label r (row) was taken for label c (column), of labels numbered from 0."""
    truth, guess = paired(truth, guess)
    if not all(np.issubdtype(side.dtype, np.integer) for side in (truth, guess)):
        raise SettingsError(f"a table of labels needs their numbers, found {guess.dtype} values")
    smallest, largest = min(truth.min(), guess.min()), max(truth.max(), guess.max())
    labels = int(largest) + 1 if labels is None else labels
    if smallest < 0 or largest >= labels:
        raise SettingsError(
            f"labels run from {smallest} to {largest}; they must be from 0 to {labels - 1}"
        )
    cells = truth.astype(np.int64) * labels + guess.astype(np.int64)
    return np.bincount(cells, minlength=labels * labels).reshape(labels, labels)


def per_label(truth: ArrayLike, guess: ArrayLike, names: Sequence[str]) -> dict[str, LabelScore]:
    """Precision, recall, F1 and count of every label, by the name of its number."""
    table = confusion_matrix(truth, guess, len(names))
    right, guessed, count = np.diag(table), table.sum(axis=0), table.sum(axis=1)
    return {
        name: label_score(int(right[label]), int(guessed[label]), int(count[label]))
        for label, name in enumerate(names)
    }


def paired(truth: ArrayLike, guess: ArrayLike) -> tuple[NDArray, NDArray]:
    """Both sides as flat arrays of one length that is not 0, or an error that says why not."""
    truth, guess = np.asarray(truth), np.asarray(guess)
    if truth.ndim != 1 or truth.shape != guess.shape or not len(truth):
        raise SettingsError(
            f"cannot score guesses of shape {guess.shape} against a truth of shape {truth.shape}; "
            "give one guess for each of at least one example"
        )
    return truth, guess


def _found(truth: NDArray, guess: NDArray, label: int | str) -> LabelScore:
    true, guessed = truth == label, guess == label
    return label_score(int((true & guessed).sum()), int(guessed.sum()), int(true.sum()))


def _direction(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values about their mean, as a vector of length 1."""
    # The scaling first, so that squares of very large or very small values neither overflow nor
    # vanish.
    values = values / np.abs(values).max()
    values = values - values.mean()
    values = values / np.abs(values).max()
    return values / np.linalg.norm(values)


METRICS: dict[str, Metric] = {
    "accuracy": accuracy,
    "f1": f1,
    "macro_f1": macro_f1,
    "matthews": matthews,
    "pearson": pearson,
    "spearman": spearman,
}

# The leaderboard averages nine tasks; the diagnostic set AX is in no average. BERT and its
# successors leave WNLI out on the development set, where its sentences are those of the training
# set with the answers turned round.
GLUE_EIGHT = ("cola", "sst-2", "mrpc", "sts-b", "qqp", "mnli", "qnli", "rte")
GLUE_NINE = (*GLUE_EIGHT, "wnli")
MISMATCHED = "mnli-mismatched"

Scores = Mapping[str, Mapping[str, float]]


def average_of_tasks(scores: Scores) -> float:
    """The mean over tasks of the mean of each task's metrics, each task weighing the same."""
    if not scores or not all(scores.values()):
        raise SettingsError("no average: there are no tasks, or a task without a score")
    return float(np.mean([np.mean(list(values.values())) for values in scores.values()]))


def glue_average(scores: Scores, tasks: Sequence[str] = GLUE_EIGHT) -> float:
    """GLUE's average over `tasks`: eight as in papers' development results, or GLUE_NINE.

    A task with two metrics counts with their mean, and MNLI with the mean of its matched (`mnli`)
    and its mismatched examples (`mnli-mismatched`). Tasks that were scored and are not in `tasks`
    do not count; one that is and was not scored is an error.
    """
    wanted = [*tasks, MISMATCHED] if "mnli" in tasks else list(tasks)
    missing = [name for name in wanted if name not in scores]
    if missing:
        raise SettingsError(
            f"no GLUE average without {', '.join(missing)}; score what is missing, or name the "
            "tasks to average"
        )
    found = {task: scores[task] for task in tasks}
    if "mnli" in tasks:
        halves = ("mnli", MISMATCHED)
        found["mnli"] = {half: average_of_tasks({half: scores[half]}) for half in halves}
    return average_of_tasks(found)

"""The plain rival beside a fine-tuned model: trained and scored on the same examples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from litebert.base.errors import MissingExtraError
from litebert.base.intervals import Interval
from litebert.finetuning.runs import RunSetup
from litebert.inference.run import predict_examples
from litebert.model.model import Model
from litebert.tasks.task import Scores

NAME = "TF-IDF + linear model"
LITTLE = 0.02  # of a score: what is surely no better by more is as good


@dataclass(frozen=True)
class Baseline:
    """What TF-IDF and a linear model give, and what the encoder is worth beside them."""

    name: str
    part: str  # the dev set
    scores: Scores
    intervals: dict[str, list[float]]  # 95 %, over examples
    metric: str  # that of the difference
    difference: float  # the fine-tuned model's score minus the baseline's
    difference_interval: list[float]  # 95 %, over examples drawn for both alike

    @property
    def verdict(self) -> str:
        """Which of both is better, as far as these examples can tell."""
        low, high = self.difference_interval
        if low > 0:
            said = "the fine-tuned model is better"
        elif high < 0:
            said = "the plain baseline is better here"
        elif self.difference <= 0 or high <= LITTLE:
            said = "the plain baseline is as good here"
        else:
            said = "the dev examples are too few to tell it from the plain baseline"
        return f"{said}: {self.metric} {self.difference:+.4f} ({low:+.4f} to {high:+.4f})"


def measure_baseline(setup: RunSetup, model: Path) -> Baseline | None:
    """Train the task's plain baseline and compare the kept model with it, on the first dev set.

    None where the kind has none, or scikit-learn is not installed, which is said.
    """
    task, (part, dev) = setup.task, next(iter(setup.dev.items()))
    try:
        found = task.baseline(setup.train.examples, dev.examples)
    except MissingExtraError as error:
        setup.callbacks.on_message(f"{error} (--no-baseline does without)")
        return None
    if found is None:
        return None
    ours = predict_examples(
        task, Model.load(model).to(setup.group.device), dev.examples, dev.features,
        precision=setup.recipe.precision, max_tokens=setup.recipe.micro_batch_tokens,
    )  # fmt: skip
    difference = task.difference(dev.examples, ours, found)
    intervals = task.intervals(dev.examples, found)
    return Baseline(
        name=NAME, part=part, scores=task.score(dev.examples, found),
        intervals={name: _ends(interval) for name, interval in intervals.items()},
        metric=task.settings.metrics[0], difference=difference.value,
        difference_interval=_ends(difference),
    )  # fmt: skip


def _ends(interval: Interval) -> list[float]:
    return [interval.low, interval.high]

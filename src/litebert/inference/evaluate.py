"""How good fine-tuned models are on labelled examples: scores, 95 % intervals, tables of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.base.intervals import Interval
from litebert.inference.exits import DepthDial, mean_depth
from litebert.inference.predict import ask
from litebert.tasks.readers.text_file import Say, quiet
from litebert.tasks.source import DataSource
from litebert.tasks.task import Scores


@dataclass(frozen=True)
class TaskReport:
    """Scores on labelled examples, as fractions of 1."""

    task: str
    examples: int
    scores: Scores
    intervals: dict[str, Interval]  # 95 %, over examples, of the scores that choose a model
    details: dict[str, Any]  # of classification: the table of labels, and the confusion matrix
    mean_depth: float | None = None  # where depth was chosen

    def as_dict(self) -> dict[str, Any]:
        """Plain values; an interval is its two ends."""
        intervals = {name: [found.low, found.high] for name, found in self.intervals.items()}
        depth = {} if self.mean_depth is None else {"mean_depth": self.mean_depth}
        return {
            "task": self.task, "examples": self.examples, "scores": self.scores,
            "intervals": intervals, **depth, **self.details,
        }  # fmt: skip


def evaluate_task(
    models: Sequence[str | Path], input: str | Path, *,
    split: str = "dev", columns: Sequence[str] | Mapping[str, str] = (), repair: bool = False,
    exit: str | None = None, depth: int | None = None, say: Say = quiet,
) -> TaskReport:  # fmt: skip
    """Evaluate fine-tuned models on labelled examples.

    Args:
        models: Fine-tuned runs or model folders; several vote.
        input: Labelled examples: a file, or a published task's folder.
        split: Of a published task's folder.
        columns: Which column of a table is what, where names do not say so: text=body.
        repair: Move SQuAD's answers that are not at their offset to the nearest place.
        exit: An exit rule, as in `predict`.
        depth: Layers to run, at most.
        say: Told what the user should know, a sentence each.

    Returns:
        Scores with 95 % intervals; labels get a table each.
    """
    source = DataSource.build(input, columns=columns, repair=repair)
    dial = DepthDial(exit, depth)
    task, examples, predictions = ask(
        models, source, split=split, labelled=True, dial=dial, say=say
    )
    return TaskReport(
        task=task.settings.name,
        examples=len(examples),
        scores=task.score(examples, predictions),
        intervals=task.intervals(examples, predictions),
        details=task.details(examples, predictions),
        mean_depth=mean_depth(predictions),
    )

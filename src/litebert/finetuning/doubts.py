"""What the user should be told before and after a run: too few steps, too small a dev set, nothing
learned. Pure functions; a sentence each, or None where all is well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from litebert.base.intervals import wilson
from litebert.finetuning.recipe import Recipe
from litebert.finetuning.recipe_rule import ENOUGH_DEV
from litebert.tasks.task import Scores, Task

FEW_STEPS = 100


def too_few_steps(steps: int) -> str | None:
    """Fewer steps than any new head needs."""
    if steps >= FEW_STEPS:
        return None
    more = f"--set steps={3 * FEW_STEPS} trains longer"
    return f"warning: {steps:,} steps are few for a new head; {more}"


def dev_too_small(examples: int, keep: str) -> str | None:
    """A dev set by which no model can be chosen."""
    if examples >= ENOUGH_DEV:
        return None
    half = wilson(examples / 2, examples)
    chosen = "" if keep == "last" else "; --set keep=last does not choose the luckiest evaluation"
    return (
        f"warning: {examples:,} dev examples measure a score to ±{50 * (half.high - half.low):.0f} "
        f"points at best{chosen}"
    )


def why_nothing(task: Task, scores: Scores, trivial: Scores, examples: int) -> str | None:
    """That a score is no better than what takes no encoder, where the dev set can tell."""
    if examples < ENOUGH_DEV or task.is_better(scores, trivial):
        return None
    return f"its {_compared(task, scores, trivial)}"


def why_doubtful(
    task: Task, scores: Scores, intervals: Mapping[str, Sequence[float]], trivial: Scores
) -> str | None:
    """That the examples cannot tell a score from what takes no encoder."""
    metric = task.settings.metrics[0]
    low = intervals[metric][0] if metric in intervals else scores[metric]
    if low > trivial[metric]:
        return None
    if scores[metric] <= trivial[metric]:
        return f"the {_compared(task, scores, trivial)}"
    return (
        f"{metric} {scores[metric]:.4f} cannot be told from {trivial[metric]:.4f}, which "
        f"{task.trivial_answer} gives: with these dev examples it may be {low:.4f}"
    )


def _compared(task: Task, scores: Scores, trivial: Scores) -> str:
    metric = task.settings.metrics[0]
    return (
        f"{metric} of {scores[metric]:.4f} is no better than {trivial[metric]:.4f}, which "
        f"{task.trivial_answer} gives"
    )


def before_training(recipe: Recipe, per_epoch: int, dev: int) -> list[str]:
    """All that can be said before a run."""
    found = (too_few_steps(recipe.steps_of(per_epoch)), dev_too_small(dev, recipe.keep))
    return [warning for warning in found if warning is not None]

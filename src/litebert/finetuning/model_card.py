"""What the card of a fine-tuned model tells: examples, scores on dev with intervals, recipe."""

from __future__ import annotations

from litebert.base.intervals import Interval
from litebert.finetuning.baseline import Baseline
from litebert.finetuning.runs import RunResult, RunSetup
from litebert.model.card import CardFacts, CardScore


def finetuned_facts(
    setup: RunSetup, best: RunResult, seeds: int, baseline: Baseline | None, *,
    searched: bool = False,
) -> CardFacts:  # fmt: skip
    """The facts of a finished run, and how a plain rival does beside it."""
    task, name = setup.task, setup.task.settings.name
    sizes = {f"{part} examples": f"{len(one.examples):,}" for part, one in setup.dev.items()}
    return CardFacts(
        title=f"{name}, fine-tuned",
        notes=[_how_chosen(setup, best, seeds, searched)],
        data={"training examples": f"{len(setup.train.examples):,}", **sizes},
        scores=_scores(best),
        baseline=None if baseline is None else f"Beside {baseline.name}, {baseline.verdict}.",
        settings={
            **setup.recipe.model_dump(mode="json", exclude_none=True),
            "task": task.settings.model_dump(mode="json", exclude={"labels"}),
            "learning_rate": best.learning_rate,
        },
    )


def _how_chosen(setup: RunSetup, best: RunResult, seeds: int, searched: bool) -> str:
    place = f"Seed {best.seed} of {seeds}, step {best.step:,} of {best.steps:,}"
    if seeds == 1 and setup.recipe.keep == "last":
        if searched:
            return f"{place}: the last one; its recipe was searched for by dev examples, too."
        return f"{place}: the last one, so nothing was chosen by its dev scores."
    metric = setup.task.settings.metrics[0]
    return f"{place}, chosen by {metric} on dev; so dev scores flatter it a bit."


def _scores(best: RunResult) -> list[CardScore]:
    """Every score; those of the first dev set that choose a model have an interval."""
    first = next(iter(best.scores), None)
    found = []
    for part, scores in best.scores.items():
        for metric, value in scores.items():
            ends = best.intervals.get(metric) if part == first else None
            interval = None if ends is None else Interval(value, *ends)
            found.append(CardScore(f"{part}: {metric}", value, interval))
    return found

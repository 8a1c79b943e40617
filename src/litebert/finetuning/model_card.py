"""What the card of a fine-tuned model tells: examples, scores on dev with intervals, recipe."""

from __future__ import annotations

from pathlib import Path

from litebert.base.intervals import Interval
from litebert.finetuning.runs import RunResult, RunSetup
from litebert.inference.run import predict_examples
from litebert.model.card import CardFacts, CardScore
from litebert.model.folder import write_card
from litebert.model.model import Model

Intervals = dict[str, dict[str, Interval]]  # dev set -> metric


def write_finetuned_card(
    folder: Path, setup: RunSetup, best: RunResult, seeds: int, baseline: str | None = None
) -> None:
    """Write the card of the best seed's model; `baseline` says how a plain rival does."""
    intervals = _intervals(setup, Model.load(folder).to(setup.group.device))
    write_card(folder, finetuned_facts(setup, best, seeds, intervals, baseline))


def finetuned_facts(
    setup: RunSetup, best: RunResult, seeds: int, intervals: Intervals, baseline: str | None = None
) -> CardFacts:
    """The facts of a finished run."""
    task, name = setup.task, setup.task.settings.name
    sizes = {f"dev, {part}": f"{len(one.examples):,}" for part, one in setup.dev.items()}
    chosen = f"Seed {best.seed} of {seeds}, chosen by {task.settings.metrics[0]} on dev, "
    return CardFacts(
        title=f"{name}, fine-tuned",
        notes=[f"{chosen}at step {best.step:,} of {best.steps:,}; so dev scores flatter it a bit."],
        data={"training examples": f"{len(setup.train.examples):,}", **sizes},
        scores=[
            CardScore(f"{part}: {metric}", value, intervals.get(part, {}).get(metric))
            for part, scores in best.scores.items()
            for metric, value in scores.items()
        ],
        baseline=baseline,
        settings={
            **setup.recipe.model_dump(mode="json", exclude_none=True),
            "task": task.settings.model_dump(mode="json", exclude={"labels"}),
            "learning_rate": best.learning_rate,
        },
    )


def _intervals(setup: RunSetup, model: Model) -> Intervals:
    """95 % over examples, of the scores that choose a model."""
    found: Intervals = {}
    for name, part in setup.dev.items():
        predictions = predict_examples(
            setup.task, model, part.examples, part.features, precision=setup.recipe.precision,
            max_tokens=setup.recipe.micro_batch_tokens,
        )  # fmt: skip
        found[name] = setup.task.intervals(part.examples, predictions)
    return found

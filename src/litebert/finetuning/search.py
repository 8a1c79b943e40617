"""`--search`: learning rates and poolings about a recipe, by successive halving within a budget.

OUT/search/         a folder a run, named by what it changes and its steps
OUT/search.json     what was tried, what each came to, what was chosen

All candidates are trained for a quarter of the steps, the better half again for twice as many, and
so on until one is left (Jamieson and Talwalkar 2016). The budget is a time (`5m`), or a number of
whole runs (`12`): two runs of half the steps count as one. A run that would exceed it is not begun,
and the best so far is taken. The recipe's own values are tried first.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from litebert.base.budget import parse_budget
from litebert.base.errors import SettingsError
from litebert.base.files import json_text, write_atomic
from litebert.finetuning.recipe import Recipe
from litebert.finetuning.recipe_rule import ENOUGH_DEV
from litebert.finetuning.runs import RunResult, RunSetup, run_seed
from litebert.model.folder import MODEL
from litebert.tasks.data import TaskData, hold_out
from litebert.tasks.registry import KINDS, build_task
from litebert.tasks.task import Form

SEARCH = "search"
FIRST_FRACTION = 0.25  # of the steps, in the first round
RATES = (1.0, 1 / 3, 3.0)  # times the recipe's
HELD_OUT = 1 / 3  # of all examples, to search by where the dev set is too small
SEED = 1

Changes = dict[str, Any]
POOLINGS: dict[Form, tuple[Changes, ...]] = {
    "text": ({"pooling": "mean"}, {"pooling": "first"}),
    "pair": (
        {"pooling": "mean", "bi_encoder": False}, {"pooling": "first", "bi_encoder": False},
        {"pooling": "mean", "bi_encoder": True},
    ),
}  # fmt: skip


@dataclass(frozen=True)
class SearchBudget:
    """A time in seconds, or a number of whole runs."""

    amount: float
    in_runs: bool

    def cost(self, result: RunResult, whole: int) -> float:
        """What a run has cost, of a recipe of so many steps."""
        return result.steps / whole if self.in_runs else result.seconds

    def estimate(self, steps: int, whole: int, spent: float, trained: int) -> float:
        """What a run of so many steps will cost, as those so far did; the first is not known."""
        if self.in_runs:
            return steps / whole
        return steps * spent / trained if trained else 0.0


@dataclass(frozen=True)
class Trial:
    """A candidate in a round, and what came of it."""

    changes: Changes
    steps: int
    score: float
    interval: list[float]
    collapsed: str | None


def parse_search(text: str) -> SearchBudget:
    """`5m`, or `12` for so many whole runs."""
    if text.isdecimal() and int(text) > 0:
        return SearchBudget(int(text), in_runs=True)
    try:
        budget = parse_budget(text)
    except SettingsError:
        budget = None
    if budget is None or budget.kind != "seconds":
        raise SettingsError(f"--search {text}: write a time (5m, 1h) or a number of runs (12)")
    return SearchBudget(budget.amount, in_runs=False)


def candidates(form: Form, recipe: Recipe) -> list[Changes]:
    """What is tried: the recipe itself first, and what differs from it in rate or pooling."""
    own = {name: getattr(recipe, name) for name in POOLINGS.get(form, ({},))[0]}
    poolings = [own, *(one for one in POOLINGS.get(form, ()) if one != own)]
    rates = [float(f"{recipe.learning_rate * factor:.2g}") for factor in RATES]
    return [{"learning_rate": rate, **pooling} for rate in rates for pooling in poolings]


def search_data(data: TaskData) -> TaskData:
    """The examples to search by: where dev is too small, a third of all is held out for it."""
    dev = next(iter(data.dev.values()))
    if len(dev) >= ENOUGH_DEV:
        return TaskData(data.settings, data.train, dict([next(iter(data.dev.items()))]))
    train, held = hold_out(KINDS[data.settings.kind], [*data.train, *dev], HELD_OUT)
    return TaskData(data.settings, train, {"search": held})


def search_recipe(
    setup_of: Callable[[Recipe, TaskData], RunSetup], recipe: Recipe, data: TaskData, out: Path,
    budget: SearchBudget,
) -> Recipe | None:  # fmt: skip
    """The recipe with the changes that came out best, or None where it was asked to stop."""
    halving = _Halving(setup_of, recipe, search_data(data), out, budget)
    form = build_task(data.settings).form(data.train)
    chosen = halving.run(candidates(form, recipe))
    if chosen is None:
        return None
    halving.write(chosen)
    return recipe.model_copy(update=chosen.changes)


class _Halving:
    """One call of `search_recipe`."""

    def __init__(
        self, setup_of: Callable[[Recipe, TaskData], RunSetup], recipe: Recipe, data: TaskData,
        out: Path, budget: SearchBudget,
    ) -> None:  # fmt: skip
        self.setup_of, self.recipe, self.data = setup_of, recipe, data
        self.out, self.budget = out, budget
        first = setup_of(recipe, data)
        self.say = first.callbacks.on_message
        self.whole = recipe.steps_of(first.steps_per_epoch)
        self.spent, self.trained = 0.0, 0
        self.trials: list[Trial] = []

    def run(self, left: Sequence[Changes]) -> Trial | None:
        """Round after round; the best of the last round that was begun."""
        fraction, best, dev = FIRST_FRACTION, None, next(iter(self.data.dev.values()))
        self.say(f"search: {len(left)} candidates, compared on {len(dev):,} examples")
        while True:
            trials = self._round(left, max(round(fraction * self.whole), 1))
            if trials is None:
                return None
            ranked = sorted(trials, key=lambda trial: -trial.score)  # stable: of ties the earlier
            best = ranked[0] if ranked else best
            assert best is not None, "the first run of all is always made"
            if len(trials) < len(left) or len(left) == 1:
                return best
            left = [trial.changes for trial in ranked[: (len(ranked) + 1) // 2]]
            fraction = min(2 * fraction, 1.0)

    def _round(self, left: Sequence[Changes], steps: int) -> list[Trial] | None:
        """As many candidates as the budget allows."""
        trials: list[Trial] = []
        for changes in left:
            more = self.budget.estimate(steps, self.whole, self.spent, self.trained)
            if self.trials and self.spent + more > self.budget.amount:
                break
            trial = self._try(changes, steps)
            if trial is None:
                return None
            trials.append(trial)
            self.trials.append(trial)
        return trials

    def _try(self, changes: Changes, steps: int) -> Trial | None:
        update = {**changes, "steps": steps, "evaluations": 1, "keep": "last"}
        recipe = self.recipe.model_copy(update=update)
        setup = self.setup_of(recipe, self.data)
        name = "-".join(f"{key}={value}" for key, value in {**changes, "steps": steps}.items())
        folder = self.out / SEARCH / name
        result = run_seed(setup, SEED, folder, recipe.learning_rate)
        if result is None:
            return None
        shutil.rmtree(folder / MODEL, ignore_errors=True)
        self.spent += self.budget.cost(result, self.whole)
        self.trained += result.steps
        metric = setup.task.settings.metrics[0]
        trial = Trial(
            changes, steps, result.value(metric), result.intervals.get(metric, []), result.collapsed
        )
        self.say(f"search: {_shown(changes)}, {steps:,} steps: {metric} {trial.score:.4f}")
        return trial

    def write(self, chosen: Trial) -> None:
        """Say and write what was chosen."""
        unit = "runs" if self.budget.in_runs else "seconds"
        spent = f"{self.spent:.1f} of {self.budget.amount:g} {unit}"
        self.say(f"search: chosen {_shown(chosen.changes)} ({spent})")
        content = {
            "spent": self.spent, "budget": asdict(self.budget), "chosen": asdict(chosen),
            "examples": {name: len(part) for name, part in self.data.dev.items()},
            "trials": [asdict(trial) for trial in self.trials],
        }  # fmt: skip
        write_atomic(self.out / f"{SEARCH}.json", json_text(content).encode())


def _shown(changes: Changes) -> str:
    return ", ".join(f"{name} {value}" for name, value in changes.items())

"""One fine-tuning run: one seed, one rate, from a pretrained encoder to the best look at dev.

OUT/metrics.jsonl   lines of training, and a look at dev now and then
OUT/checkpoints/    what a killed run continues from
OUT/model/          the best look's model
OUT/result.json     written last: scores, whether the run collapsed
"""

from __future__ import annotations

import math
import shutil
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from litebert.base.budget import Budget
from litebert.base.errors import DivergedError
from litebert.base.files import as_text, read_json, write_whole
from litebert.base.runtime import resolve_precision
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.presets.recipe import CheckpointSettings, EvaluationSettings
from litebert.tasks.base import KEY, Prediction, Scores, Task
from litebert.tasks.batching import Batches
from litebert.tasks.features import Features
from litebert.tasks.losses import loss_of
from litebert.tasks.predict import predict_examples
from litebert.tasks.recipe import Recipe
from litebert.text.tokenizer import Tokenizer
from litebert.train.checkpoint import Checkpoints, restore
from litebert.train.loop import Clock, Loop
from litebert.train.metrics import MetricsFile, Record, new_sums
from litebert.train.optimizer import build_optimizer
from litebert.train.parallel import Group
from litebert.train.step import Stepper
from litebert.train.watch import Watcher

METRICS, CHECKPOINTS, MODEL, RESULT = "metrics.jsonl", "checkpoints", "model", "result.json"
REMEMBERED = 10  # lines of metrics.jsonl, of about a hundred
THRESHOLD = "best_f1_thresh"
UNMOVED = 0.98  # a loss above this share of the level of guessing has not moved


@dataclass(frozen=True)
class Part:
    """Examples with their features."""

    examples: Sequence[Any]
    features: Features


@dataclass(frozen=True)
class Work:
    """What all seeds have in common."""

    task: Task
    recipe: Recipe
    tokenizer: Tokenizer
    train: Part
    dev: dict[str, Part]
    group: Group
    begin: Callable[[int], Model]  # the model before its first step, for a seed
    watcher: Watcher
    stopping: Callable[[], bool]


class _Losses(Watcher):
    """Passes on what it is told, and remembers the last losses of training."""

    def __init__(self, watcher: Watcher) -> None:
        self.begin, self.step, self.say = watcher.begin, watcher.step, watcher.say
        self.sample, self._record = watcher.sample, watcher.record
        self.last: deque[float] = deque(maxlen=REMEMBERED)

    def record(self, record: Record) -> None:
        """Keep a line's loss."""
        if record["kind"] == "train":
            self.last.extend(record["loss"].values())
        self._record(record)

    def mean(self) -> float:
        """Of the last lines."""
        return sum(self.last) / len(self.last) if self.last else math.nan


@dataclass
class Best:
    """The best look so far."""

    value: float = -math.inf
    scores: dict[str, Scores] = field(default_factory=dict)
    step: int = 0
    since: int = 0  # looks that were no better
    collapsed: bool = False


def fit(work: Work, seed: int, out: Path, rate: float) -> dict[str, Any] | None:
    """Fine-tune once; the result, or None where it was asked to stop."""
    if (out / RESULT).is_file():
        return read_json(out / RESULT)
    out.mkdir(parents=True, exist_ok=True)
    return _Fit(work, seed, out, rate).go()


class _Fit:
    """One call of `fit`."""

    def __init__(self, work: Work, seed: int, out: Path, rate: float) -> None:
        self.work, self.seed, self.out, self.rate = work, seed, out, rate
        self.model = work.begin(seed).to(work.group.device)
        self.learner = Learner(self.model, [loss_of(work.task)])
        self.batches = Batches(work.train.features.batch, work.recipe.batch, seed)
        self.best, self.enough, self.diverged = Best(), False, False
        self.checkpoints = Checkpoints(out / CHECKPOINTS, keep=1)
        self.losses = _Losses(work.watcher)

    def go(self) -> dict[str, Any] | None:
        """Train, look, keep the best, say what came of it."""
        loop = self._loop()
        self._begin(loop)
        try:
            finished = loop.run() or self.enough
        except DivergedError:
            finished = self.diverged = True
            self._look(loop)
        if not finished:
            return None
        result = {
            "seed": self.seed, "rate": self.rate, "scores": self.best.scores,
            "step": self.best.step, "steps": loop.step, "tokens": loop.tokens,
            "loss": self._last_loss(), "collapsed": self._why_collapsed(),
            "seconds": round(loop.clock.spent(), 3),
        }  # fmt: skip
        write_whole(self.out / RESULT, as_text(result).encode())
        shutil.rmtree(self.out / CHECKPOINTS, ignore_errors=True)
        return result

    def _loop(self) -> Loop:
        work, recipe = self.work, self.work.recipe
        optimizer = build_optimizer(self.learner, recipe.optimizer, recipe.layer_decay)
        found = self.checkpoints.last_good(work.watcher.say)
        state = None if found is None else restore(found, self.learner, optimizer)
        steps = recipe.steps or max(round((recipe.epochs or 1) * self.batches.per_epoch), 1)
        stepper = Stepper(
            self.learner, optimizer, work.group, clip=recipe.clip, at_once=recipe.at_once,
            seed=self.seed, precision=resolve_precision(recipe.precision, work.group.device),
        )  # fmt: skip
        loop = Loop(
            stepper=stepper, stream=self.batches, budget=Budget("steps", steps),
            schedule=recipe.schedule, peak=self.rate, sums=new_sums(self.learner.objectives),
            metrics=MetricsFile(self.out / METRICS, 0 if state is None else state["metrics"]),
            watcher=self.losses, evaluation=EvaluationSettings(every=1 / recipe.looks),
            checkpoint=CheckpointSettings(), log_every=max(steps // 100, 1),
            evaluate=lambda: self._look(loop),
            save=lambda now: self.checkpoints.save(
                now["step"], self.learner, optimizer, {**now, "best": vars(self.best)}
            ),
            stopping=lambda: self.enough or work.stopping(), closing=0.0, clock=Clock(),
        )  # fmt: skip
        if state is not None:
            self.best = Best(**state["best"])
            loop.restore(state)
        return loop

    def _begin(self, loop: Loop) -> None:
        task = self.work.task.settings
        self.work.watcher.begin(
            {
                "title": f"{task.name}, seed {self.seed}, rate {self.rate:g}",
                "parameters": sum(p.numel() for p in self.learner.parameters()),
                "budget": f"{loop.budget.amount:.0f}steps",
                "unigram": None, "ranks": 1, "step": loop.step, "held_out": True,
                "schedule": self.work.recipe.schedule, "out": str(self.out),
            }
        )  # fmt: skip

    def _look(self, loop: Loop) -> Record:
        """Scores on dev; the best model is kept."""
        work = self.work
        guesses = {
            name: predict_examples(
                work.task, self.model, part.examples, part.features,
                precision=work.recipe.precision, tokens=work.recipe.at_once,
            )
            for name, part in work.dev.items()
        }  # fmt: skip
        scores = {
            name: {
                metric: _number(value)
                for metric, value in work.task.score(work.dev[name].examples, guess).items()
            }
            for name, guess in guesses.items()
        }
        first = next(iter(scores.values()), {})
        value = first.get(work.task.settings.metrics[0], 0.0)
        if value > self.best.value:
            alike = any(_all_alike(guess) for guess in guesses.values())
            self.best = Best(value, scores, loop.step, 0, alike)
            self._keep(first.get(THRESHOLD))
        else:
            self.best.since += 1
        patience = work.recipe.patience
        self.enough |= patience is not None and self.best.since >= patience
        return {"loss": {}, "scores": scores}

    def _keep(self, threshold: float | None) -> None:
        """Save the model; with SQuAD 2.0 also where it holds answers back, the best on dev."""
        settings = self.work.task.settings.model_copy(update={"threshold": threshold})
        self.model.metadata[KEY] = settings.model_dump(mode="json", exclude_defaults=True)
        self.model.save(self.out / MODEL, overwrite=True, tokenizer=self.work.tokenizer)

    def _last_loss(self) -> float | None:
        """Of the last lines; None where it is no number."""
        loss = self.losses.mean()
        return loss if math.isfinite(loss) else None

    def _why_collapsed(self) -> str | None:
        """What is wrong with this run, if it has learned nothing."""
        level, loss = guessing_level(self.work.train.features, self.work.task), self.losses.mean()
        if self.diverged:
            return "its loss was no number any more"
        if self.best.collapsed:
            return "its best model gives every dev example the same answer"
        if level is not None and loss > UNMOVED * level:
            return f"its training loss of {loss:.3f} is that of guessing ({level:.3f})"
        return None


def _number(value: float) -> float:
    """A score as it can be compared and written. What is no number is 0; `_all_alike` finds it."""
    return float(value) if math.isfinite(value) else 0.0


def _all_alike(guesses: Sequence[Prediction]) -> bool:
    """Whether every example was given the same answer, or none that is a number."""
    if len(guesses) < 2:
        return False
    if "value" in guesses[0]:
        values = [guess["value"] for guess in guesses]
        spread = float(np.std(values))
        return not math.isfinite(spread) or spread < 1e-3 * (1 + abs(float(np.mean(values))))
    if "tags" in guesses[0]:
        return len({tag for guess in guesses for tag in guess["tags"]}) < 2
    key = next(name for name in ("label", "choice", "text") if name in guesses[0])
    return len({guess[key] for guess in guesses}) < 2


def guessing_level(features: Features, task: Task) -> float | None:
    """The loss of one who knows only how often each answer occurs; None for spans."""
    batch, kind = features.batch, task.settings.kind
    labels = batch.labels[:: batch.together]
    match kind:
        case "tag":
            return _entropy(batch.targets)
        case "choice":
            return math.log(batch.together)
        case "regress":
            return float(np.var(labels))
        case "qa":
            return None
        case _:
            return _entropy(labels)


def _entropy(labels: np.ndarray) -> float:
    shares = np.unique(labels, return_counts=True)[1] / max(len(labels), 1)
    return float(-(shares * np.log(shares)).sum())

"""One fine-tuning run: one seed, one learning rate, from a pretrained encoder to the best model.

OUT/metrics.jsonl   lines of training, and an evaluation on dev now and then
OUT/checkpoints/    what a killed run continues from
OUT/model/          the best evaluation's model
OUT/result.json     written last: scores, whether the run collapsed
"""

from __future__ import annotations

import math
import os
import shutil
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from litebert.base.budget import Budget
from litebert.base.errors import DivergedError, FormatError
from litebert.base.files import json_text, read_json, sweep, write_atomic
from litebert.base.runtime import resolve_precision
from litebert.base.settings import load_record
from litebert.configs.schema import CheckpointSettings, EvaluationSettings
from litebert.finetuning.batches import Batches
from litebert.finetuning.recipe import Recipe
from litebert.inference.run import predict_examples
from litebert.model.folder import MODEL
from litebert.model.heads import HEADS
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.tasks.features import Features
from litebert.tasks.task import TASK_KEY, Scores, Task
from litebert.text.tokenizer import Tokenizer
from litebert.train.callbacks import Callback, CallbackList, RunStarted
from litebert.train.checkpoint import Checkpoints, restore
from litebert.train.distributed import DistributedGroup
from litebert.train.loop import TrainingLoop
from litebert.train.metrics import METRICS, Evaluation, MetricsFile, TrainingMetrics
from litebert.train.optimizer import build_optimizer
from litebert.train.run_folder import CHECKPOINTS
from litebert.train.step import TrainingStep

RESULT = "result.json"
REMEMBERED = 10  # lines of metrics.jsonl, of about a hundred
Score = Annotated[float, Field(ge=-1e6, le=1e6)]  # as a file may have it: finite, and no more
UNMOVED = 0.98  # a loss above this fraction of that of chance has not moved


@dataclass(frozen=True)
class FeaturedExamples:
    """Examples with their features."""

    examples: Sequence[Any]
    features: Features


@dataclass(frozen=True)
class RunSetup:
    """What all seeds have in common."""

    start: Model  # whose encoder is fine-tuned
    task: Task
    recipe: Recipe
    tokenizer: Tokenizer
    train: FeaturedExamples
    dev: dict[str, FeaturedExamples]
    group: DistributedGroup = field(default_factory=DistributedGroup)
    callbacks: Callback = field(default_factory=Callback)
    should_stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class RunResult:
    """What came of one run."""

    seed: int
    learning_rate: float
    scores: dict[str, dict[str, Score]]  # by dev set, at the best evaluation
    step: int  # of the best evaluation
    steps: int
    tokens: int
    loss: float | None  # of the last steps; None where it is not finite
    collapsed: str | None  # why the run has learned nothing, if it has not
    seconds: float

    def value(self, metric: str) -> float:
        """A score on the first dev set."""
        return next(iter(self.scores.values()))[metric]


def run_seed(setup: RunSetup, seed: int, out: Path, learning_rate: float) -> RunResult | None:
    """Fine-tune once; the result, or None where it was asked to stop."""
    if os.path.lexists(out / RESULT):
        return read_result(out, setup.task.settings.metrics[0])
    out.mkdir(parents=True, exist_ok=True)
    for folder in (out, out / CHECKPOINTS):
        sweep(folder)
    return _Run(setup, seed, out, learning_rate).go()


def read_result(out: Path, metric: str) -> RunResult:
    """The result of a finished run, which has a score of the metric that chooses."""
    path = out / RESULT
    result = load_record(RunResult, read_json(path), str(path))
    if metric not in next(iter(result.scores.values()), {}):
        raise FormatError(f"{path}: has no {metric}; damaged: remove {out} to run it again")
    return result


def new_model(start: Model, task: Task, recipe: Recipe, seed: int) -> Model:
    """A copy of an encoder with a new head, and the pooler that it had if the head needs one."""
    dropout = {"classifier_dropout_prob": recipe.classifier_dropout}
    if recipe.dropout is not None:
        names = ("hidden_dropout_prob", "attention_probs_dropout_prob")
        dropout |= dict.fromkeys(names, recipe.dropout)
    config = start.config.model_copy(update=dropout)
    model = Model.create(config, (task.head,), task.settings.labels or ("LABEL_0",), seed)
    kept = ("encoder.", "pooler.") if HEADS[task.head].needs_pooler else ("encoder.",)
    tensors = {name: x for name, x in start.state_dict().items() if name.startswith(kept)}
    model.load_state_dict(tensors, strict=False)
    return model


class _RecentLosses(Callback):
    """Remembers the last losses of training."""

    def __init__(self) -> None:
        self.last: deque[float] = deque(maxlen=REMEMBERED)

    def on_training(self, metrics: TrainingMetrics) -> None:
        self.last.extend(math.nan if loss is None else loss for loss in metrics.loss.values())

    def mean(self) -> float:
        return sum(self.last) / len(self.last) if self.last else math.nan


@dataclass
class _Best:
    """The best evaluation so far."""

    value: float = -math.inf
    scores: dict[str, Scores] = field(default_factory=dict)
    step: int = 0
    since: int = 0  # evaluations that were no better
    all_alike: bool = False


class _Run:
    """One call of `run_seed`."""

    def __init__(self, setup: RunSetup, seed: int, out: Path, learning_rate: float) -> None:
        self.setup, self.seed, self.out, self.learning_rate = setup, seed, out, learning_rate
        self.model = new_model(setup.start, setup.task, setup.recipe, seed).to(setup.group.device)
        self.learner = Learner(self.model, [setup.task])
        self.batches = Batches(setup.train.features.batch, setup.recipe.batch_size, seed)
        self.best, self.enough, self.diverged = _Best(), False, False
        self.checkpoints = Checkpoints(out / CHECKPOINTS, keep=1)
        self.losses = _RecentLosses()

    def go(self) -> RunResult | None:
        """Train, evaluate, keep the best, say what came of it."""
        loop = self._loop()
        self._announce(loop)
        try:
            finished = loop.run() or self.enough
        except DivergedError:
            finished = self.diverged = True
            self._evaluate(loop)
        if not finished:
            return None
        loss = self.losses.mean()
        result = RunResult(
            seed=self.seed, learning_rate=self.learning_rate, scores=self.best.scores,
            step=self.best.step, steps=loop.step, tokens=loop.tokens,
            loss=loss if math.isfinite(loss) else None, collapsed=self._why_collapsed(loss),
            seconds=round(loop.clock.seconds(), 3),
        )  # fmt: skip
        write_atomic(self.out / RESULT, json_text(asdict(result)).encode())
        shutil.rmtree(self.out / CHECKPOINTS, ignore_errors=True)
        return result

    def _loop(self) -> TrainingLoop:
        setup, recipe = self.setup, self.setup.recipe
        optimizer = build_optimizer(self.learner, recipe.optimizer, recipe.layerwise_lr_decay)
        found = self.checkpoints.last_good(setup.callbacks.on_message)
        state = None if found is None else restore(found, self.learner, optimizer)
        steps = recipe.steps or max(round((recipe.epochs or 1) * self.batches.per_epoch), 1)
        loop = TrainingLoop(
            training_step=TrainingStep(
                self.learner, optimizer, setup.group, gradient_clipping=recipe.gradient_clipping,
                micro_batch_tokens=recipe.micro_batch_tokens, seed=self.seed,
                precision=resolve_precision(recipe.precision, setup.group.device),
            ),
            batches=self.batches,
            budget=Budget("steps", steps),
            schedule=recipe.schedule,
            peak_learning_rate=self.learning_rate,
            metrics=MetricsFile(self.out / METRICS, 0 if state is None else state["metrics"]),
            callbacks=CallbackList([setup.callbacks, self.losses]),
            evaluation=EvaluationSettings(every=1 / recipe.evaluations),
            checkpoint=CheckpointSettings(),
            log_every=max(steps // 100, 1),
            evaluate=lambda: self._evaluate(loop),
            save=lambda now: self.checkpoints.save(
                now["step"], self.learner, optimizer, {**now, "best": vars(self.best)}
            ),
            should_stop=lambda: self.enough or setup.should_stop(),
        )  # fmt: skip
        if state is not None:
            self.best = load_record(_Best, state.get("best"), f"{found}: best")
            loop.restore(state)
        return loop

    def _announce(self, loop: TrainingLoop) -> None:
        name = self.setup.task.settings.name
        self.setup.callbacks.on_start(
            RunStarted(
                title=f"{name}, seed {self.seed}, learning rate {self.learning_rate:g}",
                folder=self.out,
                parameters=sum(parameter.numel() for parameter in self.learner.parameters()),
                budget=f"{loop.budget.amount:.0f}steps",
                warmup=self.setup.recipe.warmup,
                step=loop.step,
            )
        )

    def _evaluate(self, loop: TrainingLoop) -> Evaluation:
        """Scores on dev; the best model is kept."""
        task, recipe = self.setup.task, self.setup.recipe
        scores: dict[str, Scores] = {}
        all_alike = False
        for name, part in self.setup.dev.items():
            predictions = predict_examples(
                task, self.model, part.examples, part.features,
                precision=recipe.precision, max_tokens=recipe.micro_batch_tokens,
            )  # fmt: skip
            found = task.score(part.examples, predictions)
            scores[name] = {metric: _finite(value) for metric, value in found.items()}
            all_alike |= len(predictions) > 1 and task.all_alike(predictions)
        first = next(iter(scores.values()), {})
        value = first.get(task.settings.metrics[0], 0.0)
        if value > self.best.value:
            self.best = _Best(value, scores, loop.step, 0, all_alike)
            self._keep(first)
        else:
            self.best.since += 1
        self.enough |= recipe.patience is not None and self.best.since >= recipe.patience
        return Evaluation(scores=scores)

    def _keep(self, scores: Scores) -> None:
        settings = self.setup.task.calibrated(scores).model_dump(mode="json", exclude_defaults=True)
        self.model.metadata[TASK_KEY] = settings
        self.model.save(self.out / MODEL, overwrite=True, tokenizer=self.setup.tokenizer)

    def _why_collapsed(self, loss: float) -> str | None:
        """What is wrong with this run, if it has learned nothing."""
        chance = self.setup.task.chance_loss(self.setup.train.features)
        if self.diverged:
            return "its loss was not finite any more"
        if self.best.all_alike:
            return "its best model gives every dev example the same answer"
        if chance is not None and loss > UNMOVED * chance:
            return f"its training loss of {loss:.3f} is that of chance ({chance:.3f})"
        return None


def _finite(value: float) -> float:
    """A score as it can be compared and written; NaN is 0, and `all_alike` finds it."""
    return float(value) if math.isfinite(value) else 0.0

"""One fine-tuning run: one seed, one learning rate, from a pretrained encoder to the best model.

OUT/metrics.jsonl   lines of training, and an evaluation on dev now and then
OUT/checkpoints/    what a killed run continues from
OUT/model/          the model of the evaluation that is kept: the best one's, or the last one's
OUT/result.json     written last: scores, whether the run collapsed
"""

from __future__ import annotations

import math
import os
import shutil
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from litebert.base.budget import Budget
from litebert.base.errors import DivergedError, FormatError
from litebert.base.files import json_text, read_json, sweep, write_atomic
from litebert.base.intervals import Interval
from litebert.base.runtime import resolve_precision
from litebert.base.settings import load_record
from litebert.configs.schema import CheckpointSettings, EvaluationSettings
from litebert.finetuning.batches import Batches
from litebert.finetuning.contrastive import ContrastiveBatches, ContrastivePairs
from litebert.finetuning.doubts import why_doubtful, why_nothing
from litebert.finetuning.exits import ExitLearner
from litebert.finetuning.linear_probe import fit_head
from litebert.finetuning.recipe import Recipe
from litebert.finetuning.soft_labels import SoftLabels, TaughtExamples
from litebert.inference.calibrate import calibrate
from litebert.inference.exits import write_calibration
from litebert.inference.run import predict_examples
from litebert.model.folder import MODEL
from litebert.model.heads import HEADS
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.tasks.features import Features
from litebert.tasks.task import TASK_KEY, Scores, Task
from litebert.text.tokenizer import Tokenizer
from litebert.train.callbacks import Callback, CallbackList, RunStarted
from litebert.train.checkpoint import Checkpoints, restore_everywhere
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
    taught: TaughtExamples | None = None  # the examples of `train` and others, by a teacher

    @property
    def training(self) -> Features:
        """What is learned from: the examples, and with a teacher those without labels too."""
        return self.train.features if self.taught is None else self.taught.features

    @property
    def first_dev(self) -> FeaturedExamples:
        """The dev set that chooses."""
        return next(iter(self.dev.values()))

    @property
    def steps_per_epoch(self) -> int:
        """Batches of an epoch."""
        return -(-len(self.training.batch.group_lengths) // self.recipe.batch_size)


@dataclass(frozen=True)
class RunResult:
    """What came of one run."""

    seed: int
    learning_rate: float
    scores: dict[str, dict[str, Score]]  # by dev set, at the evaluation that is kept
    intervals: dict[str, list[float]]  # 95 %, over the first dev set's examples, by metric
    step: int  # of the evaluation that is kept
    steps: int
    tokens: int
    loss: float | None  # of the last steps; None where it is not finite
    collapsed: str | None  # why the run has learned nothing, if it has not
    doubt: str | None  # why it may not have, where the dev set cannot tell
    seconds: float

    def value(self, metric: str) -> float:
        """A score on the first dev set."""
        return next(iter(self.scores.values()))[metric]


def run_seed(setup: RunSetup, seed: int, out: Path, learning_rate: float) -> RunResult | None:
    """Fine-tune once; the result, or None where it was asked to stop."""
    if setup.group.broadcast_object(os.path.lexists(out / RESULT)):
        return _finished_before(setup, out)
    out.mkdir(parents=True, exist_ok=True)
    for folder in (out, out / CHECKPOINTS):
        sweep(folder)
    return _Run(setup, seed, out, learning_rate).go()


def _finished_before(setup: RunSetup, out: Path) -> RunResult:
    """A result that the main rank has, on all ranks."""
    found = None
    if setup.group.is_main:
        found = asdict(read_result(out, setup.task.settings.metrics[0]))
    return load_record(RunResult, setup.group.broadcast_object(found), str(out / RESULT))


def read_result(out: Path, metric: str) -> RunResult:
    """The result of a finished run, which has a score of the metric that chooses."""
    path = out / RESULT
    result = load_record(RunResult, read_json(path), str(path))
    if metric not in next(iter(result.scores.values()), {}):
        raise FormatError(f"{path}: has no {metric}; damaged: remove {out} to run it again")
    return result


def new_model(start: Model, task: Task, recipe: Recipe, seed: int) -> Model:
    """A copy of an encoder with a new head, and the pooler that it had if the head needs one."""
    attention = recipe.dropout if recipe.attention_dropout is None else recipe.attention_dropout
    dropout = {
        "hidden_dropout_prob": recipe.dropout,
        "attention_probs_dropout_prob": attention,
        "classifier_dropout_prob": recipe.classifier_dropout,
    }
    given = {name: value for name, value in dropout.items() if value is not None}
    config = start.config.model_copy(update=given)
    model = Model.create(config, task.heads, task.settings.labels or ("LABEL_0",), seed)
    kept = ("encoder.", "pooler.") if HEADS[task.head].needs_pooler else ("encoder.",)
    tensors = {name: x for name, x in start.state_dict().items() if name.startswith(kept)}
    model.load_state_dict(tensors, strict=False)
    model.sentence_encoder = task.sentence_encoder
    return model


class _RecentLosses(Callback):
    """Remembers the last losses of training."""

    def __init__(self) -> None:
        self.last: deque[float] = deque(maxlen=REMEMBERED)

    def on_training(self, metrics: TrainingMetrics) -> None:
        losses = list(metrics.loss.values())[:1]  # the task's own, before a teacher's
        self.last.extend(math.nan if loss is None else loss for loss in losses)

    def mean(self) -> float:
        return sum(self.last) / len(self.last) if self.last else math.nan


@dataclass
class _Kept:
    """The evaluation that is kept so far, and how good the best one was."""

    best: float = -math.inf
    since: int = 0  # evaluations that were no better
    scores: dict[str, Scores] = field(default_factory=dict)
    intervals: dict[str, list[float]] = field(default_factory=dict)
    step: int = 0
    all_alike: bool = False


class _Run:
    """One call of `run_seed`."""

    def __init__(self, setup: RunSetup, seed: int, out: Path, learning_rate: float) -> None:
        self.setup, self.seed, self.out, self.learning_rate = setup, seed, out, learning_rate
        self.model = new_model(setup.start, setup.task, setup.recipe, seed).to(setup.group.device)
        recipe, batch, group = setup.recipe, setup.training.batch, setup.group
        self.batches: Batches | ContrastiveBatches = Batches(
            batch, recipe.batch_size, seed, group.rank, group.world_size
        )
        self.learner = Learner(self.model, [setup.task])
        if setup.taught is not None:
            soft_labels = SoftLabels(setup.task, setup.taught.rows, recipe)
            self.learner = Learner(self.model, [setup.task, soft_labels])
        elif recipe.contrastive:
            self.batches = ContrastiveBatches(batch, recipe.batch_size, seed)
            self.learner = Learner(self.model, [ContrastivePairs()])
            self.model.heads.requires_grad_(False)
        elif setup.task.settings.exits:
            self.learner = ExitLearner(self.model, setup.task)
        self.kept, self.enough, self.diverged = _Kept(), False, False
        self.checkpoints = Checkpoints(out / CHECKPOINTS, keep=1)
        self.losses = _RecentLosses()

    def go(self) -> RunResult | None:
        """Train, evaluate, keep the best, say what came of it."""
        loop = self._loop()
        self._announce(loop)
        if self.setup.recipe.probe_first and loop.step == 0:
            self._fit_head()
        try:
            finished = self._probe(loop) if self.setup.recipe.freeze else loop.run() or self.enough
        except DivergedError:
            finished = self.diverged = True
            self._evaluate(loop)
        if not finished:
            return None
        if self.setup.task.settings.exits and self.kept.scores:
            self._calibrate()
        loss, kept = self.losses.mean(), self.kept
        result = RunResult(
            seed=self.seed, learning_rate=self.learning_rate, scores=kept.scores,
            intervals=kept.intervals, step=kept.step, steps=loop.step, tokens=loop.tokens,
            loss=loss if math.isfinite(loss) else None, collapsed=self._why_collapsed(loss),
            doubt=self._doubt(), seconds=round(loop.clock.seconds(), 3),
        )  # fmt: skip
        write_atomic(self.out / RESULT, json_text(asdict(result)).encode())
        shutil.rmtree(self.out / CHECKPOINTS, ignore_errors=True)
        return result

    def _probe(self, loop: TrainingLoop) -> bool:
        """A frozen encoder: no step, and an evaluation fits the head."""
        loop.evaluate_now()
        return True

    def _fit_head(self) -> None:
        recipe = self.setup.recipe
        fit_head(
            self.setup.task, self.model, self.setup.train.features,
            precision=recipe.precision, max_tokens=recipe.micro_batch_tokens,
        )  # fmt: skip

    def _loop(self) -> TrainingLoop:
        setup, recipe = self.setup, self.setup.recipe
        optimizer = build_optimizer(self.learner, recipe.optimizer, recipe.layerwise_lr_decay)
        found = self.checkpoints.last_good(setup.callbacks.on_message)
        state = restore_everywhere(setup.group, found, self.learner, optimizer)
        steps = recipe.steps_of(self.batches.per_epoch)
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
                now["step"], self.learner, optimizer, {**now, "kept": vars(self.kept)}
            ),
            should_stop=lambda: self.enough or setup.should_stop(),
        )  # fmt: skip
        if state is not None:
            self.kept = load_record(_Kept, state.get("kept"), f"{found}: kept")
            loop.restore(state)
        return loop

    def _announce(self, loop: TrainingLoop) -> None:
        name, recipe = self.setup.task.settings.name, self.setup.recipe
        self.setup.callbacks.on_start(
            RunStarted(
                title=f"{name}, {self._way()}",
                folder=self.out,
                parameters=sum(parameter.numel() for parameter in self.learner.parameters()),
                budget="no steps" if recipe.freeze else f"{loop.budget.amount:.0f}steps",
                warmup=recipe.warmup,
                step=loop.step,
            )
        )

    def _way(self) -> str:
        if self.setup.recipe.freeze:
            return "linear probe on the frozen encoder"
        contrastive = "contrastive pairs, " if self.setup.recipe.contrastive else ""
        return f"{contrastive}seed {self.seed}, learning rate {self.learning_rate:g}"

    def _evaluate(self, loop: TrainingLoop) -> Evaluation:
        """Scores on dev; the best model is kept, or the last."""
        if self.setup.recipe.fits_head:
            self._fit_head()
        with self.setup.task.own_units(self.model):
            return self._evaluate_now(loop)

    def _evaluate_now(self, loop: TrainingLoop) -> Evaluation:
        task, recipe = self.setup.task, self.setup.recipe
        scores: dict[str, Scores] = {}
        answers: list[list[Any]] = []
        all_alike = False
        for name, part in self.setup.dev.items():
            predictions = predict_examples(
                task, self.model, part.examples, part.features,
                precision=recipe.precision, max_tokens=recipe.micro_batch_tokens,
            )  # fmt: skip
            found = task.score(part.examples, predictions)
            scores[name] = {metric: _finite(value) for metric, value in found.items()}
            all_alike |= len(predictions) > 1 and task.all_alike(predictions)
            answers.append(predictions)
        first = next(iter(scores.values()), {})
        value, before = first.get(task.settings.metrics[0], 0.0), self.kept
        best = max(value, before.best)
        since = 0 if value > before.best else before.since + 1
        if recipe.keep == "last" or value >= before.best:
            ends = _ends(task.intervals(self.setup.first_dev.examples, answers[0]))
            self.kept = _Kept(best, since, scores, ends, loop.step, all_alike)
            self._keep(first)
        else:
            self.kept = replace(before, since=since)
        self.enough |= recipe.patience is not None and since >= recipe.patience
        return Evaluation(scores=scores)

    def _keep(self, scores: Scores) -> None:
        settings = self.setup.task.calibrated(scores).model_dump(mode="json", exclude_defaults=True)
        self.model.metadata[TASK_KEY] = settings
        self.model.save(self.out / MODEL, overwrite=True, tokenizer=self.setup.tokenizer)

    def _calibrate(self) -> None:
        """What exit rules cost the best model on the first dev set goes into its folder."""
        task, dev = self.setup.task, self.setup.first_dev
        model = Model.load(self.out / MODEL).to(self.setup.group.device)
        precision = self.setup.recipe.precision
        found = calibrate(task, model, dev.examples, dev.features, precision=precision)
        write_calibration(model, found)
        model.save(self.out / MODEL, overwrite=True, tokenizer=self.setup.tokenizer)

    def _why_collapsed(self, loss: float) -> str | None:
        """What is wrong with this run, if it has learned nothing."""
        chance = self.setup.task.chance_loss(self.setup.train.features)
        if self.diverged or not self.kept.scores:
            return "its loss was not finite any more"
        if self.kept.all_alike:
            return "its best model gives every dev example the same answer"
        fitted = self.setup.recipe.fits_head  # the loss is not the head's
        if chance is not None and not fitted and loss > UNMOVED * chance:
            return f"its training loss of {loss:.3f} is that of chance ({chance:.3f})"
        dev = len(self.setup.first_dev.examples)
        return why_nothing(self.setup.task, self._scores(), self._trivial, dev)

    def _doubt(self) -> str | None:
        if not self.kept.scores:
            return None
        return why_doubtful(self.setup.task, self._scores(), self.kept.intervals, self._trivial)

    def _scores(self) -> Scores:
        return next(iter(self.kept.scores.values()))

    @cached_property
    def _trivial(self) -> Scores:
        """The scores of the trivial answer on the first dev set."""
        task, dev = self.setup.task, self.setup.first_dev.examples
        return task.score(dev, task.trivial(self.setup.train.examples, dev))


def _ends(intervals: dict[str, Interval]) -> dict[str, list[float]]:
    return {name: [_finite(one.low), _finite(one.high)] for name, one in intervals.items()}


def _finite(value: float) -> float:
    """A score as it can be compared and written; NaN is 0, and `all_alike` finds it."""
    return float(value) if math.isfinite(value) else 0.0

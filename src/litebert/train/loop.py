"""The one loop: batches in, steps, and now and then a metrics line, an evaluation, a checkpoint.

Everything that decides the result (step, tokens, sums, position) is in `state()`, so a run that is
killed and resumed makes the same steps as one that is not. What only concerns time (progress under
a budget of hours, when to save) is decided by the main rank and told to the others with the counts
of each step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from litebert.base.batches import Batch
from litebert.base.budget import Budget
from litebert.base.errors import DivergedError, FormatError, SettingsError
from litebert.base.runtime import settled_objects
from litebert.configs.schema import CheckpointSettings, EvaluationSettings, ScheduleSettings
from litebert.train.callbacks import Callback
from litebert.train.metrics import (
    Evaluation,
    EvaluationMetrics,
    EvaluationTime,
    MetricsFile,
    StepTime,
    Sums,
    TrainingMetrics,
    finite,
)
from litebert.train.schedule import learning_rate_at
from litebert.train.step import StepResult, TrainingStep

MAX_SKIPPED = 5  # steps in a row that were not finite
SAVE_EVERY = 180.0  # seconds, where no number of steps is given
EVALUATION_COST = 10  # under a budget of time an evaluation waits for so many times its duration


class BatchSource(Protocol):
    """Where batches come from."""

    def next(self, progress: float) -> tuple[Batch, int | None]:
        """The next batch when a fraction of the budget is spent, and the depth to run it at."""
        ...

    def state(self) -> dict[str, Any]:
        """The position, for a checkpoint."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        ...


@dataclass
class Clock:
    """Seconds of a run: in this process, and before it was resumed."""

    before: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def seconds(self) -> float:
        return self.before + time.monotonic() - self.started


@dataclass
class TrainingLoop:
    """A run under way. `evaluate` and `save` are what it does at the given times."""

    training_step: TrainingStep
    batches: BatchSource
    budget: Budget
    schedule: ScheduleSettings
    peak_learning_rate: float
    metrics: MetricsFile
    callbacks: Callback
    evaluation: EvaluationSettings
    checkpoint: CheckpointSettings
    log_every: int
    evaluate: Callable[[], Evaluation]
    save: Callable[[dict[str, Any]], None]
    should_stop: Callable[[], bool]
    reserved: float = 0.0  # seconds that the end of the run will take, as far as is known
    clock: Clock = field(default_factory=Clock)
    step: int = 0
    tokens: int = 0
    skipped: int = 0  # steps in a row that were not applied
    time_fraction: float = 0.0  # of the budget, where it is time

    def __post_init__(self) -> None:
        self.group = self.training_step.group
        self.sums: Sums = self.training_step.sums.empty()
        self._reset_speed()
        self._saved = self._evaluated = time.monotonic()
        self._saved_step = -1
        self._evaluation_cost = self._step_cost = 0.0  # seconds of the last ones

    def start_clock(self) -> None:
        """See how much of a budget of time is spent already; refuse one that leaves no step."""
        self.time_fraction = self.group.broadcast_object(self._fraction_of_time(0.0))
        if self.step == 0 and self.time_fraction >= 1:
            raise SettingsError(
                f"a budget of {self.budget.amount:.0f} s is too short: "
                f"{self.clock.seconds():.1f} s went into starting and {self.reserved:.1f} s are "
                "reserved for saving; give it more"
            )

    def run(self) -> bool:
        """Train until the budget is spent, or until asked to stop; says whether it is spent."""
        with settled_objects():
            while (progress := self.progress()) < 1:
                if self._advance(progress):
                    break
        self._save()
        return self.progress() >= 1

    def progress(self) -> float:
        """The fraction of the budget that is spent."""
        match self.budget.kind:
            case "steps":
                return self.step / self.budget.amount
            case "tokens":
                return self.tokens / self.budget.amount
            case _:
                return self.time_fraction

    def _advance(self, progress: float) -> bool:
        """One step and what follows it; says whether a rank was asked to stop."""
        started = time.monotonic()
        batch, depth = self.batches.next(progress)
        loaded = time.monotonic()
        learning_rate = learning_rate_at(self.schedule, self.peak_learning_rate, progress)
        fraction = self._fraction_of_time(self._step_cost) if self.group.is_main else 0.0
        scalars = [float(len(batch.ids)), float(self.should_stop()), fraction]
        result = self.training_step(batch, self.step, learning_rate, depth, scalars)
        tokens, stop, self.time_fraction = result.scalars
        self._step_cost = time.monotonic() - started
        self.step += 1
        self.tokens += int(tokens)
        self._check(result)
        self._data_seconds += loaded - started
        self._log(result, learning_rate)
        self._evaluate_and_save(progress)
        return stop > 0

    def _check(self, result: StepResult) -> None:
        self.skipped = 0 if result.applied else self.skipped + 1
        if result.applied:
            self.sums.add(result.sums.counts, result.sums.values)
            return
        self.callbacks.on_message(
            f"warning: step {self.step}: loss or gradient is not finite; the step is not applied "
            f"({self.skipped} in a row, stops at {MAX_SKIPPED})"
        )
        if self.skipped >= MAX_SKIPPED:
            raise DivergedError(
                f"step {self.step}: the loss has not been finite for {MAX_SKIPPED} steps; the last "
                "checkpoint stays. Lower the learning rate (--set optimizer.learning_rate=…), "
                "lengthen the warmup (--set schedule.warmup=…), or use --set precision=fp32"
            )

    def _log(self, result: StepResult, learning_rate: float) -> None:
        self.callbacks.on_step(self.step, self.progress())
        if self.step % self.log_every:
            return
        seconds = time.monotonic() - self._logged
        metrics = TrainingMetrics(
            step=self.step,
            tokens=self.tokens,
            learning_rate=learning_rate,
            gradient_norm=finite(result.gradient_norm),
            time=StepTime(
                seconds=round(self.clock.seconds(), 3),
                progress=round(self.progress(), 6),
                tokens_per_second=round((self.tokens - self._logged_tokens) / seconds, 1),
                data_fraction=round(self._data_seconds / seconds, 5),
            ),
            **dict(self.sums.means()),
        )
        self.sums = self.sums.empty()
        self._reset_speed()
        self.metrics.write(metrics)
        self.callbacks.on_training(metrics)

    def _reset_speed(self) -> None:
        self._logged, self._logged_tokens, self._data_seconds = time.monotonic(), self.tokens, 0.0

    def _evaluate_and_save(self, before: float) -> None:
        after, every = self.progress(), self.evaluation.every
        due = _evaluations(after, every) > _evaluations(before, every)
        if (due and self.group.broadcast_object(self._can_afford_evaluation())) or after >= 1:
            self.evaluate_now()
        steps = self.checkpoint.every
        late = time.monotonic() - self._saved > SAVE_EVERY
        if after < 1 and (late if steps is None else self.step % steps == 0):
            self._save()

    def _can_afford_evaluation(self) -> bool:
        waited = time.monotonic() - self._evaluated
        return self.budget.kind != "seconds" or waited > EVALUATION_COST * self._evaluation_cost

    def evaluate_now(self) -> None:
        """Evaluate, write it down and tell of it."""
        started = time.monotonic()
        found = self.evaluate()
        took = time.monotonic() - started
        self.reserved += took - self._evaluation_cost
        self._evaluation_cost, self._evaluated = took, time.monotonic()
        metrics = EvaluationMetrics(
            step=self.step,
            tokens=self.tokens,
            time=EvaluationTime(seconds=round(self.clock.seconds(), 3)),
            **dict(found),
        )
        self.metrics.write(metrics)
        self.callbacks.on_evaluation(metrics)
        self._logged += took  # not part of the speed of training

    def _save(self) -> None:
        started = time.monotonic()
        if self.group.is_main and self._saved_step != self.step:
            self.save(self.state())
        self._saved_step = self.step
        self._saved = time.monotonic()
        self._logged += self._saved - started

    def _fraction_of_time(self, step_seconds: float) -> float:
        """How much of a budget of time is spent, if one more step is to fit before its end."""
        if self.budget.kind != "seconds":
            return 0.0
        room = self.budget.amount - self.reserved - step_seconds
        return self.clock.seconds() / room if room > 0 else 1.0

    def state(self) -> dict[str, Any]:
        """All that decides how the run goes on, beside weights and moments."""
        return {
            "step": self.step,
            "tokens": self.tokens,
            "skipped": self.skipped,
            "seconds": self.clock.seconds(),
            "batches": self.batches.state(),
            "sums": {"counts": self.sums.counts, "values": self.sums.values},
            "metrics": self.metrics.size(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.step, self.tokens = state["step"], state["tokens"]
        self.skipped = state["skipped"]
        self.clock.before = state["seconds"]
        self._saved_step = self.step
        self.batches.restore(state["batches"])
        saved = Sums(self.sums.counters, **state["sums"])
        if (len(saved.counts), len(saved.values)) != (len(saved.counters), saved.width):
            raise FormatError("checkpoint: its sums are not those of this run's objectives")
        self.sums = saved
        self._reset_speed()


def _evaluations(progress: float, every: float) -> int:
    """How many evaluations are due by now."""
    return int(progress / every + 1e-9)

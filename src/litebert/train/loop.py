"""The one loop: batches in, steps, and now and then a line, a look at held-out text, a checkpoint.

Everything that decides the result (step, tokens, sums, position) is in `state()`, so a run that is
killed and resumed makes the same steps as one that is not. What only concerns time (progress under
a budget of hours, when to save) is decided by the leading rank and told to the others with the
counts of each step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from litebert.base.batch import Batch
from litebert.base.budget import Budget
from litebert.base.errors import DivergedError, SettingsError
from litebert.presets.recipe import CheckpointSettings, EvaluationSettings, ScheduleSettings
from litebert.train.metrics import MetricsFile, Record, Sums
from litebert.train.schedule import rate_at
from litebert.train.step import Outcome, Stepper
from litebert.train.watch import Watcher

MOST_SKIPPED = 5  # steps in a row that were not finite
SAVE_EVERY = 180.0  # seconds, where no number of steps is given
EVALUATION_COST = 10  # under a budget of time a look waits for so many times its own duration


class Source(Protocol):
    """Where batches come from."""

    def next(self, progress: float) -> tuple[Batch, int | None]:
        """The next batch when a share of the budget is spent, and the depth to run it at."""
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
    began: float = field(default_factory=time.monotonic)

    def spent(self) -> float:
        """Seconds so far."""
        return self.before + time.monotonic() - self.began


@dataclass
class Loop:
    """A run under way. `evaluate` and `save` are what it does at the given times."""

    stepper: Stepper
    stream: Source
    budget: Budget
    schedule: ScheduleSettings
    peak: float
    sums: Sums
    metrics: MetricsFile
    watcher: Watcher
    evaluation: EvaluationSettings
    checkpoint: CheckpointSettings
    log_every: int
    evaluate: Callable[[], Record]
    save: Callable[[dict[str, Any]], None]
    stopping: Callable[[], bool]
    closing: float  # seconds that the end of the run will take, as far as is known
    clock: Clock = field(default_factory=Clock)
    step: int = 0
    tokens: int = 0
    skipped: int = 0  # steps in a row that were not applied
    share: float = 0.0  # of the budget, where it is time

    def __post_init__(self) -> None:
        self.group = self.stepper.group
        self._reset_times()
        self._saved = self._looked = time.monotonic()
        self._saved_step = -1
        self._look_cost = self._pace = 0.0  # seconds of the last look, of the last step

    def start_clock(self) -> None:
        """See how much of a budget of time is spent already; refuse one that leaves no step."""
        self.share = self.group.tell(self._share_of_time(0.0))
        if self.step == 0 and self.share >= 1:
            raise SettingsError(
                f"a budget of {self.budget.amount:.0f} s is too short: {self.clock.spent():.1f} s "
                f"went into starting and {self.closing:.1f} s are kept for saving; give it more"
            )

    def run(self) -> bool:
        """Train until the budget is spent, or until asked to stop; says whether it is spent."""
        while (progress := self.progress()) < 1:
            stop = self._advance(progress)
            if stop and self.progress() < 1:
                self._save()
                return False
        self._save()
        return True

    def progress(self) -> float:
        """The share of the budget that is spent."""
        if self.budget.kind == "steps":
            return self.step / self.budget.amount
        return self.tokens / self.budget.amount if self.budget.kind == "tokens" else self.share

    def _advance(self, progress: float) -> bool:
        """One step and what follows it; says whether a rank was asked to stop."""
        began = time.monotonic()
        batch, depth = self.stream.next(progress)
        loaded = time.monotonic()
        rate = rate_at(self.schedule, self.peak, progress)
        share = self._share_of_time(self._pace) if self.group.leads else 0.0
        asides = [float(len(batch.ids)), float(self.stopping()), share]
        outcome = self.stepper(batch, self.step, rate, depth, asides)
        tokens, stop, self.share = outcome.asides
        self._pace = time.monotonic() - began
        self.step += 1
        self.tokens += int(tokens)
        self._check(outcome)
        self._data += loaded - began
        self._count(outcome, rate)
        self._now_and_then(progress)
        return stop > 0

    def _check(self, outcome: Outcome) -> None:
        self.skipped = 0 if outcome.applied else self.skipped + 1
        if outcome.applied:
            self.sums.add(outcome.counts, outcome.values)
            return
        self.watcher.say(
            f"warning: step {self.step}: loss or gradient is not finite; the step is not applied "
            f"({self.skipped} in a row, stops at {MOST_SKIPPED})"
        )
        if self.skipped >= MOST_SKIPPED:
            raise DivergedError(
                f"step {self.step}: the loss has not been finite for {MOST_SKIPPED} steps; the "
                "last checkpoint stays. Lower the rate (--set optimizer.rate=…), lengthen the "
                "warm-up (--set schedule.warm_up=…), or use --set precision=fp32"
            )

    def _count(self, outcome: Outcome, rate: float) -> None:
        self.watcher.step(self.step, self.progress())
        if self.step % self.log_every:
            return
        seconds = time.monotonic() - self._logged
        record: Record = {
            "kind": "train", "step": self.step, "tokens": self.tokens, "rate": rate,
            "norm": outcome.norm, **self.sums.means(),
            "time": {
                "seconds": round(self.clock.spent(), 3),
                "progress": round(self.progress(), 6),
                "tokens_per_second": round((self.tokens - self._logged_tokens) / seconds, 1),
                "data": round(self._data / seconds, 5),
            },
        }  # fmt: skip
        self.sums = Sums(self.sums.names)
        self._reset_times()
        self._tell(record)

    def _tell(self, record: Record) -> None:
        self.metrics.write(record)
        self.watcher.record(record)

    def _reset_times(self) -> None:
        self._logged, self._logged_tokens, self._data = time.monotonic(), self.tokens, 0.0

    def _now_and_then(self, before: float) -> None:
        after = self.progress()
        due = _looks(after, self.evaluation.every) > _looks(before, self.evaluation.every)
        if (due and self.group.tell(self._affordable())) or after >= 1:
            self._look()
        every = self.checkpoint.every
        late = time.monotonic() - self._saved > SAVE_EVERY
        if after < 1 and (late if every is None else self.step % every == 0):
            self._save()

    def _affordable(self) -> bool:
        timed = self.budget.kind == "seconds"
        return not timed or time.monotonic() - self._looked > EVALUATION_COST * self._look_cost

    def _look(self) -> None:
        began = time.monotonic()
        record = {"kind": "held_out", "step": self.step, "tokens": self.tokens, **self.evaluate()}
        took = time.monotonic() - began
        self.closing += took - self._look_cost
        self._look_cost, self._looked = took, time.monotonic()
        self._tell({**record, "time": {"seconds": round(self.clock.spent(), 3)}})
        self._logged += took  # not part of the speed of training

    def _save(self) -> None:
        began = time.monotonic()
        if self.group.leads and self._saved_step != self.step:
            self.save(self.state())
        self._saved_step = self.step
        self._saved = time.monotonic()
        self._logged += self._saved - began

    def _share_of_time(self, step: float) -> float:
        """How much of a budget of time is spent, if one more step is to fit before its end."""
        if self.budget.kind != "seconds":
            return 0.0
        room = self.budget.amount - self.closing - step
        return self.clock.spent() / room if room > 0 else 1.0

    def state(self) -> dict[str, Any]:
        """All that decides how the run goes on, beside weights and moments."""
        return {
            "step": self.step,
            "tokens": self.tokens,
            "skipped": self.skipped,
            "seconds": self.clock.spent(),
            "stream": self.stream.state(),
            "sums": {"counts": self.sums.counts, "values": self.sums.values},
            "metrics": self.metrics.size(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.step, self.tokens = state["step"], state["tokens"]
        self.skipped = state["skipped"]
        self.clock.before = state["seconds"]
        self._saved_step = self.step
        self.stream.restore(state["stream"])
        self.sums = Sums(self.sums.names, state["sums"]["counts"], state["sums"]["values"])
        self._reset_times()


def _looks(progress: float, every: float) -> int:
    """How many looks at held-out text are due by now."""
    return int(progress / every + 1e-9)

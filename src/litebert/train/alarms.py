"""Alarms: what goes wrong in a run without stopping it, said once, with what to do about it.

    Alarms(inner)    passes everything on to `inner`, reads the lines of training, and speaks up

Three things are looked for. Masked words that are guessed by frequency alone: small encoders can
stay at that level for a whole budget. A sentence pair decided by tossing a coin. A processor that
waits for its data. Each decision is a pure function of a few recent numbers. Lines within the
warm-up are left out where learning is judged. A resumed run starts with an empty memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from litebert.train.watch import Watcher

MARK = "warning: "  # how every alarm begins

RECENT = 10  # lines that losses and waiting are averaged over
MEMORY = 50  # lines that sentence pairs are judged by: their accuracy is noisy
FEWEST = 20  # of those
FEWEST_AT_THE_END = 3  # lines past the warm-up that judge the loss of a very short run
THE_END = 0.9  # share of the budget

MARGIN = 0.05  # nats below the unigram level that count as learning
STUCK_AFTER = 0.3  # share of the budget
CHANCE_AFTER = 0.5  # share of the budget
ONE_SIDED = 1.645  # standard errors: 95 % of a normal distribution lies below
STARVED = 0.2  # share of the time that may go into waiting for data
REPEAT = 600.0  # seconds of the run between two words on waiting

PAIRS = ("sentence_order", "next_sentence")

Record = dict[str, Any]


def is_stuck(losses: Sequence[float], unigram: float) -> bool:
    """Whether losses are no better than guessing by frequency, their newer half neither.

    The newer half clears a run that is just leaving the plateau.
    """
    newer = losses[len(losses) // 2 :]
    return min(fmean(losses), fmean(newer)) >= unigram - MARGIN


def is_at_chance(accuracies: Sequence[float]) -> bool:
    """Whether the mean of accuracies is not significantly above one half."""
    error = stdev(accuracies) / sqrt(len(accuracies))
    return fmean(accuracies) - ONE_SIDED * error <= 0.5


def is_starved(shares: Sequence[float]) -> bool:
    """Whether too much of the time goes into waiting for data."""
    return fmean(shares) > STARVED


def enough_to_judge(lines: int, progress: float) -> bool:
    """Whether losses can be judged: ten lines, or at the end of a short run those there are."""
    return lines >= RECENT or (progress >= THE_END and lines >= FEWEST_AT_THE_END)


class Alarms(Watcher):
    """Passes everything on to another watcher, and tells it what is wrong."""

    def __init__(self, inner: Watcher) -> None:
        self.inner = inner
        self.unigram: float | None = None
        self.warm_up = 0.0
        self.lines: deque[Record] = deque(maxlen=MEMORY)
        self.said: dict[str, float] = {}  # alarm -> seconds of the run

    def begin(self, facts: dict[str, Any]) -> None:
        """Remember what a loss is compared with."""
        self.unigram = facts["unigram"]
        self.warm_up = facts["schedule"].warm_up
        self.inner.begin(facts)

    def step(self, step: int, progress: float) -> None:
        """Pass it on."""
        self.inner.step(step, progress)

    def record(self, record: Record) -> None:
        """Pass it on, and look for trouble in a line of training."""
        self.inner.record(record)
        if record["kind"] != "train":
            return
        self.lines.append(record)
        self._look_at_words()
        for objective in PAIRS:
            self._look_at_pairs(objective)
        self._look_at_waiting()

    def say(self, message: str) -> None:
        """Pass it on."""
        self.inner.say(message)

    def sample(self, text: str) -> None:
        """Pass it on."""
        self.inner.sample(text)

    def _look_at_words(self) -> None:
        losses = self._learned("loss", "masked_language")[-RECENT:]
        progress, unigram = self._now("progress"), self.unigram
        if unigram is None or progress < STUCK_AFTER or not enough_to_judge(len(losses), progress):
            return
        if is_stuck(losses, unigram):
            self._alarm(
                "words",
                f"after {progress:.0%} of the budget the loss of masked words "
                f"({fmean(losses):.2f}) is no better than guessing by frequency ({unigram:.2f}). "
                "Try a lower or higher rate (--set optimizer.rate=…), --set start=warm, a smaller "
                "batch (more steps, --set data.batch=…) or a longer budget",
            )

    def _look_at_pairs(self, objective: str) -> None:
        accuracies = self._learned("accuracy", objective)
        progress = self._now("progress")
        if progress < CHANCE_AFTER or len(accuracies) < FEWEST or not is_at_chance(accuracies):
            return
        self._alarm(
            objective,
            f"after {progress:.0%} of the budget {objective.replace('_', ' ')} is decided by "
            f"chance ({fmean(accuracies):.1%} right), which is usual below some 10M tokens. "
            "Otherwise check that documents have several sentences (litebert inspect), or give a "
            "longer budget",
        )

    def _look_at_waiting(self) -> None:
        shares = [line["time"]["data"] for line in self.lines][-RECENT:]
        if len(shares) == RECENT and is_starved(shares):
            self._alarm(
                "waiting",
                f"{fmean(shares):.0%} of the time goes into waiting for data; stop with Ctrl-C "
                "and go on with --set data.workers=1 (or more), or move the corpus to a faster "
                "disk",
                repeat=REPEAT,
            )

    def _learned(self, kind: str, objective: str) -> list[float]:
        """One number of the lines past the warm-up that have it."""
        return [
            line[kind][objective]
            for line in self.lines
            if line["time"]["progress"] > self.warm_up and objective in line[kind]
        ]

    def _now(self, name: str) -> float:
        return self.lines[-1]["time"][name]

    def _alarm(self, name: str, message: str, repeat: float = float("inf")) -> None:
        """Speak up, unless this was said already and not long ago."""
        seconds = self._now("seconds")
        if name not in self.said or seconds - self.said[name] >= repeat:
            self.said[name] = seconds
            self.inner.say(MARK + message)

"""Health checks: what goes wrong in a run without stopping it, said once, with what to do.

Masked tokens that are predicted by frequency alone: small encoders can stay at that level for a
whole budget. Sentence pairs at chance, or hardly any in the text. A processor that waits for its
data. A budget that reads the same text over and over, or of hardly any steps. Each decision is a
pure function of a few recent numbers. Lines within the warmup are left out where learning is
judged. A resumed run starts with an empty memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Literal

from litebert.base.files import read_bytes, write_atomic
from litebert.corpus.statistics import lone_sentences
from litebert.corpus.store import Store
from litebert.train.callbacks import Callback, RunStarted
from litebert.train.metrics import TrainingMetrics

WARNING = "warning: "  # how every message begins
WARNINGS, LARGEST = "warnings.txt", 2**20  # in a run's folder

RECENT = 10  # lines that losses and waiting are averaged over
MEMORY = 50  # lines that sentence pairs are judged by: their accuracy is noisy
FEWEST = 20  # of those
FEWEST_AT_THE_END = 3  # lines past the warmup that judge the loss of a very short run
THE_END = 0.9  # fraction of the budget

MARGIN = 0.05  # nats below the unigram level that count as learning
STUCK_AFTER = 0.3  # fraction of the budget
CHANCE_AFTER = 0.5  # fraction of the budget
LEARNED = 0.53  # accuracy of sentence pairs that can be lost again
ONE_SIDED = 1.645  # standard errors: 95 % of a normal distribution lies below
STARVED = 0.2  # fraction of the time that may go into waiting for data
REPEAT = 600.0  # seconds of the run between two messages on waiting

MANY_PASSES = 40  # over the same text: BERT's number
FEW_STEPS = 50  # of the whole budget, of which nothing can be expected
TOLD_AFTER = 0.05  # fraction of the budget from which on passes and steps can be told
MOSTLY_LONE = 0.5  # fraction of documents of one sentence that leaves few pairs

SENTENCE_PAIRS = ("sentence_order", "next_sentence")


def few_pairs(objectives: Sequence[str], store: Store) -> str | None:
    """A warning where sentence pairs are asked of a text that hardly has any."""
    if not set(objectives) & set(SENTENCE_PAIRS):
        return None
    lone = lone_sentences(store)
    if lone <= MOSTLY_LONE:
        return None
    return (
        f"{WARNING}{lone:.0%} of the documents have one sentence, so few pairs teach the order of "
        "sentences. Is every line a document by mistake (prepare's --format)? Else leave it out: "
        "--set 'objectives=[\"masked_lm\"]' --set data.input_format=full-sentences"
    )


def is_stuck(losses: Sequence[float], unigram_loss: float) -> bool:
    """Whether losses are no better than predicting by frequency, their newer half neither.

    The newer half clears a run that is just leaving the plateau.
    """
    newer = losses[len(losses) // 2 :]
    return min(fmean(losses), fmean(newer)) >= unigram_loss - MARGIN


def is_at_chance(accuracies: Sequence[float]) -> bool:
    """Whether the mean of accuracies is not significantly above one half."""
    error = stdev(accuracies) / sqrt(len(accuracies))
    return fmean(accuracies) - ONE_SIDED * error <= 0.5


def is_starved(fractions: Sequence[float]) -> bool:
    """Whether too much of the time goes into waiting for data."""
    return fmean(fractions) > STARVED


def enough_to_judge(lines: int, progress: float) -> bool:
    """Whether losses can be judged: ten lines, or at the end of a short run those there are."""
    return lines >= RECENT or (progress >= THE_END and lines >= FEWEST_AT_THE_END)


class WarningsFile(Callback):
    """Keeps the warnings of a run beside its metrics, once each, a line a warning."""

    def __init__(self, run: Path) -> None:
        self.path = run / WARNINGS

    def on_message(self, message: str) -> None:
        if not message.startswith(WARNING) or not self.path.parent.is_dir():
            return
        line = " ".join(message.removeprefix(WARNING).split())
        known = read_bytes(self.path, LARGEST).decode().splitlines() if self.path.exists() else []
        if line not in known:
            write_atomic(self.path, "".join(f"{one}\n" for one in [*known, line]).encode())


class HealthChecks(Callback):
    """Looks for trouble in the metrics of training, and notifies once of what it finds."""

    def __init__(self, notify: Callable[[str], None]) -> None:
        self.notify = notify
        self.unigram_loss: float | None = None
        self.text_tokens: int | None = None
        self.warmup = 0.0
        self.recent: deque[TrainingMetrics] = deque(maxlen=MEMORY)
        self.best: dict[str, float] = {}  # sentence pairs -> accuracy of the best MEMORY lines
        self.notified: dict[str, float] = {}  # check -> seconds of the run

    def on_start(self, run: RunStarted) -> None:
        self.unigram_loss, self.warmup = run.unigram_loss, run.warmup
        self.text_tokens = run.text_tokens

    def on_training(self, metrics: TrainingMetrics) -> None:
        self.recent.append(metrics)
        self._check_masked_lm()
        for objective in SENTENCE_PAIRS:
            self._check_pairs(objective)
        self._check_data()
        self._check_passes()
        self._check_steps()

    def _check_passes(self) -> None:
        line = self.recent[-1]
        if self.text_tokens is None or line.time.progress < TOLD_AFTER:
            return
        passes = line.tokens / line.time.progress / max(self.text_tokens, 1)
        if passes > MANY_PASSES:
            self._warn(
                "passes",
                f"the budget is about {passes:,.0f} passes over the text ({self.text_tokens:,} "
                f"tokens), where BERT took {MANY_PASSES}. Add text, or give a smaller budget",
            )

    def _check_steps(self) -> None:
        line = self.recent[-1]
        if line.time.progress < TOLD_AFTER:
            return
        steps = line.step / line.time.progress
        if steps < FEW_STEPS:
            self._warn(
                "steps",
                f"the whole budget is about {steps:,.0f} steps, of which little can be learned. "
                "Give a longer one, or make steps smaller (--set data.batch_size=…)",
            )

    def _check_masked_lm(self) -> None:
        losses = self._learned("loss", "masked_lm")[-RECENT:]
        progress, unigram_loss = self.recent[-1].time.progress, self.unigram_loss
        if unigram_loss is None or progress < STUCK_AFTER:
            return
        if enough_to_judge(len(losses), progress) and is_stuck(losses, unigram_loss):
            self._warn(
                "masked_lm",
                f"after {progress:.0%} of the budget the masked-LM loss ({fmean(losses):.2f}) is "
                f"no better than predicting by frequency ({unigram_loss:.2f}). Try a lower or "
                "higher learning rate (--set optimizer.learning_rate=…), --set "
                "initialization=corpus, a smaller batch (more steps, --set data.batch_size=…) or a "
                "longer budget",
            )

    def _check_pairs(self, objective: str) -> None:
        accuracies = self._learned("accuracy", objective)
        progress, name = self.recent[-1].time.progress, objective.replace("_", " ")
        if len(accuracies) < FEWEST:
            return
        best = self.best.get(objective, 0.5)
        if not is_at_chance(accuracies):
            self.best[objective] = max(best, fmean(accuracies))
            return
        if best >= LEARNED:
            self._warn(
                f"{objective} lost",
                f"after {progress:.0%} of the budget {name} is at chance ({fmean(accuracies):.1%} "
                f"accuracy), where it had been {best:.1%}: most likely [CLS] has become the same "
                "for all texts, which large steps can do and more training seldom undoes. Masked "
                "LM goes on; else begin again with --set optimizer.learning_rate=…, a lower one",
            )
        elif progress >= CHANCE_AFTER:
            self._warn(
                objective,
                f"after {progress:.0%} of the budget {name} is at chance "
                f"({fmean(accuracies):.1%} accuracy), which is usual below some 10M tokens. "
                "Otherwise check that documents have several sentences (litebert inspect), or give "
                "a longer budget",
            )

    def _check_data(self) -> None:
        fractions = [line.time.data_fraction for line in self.recent][-RECENT:]
        if len(fractions) == RECENT and is_starved(fractions):
            self._warn(
                "data",
                f"{fmean(fractions):.0%} of the time goes into waiting for data; stop with Ctrl-C "
                "and resume with --set data.num_workers=1 (or more), or move the corpus to a "
                "faster disk",
                repeat=REPEAT,
            )

    def _learned(self, kind: Literal["loss", "accuracy"], objective: str) -> list[float]:
        """One number of the lines past the warmup that have it."""
        past = [line for line in self.recent if line.time.progress > self.warmup]
        values = [getattr(line, kind).get(objective) for line in past]
        return [value for value in values if value is not None]

    def _warn(self, check: str, message: str, repeat: float = float("inf")) -> None:
        """Notify, unless that was done already and not long ago."""
        seconds = self.recent[-1].time.seconds
        if check not in self.notified or seconds - self.notified[check] >= repeat:
            self.notified[check] = seconds
            self.notify(WARNING + message)

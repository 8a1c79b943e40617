"""The live view of a training run: a panel that moves on a terminal, plain lines in a log.

Steps only store numbers. The panel is drawn from them by a thread of its own a few times a second;
lines are written when metrics come and the last line is half a minute old. Everything goes to
standard error. Samples and messages may hold anything, brackets too, and are never read as markup.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from litebert.train.callbacks import Callback, RunStarted
from litebert.train.health import WARNING
from litebert.train.metrics import EvaluationMetrics, Means, TrainingMetrics

REFRESH = 2  # drawings a second
LOG_EVERY = 30.0  # seconds
NONE = "-"
MESSAGES = 4
LONGEST_SAMPLE = 500  # characters

NAMES = {"masked_lm": "masked LM", "replaced_token": "replaced tokens"}


def plain(objective: str) -> str:
    """What an objective is called for people."""
    return NAMES.get(objective, objective.replace("_", " "))


def short(number: float) -> str:
    """A number in three figures or so: 950, 12.3k, 4.5M, 1.2G."""
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * scale:
            return f"{number / scale:.1f}{unit}"
    return f"{number:.0f}"


def lasting(seconds: float) -> str:
    """A duration in its two largest units: 45s, 4m 10s, 2h 05m, 3d 4h."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours >= 24:
        return f"{hours // 24}d {hours % 24}h"
    if hours:
        return f"{hours}h {minutes_left:02}m"
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"


def _legible(text: str) -> str:
    """One line without control characters, cut where it gets too long."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return line if len(line) <= LONGEST_SAMPLE else line[:LONGEST_SAMPLE] + " …"


class View(Callback):
    """Stores what a run tells; shows nothing."""

    def __init__(self) -> None:
        self.run: RunStarted | None = None
        self.training: TrainingMetrics | None = None
        self.held_out: EvaluationMetrics | None = None
        self.held_out_before: EvaluationMetrics | None = None
        self.scores: tuple[str, ...] = ()  # on the dev sets of a task
        self.sample = ""
        self.messages: tuple[str, ...] = ()  # replaced as a whole: a thread may be reading it
        self.steps, self.progress = 0, 0.0
        self.first: tuple[float, float] | None = None  # when the first step ended, and how far
        self.last = 0.0  # when the last step ended

    def on_start(self, run: RunStarted) -> None:
        self.run, self.steps = run, run.step

    def on_step(self, step: int, progress: float) -> None:
        self.steps, self.progress, self.last = step, progress, time.monotonic()
        if self.first is None:
            self.first = (self.last, progress)

    def on_training(self, metrics: TrainingMetrics) -> None:
        self.training = metrics

    def on_evaluation(self, metrics: EvaluationMetrics) -> None:
        if metrics.loss:
            self.held_out_before, self.held_out = self.held_out, metrics
        if metrics.scores:
            self.scores = (*self.scores, _scores(metrics))[-MESSAGES:]
        if metrics.sample:
            self.sample = _legible(metrics.sample)

    def on_message(self, message: str) -> None:
        self.messages = (*self.messages, _legible(message))[-MESSAGES:]

    def time_left(self) -> str:
        """The rest of the budget at the pace of this process, its slow first step not counted."""
        if self.progress >= 1:
            return "done"
        if self.first is None or self.progress <= self.first[1]:
            return ""
        started, already = self.first
        pace = (self.last - started) / (self.progress - already)
        left = pace * (1 - self.progress) - (time.monotonic() - self.last)
        return f"{lasting(max(left, 0.0))} left"

    def speed(self) -> str:
        """Speed, waiting, learning rate and gradient norm of the last metrics."""
        if self.training is None:
            return ""
        now, norm = self.training, self.training.gradient_norm
        return (
            f"{short(now.time.tokens_per_second)} tokens/s · {now.time.data_fraction:.0%} of the "
            f"time in data · learning rate {now.learning_rate:.3g} · gradient norm "
            + (NONE if norm is None else f"{norm:.3g}")
        )

    def size(self) -> str:
        """How large the model is, and how long it will be trained."""
        if self.run is None:
            return ""
        ranks = f" on {self.run.world_size} ranks" if self.run.world_size > 1 else ""
        return f"{self.run.parameters:,} parameters · budget {self.run.budget}{ranks}"

    def notes(self, metrics: Means | None, name: str) -> list[str]:
        """What a loss is seen beside: the unigram baseline, the recall of replaced tokens."""
        notes = []
        if name == "masked_lm" and self.run is not None and self.run.unigram_loss is not None:
            notes.append(f"unigram baseline {self.run.unigram_loss:.3f}")
        recall = metrics.recall.get(name) if metrics is not None else None
        if recall is not None:
            notes.append(f"recall {recall:.1%}")
        return notes


class LogLines(View):
    """Plain lines, for a log."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.console = console
        self._written = float("-inf")

    def on_start(self, run: RunStarted) -> None:
        super().on_start(run)
        self._write(f"{run.title} · {self.size()} · {run.folder}")

    def on_training(self, metrics: TrainingMetrics) -> None:
        """A line now and then."""
        super().on_training(metrics)
        if time.monotonic() - self._written >= LOG_EVERY:
            self._written = time.monotonic()
            parts = (
                f"step {metrics.step:,} ({self.progress:.0%})",
                f"{short(metrics.tokens)} tokens", self._results(metrics), self.speed(),
                self.time_left(),
            )  # fmt: skip
            self._write(" · ".join(filter(None, parts)))

    def on_evaluation(self, metrics: EvaluationMetrics) -> None:
        super().on_evaluation(metrics)
        if metrics.loss:
            self._write(f"held-out, step {metrics.step:,}: {self._results(metrics)}")
        if metrics.scores:
            self._write(self.scores[-1])
        if metrics.sample:
            self._write(f"sample: {self.sample}")

    def on_message(self, message: str) -> None:
        super().on_message(message)
        self._write(self.messages[-1])

    def _results(self, metrics: Means) -> str:
        results = []
        for name in metrics.loss:
            accuracy = _accuracy(metrics, name)
            shown = [] if accuracy == NONE else [f"accuracy {accuracy}"]
            notes = ", ".join(shown + self.notes(metrics, name))
            results.append(
                f"{plain(name)} {_loss(metrics, name)}" + (f" ({notes})" if notes else "")
            )
        return ", ".join(results)

    def _write(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


class LivePanel(View):
    """A panel, drawn anew a few times a second by rich."""

    def __rich__(self) -> RenderableType:
        parts: list[RenderableType] = [self._bar()]
        if self.training or self.held_out:
            parts += [self._table(), Text(self.speed(), style="dim")]
        parts += [Text(line) for line in self.scores]
        if self.sample:
            parts.append(Text.assemble(("sample ", "dim"), self.sample))
        parts += [
            Text(text, "yellow" if text.startswith(WARNING) else "") for text in self.messages
        ]
        title = Text(self.run.title if self.run else "starting", style="bold")
        beneath = Text(self.size(), style="dim")
        return Panel(Group(*parts), title=title, subtitle=beneath, title_align="left")

    def _bar(self) -> RenderableType:
        row = Table.grid(padding=(0, 2), expand=True)
        row.add_column(ratio=1)
        for _ in range(3):
            row.add_column(justify="right", no_wrap=True)
        tokens = f"{short(self.training.tokens)} tokens" if self.training else ""
        bar = ProgressBar(total=1.0, completed=min(self.progress, 1.0))
        where = f"{self.progress:.1%}  step {self.steps:,}"
        row.add_row(bar, Text(where), Text(tokens), Text(self.time_left(), style="cyan"))
        return row

    def _table(self) -> RenderableType:
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("")
        for title in ("loss", "accuracy", "held-out loss", "accuracy"):
            table.add_column(title, justify="right")
        table.add_column("")
        losses = [metrics.loss for metrics in (self.training, self.held_out) if metrics]
        for name in dict.fromkeys(name for loss in losses for name in loss):
            cells = [
                plain(name), _loss(self.training, name), _accuracy(self.training, name),
                _loss(self.held_out, name) + self._arrow(name), _accuracy(self.held_out, name),
                ", ".join(self.notes(self.training, name)),
            ]  # fmt: skip
            table.add_row(*map(Text, cells))
        return table

    def _arrow(self, name: str) -> str:
        """Where the held-out loss is going."""
        before, now = (
            metrics.loss.get(name) if metrics else None
            for metrics in (self.held_out_before, self.held_out)
        )
        if before is None or now is None:
            return "  "
        return " ↓" if now < before else " ↑"


def _loss(metrics: Means | None, name: str) -> str:
    value = metrics.loss.get(name) if metrics else None
    return NONE if value is None else f"{value:.3f}"


def _accuracy(metrics: Means | None, name: str) -> str:
    value = metrics.accuracy.get(name) if metrics else None
    return NONE if value is None else f"{value:.1%}"


def _scores(metrics: EvaluationMetrics) -> str:
    """The scores of an evaluation on the dev sets."""
    parts = [
        f"{name}: " + ", ".join(f"{metric} {value:.4f}" for metric, value in scores.items())
        for name, scores in metrics.scores.items()
    ]
    return f"step {metrics.step:,}, {'; '.join(parts)}"


@contextmanager
def live_view(console: Console | None = None) -> Iterator[View]:
    """A callback that shows a run; ranks other than the main one show nothing."""
    if int(os.environ.get("RANK", "0")) != 0:
        yield View()
        return
    console = console or Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield LogLines(console)
        return
    view = LivePanel()
    with Live(view, console=console, refresh_per_second=REFRESH):
        yield view

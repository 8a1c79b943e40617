"""The live view of a training run: a panel that moves on a terminal, plain lines in a log.

Steps only store numbers. The panel is drawn from them by a thread of its own a few times a second;
lines are written when a record comes and the last line is half a minute old. Everything goes to
standard error. Samples and messages may hold anything, brackets too, and are never read as markup.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from litebert.train.alarms import MARK
from litebert.train.watch import Watcher

REFRESH = 2  # drawings a second
LOG_EVERY = 30.0  # seconds
NONE = "-"
MESSAGES = 4
LONGEST_SAMPLE = 500  # characters

NAMES = {"masked_language": "masked words", "replaced_token": "replaced tokens"}

Record = dict[str, Any]


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


class View(Watcher):
    """Stores what a run tells; shows nothing. `leads` is whether this is the rank that speaks."""

    def __init__(self, leads: bool = True) -> None:
        self.leads = leads
        self.facts: dict[str, Any] = {}
        self.train: Record = {}
        self.held_out: Record = {}
        self.held_out_before: Record = {}
        self.looks: tuple[str, ...] = ()  # at the dev sets of a task
        self.shown_sample = ""
        self.messages: tuple[str, ...] = ()  # replaced as a whole: a thread may be reading it
        self.steps, self.progress = 0, 0.0
        self.first: tuple[float, float] | None = None  # when the first step ended, and how far
        self.last = 0.0  # when the last step ended

    def begin(self, facts: dict[str, Any]) -> None:
        """Remember what is run."""
        self.facts, self.steps = facts, facts["step"]

    def step(self, step: int, progress: float) -> None:
        """Remember how far the run is."""
        self.steps, self.progress, self.last = step, progress, time.monotonic()
        if self.first is None:
            self.first = (self.last, progress)

    def record(self, record: Record) -> None:
        """Remember the last line of each kind."""
        if record["kind"] == "train":
            self.train = record
        elif record.get("loss"):
            self.held_out_before, self.held_out = self.held_out, record
        elif record.get("scores"):
            self.looks = (*self.looks, _look(record))[-MESSAGES:]

    def say(self, message: str) -> None:
        """Remember the last few."""
        self.messages = (*self.messages, _legible(message))[-MESSAGES:]

    def sample(self, text: str) -> None:
        """Remember the last one."""
        self.shown_sample = _legible(text)

    def time_left(self) -> str:
        """The rest of the budget at the pace of this process, its slow first step not counted."""
        if self.progress >= 1:
            return "done"
        if self.first is None or self.progress <= self.first[1]:
            return ""
        began, already = self.first
        pace = (self.last - began) / (self.progress - already)
        left = pace * (1 - self.progress) - (time.monotonic() - self.last)
        return f"{lasting(max(left, 0.0))} left"

    def speed(self) -> str:
        """Speed, waiting, rate and norm of the last line of training."""
        if not self.train:
            return ""
        times = self.train["time"]
        return (
            f"{short(times['tokens_per_second'])} tokens/s · {times['data']:.0%} of the time in "
            f"data · learning rate {self.train['rate']:.3g} · gradient norm "
            f"{self.train['norm']:.3g}"
        )

    def size(self) -> str:
        """How large the model is, and how long it will be trained."""
        ranks = f" on {self.facts['ranks']} ranks" if self.facts["ranks"] > 1 else ""
        return f"{self.facts['parameters']:,} parameters · budget {self.facts['budget']}{ranks}"


class Lines(View):
    """Plain lines, for a log."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.console = console
        self._written = float("-inf")

    def begin(self, facts: dict[str, Any]) -> None:
        """Say what is run."""
        super().begin(facts)
        self._write(f"{facts['title']} · {self.size()} · {facts['out']}")

    def record(self, record: Record) -> None:
        """A line for every look at held-out text; for training now and then."""
        super().record(record)
        if record["kind"] != "train":
            if record.get("loss"):
                self._write(f"held-out, step {record['step']:,}: {self._results(record)}")
            elif record.get("scores"):
                self._write(self.looks[-1])
        elif time.monotonic() - self._written >= LOG_EVERY:
            self._written = time.monotonic()
            parts = (
                f"step {record['step']:,} ({self.progress:.0%})",
                f"{short(record['tokens'])} tokens", self._results(record), self.speed(),
                self.time_left(),
            )  # fmt: skip
            self._write(" · ".join(filter(None, parts)))

    def say(self, message: str) -> None:
        """At once."""
        super().say(message)
        self._write(self.messages[-1])

    def sample(self, text: str) -> None:
        """At once."""
        super().sample(text)
        self._write(f"sample: {self.shown_sample}")

    def _results(self, record: Record) -> str:
        results = []
        for name in record["loss"]:
            share = _right(record, name)
            right = [] if share == NONE else [f"{share} right"]
            notes = ", ".join(right + _notes(self.facts, record, name))
            results.append(
                f"{plain(name)} {_loss(record, name)}" + (f" ({notes})" if notes else "")
            )
        return ", ".join(results)

    def _write(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


class Moving(View):
    """A panel, drawn anew a few times a second by rich."""

    def __rich__(self) -> RenderableType:
        parts: list[RenderableType] = [self._bar()]
        if self.train or self.held_out:
            parts += [self._table(), Text(self.speed(), style="dim")]
        parts += [Text(look) for look in self.looks]
        if self.shown_sample:
            parts.append(Text.assemble(("sample ", "dim"), self.shown_sample))
        parts += [Text(text, "yellow" if text.startswith(MARK) else "") for text in self.messages]
        title = Text(self.facts.get("title", "starting"), style="bold")
        beneath = Text(self.size() if self.facts else "", style="dim")
        return Panel(Group(*parts), title=title, subtitle=beneath, title_align="left")

    def _bar(self) -> RenderableType:
        row = Table.grid(padding=(0, 2), expand=True)
        row.add_column(ratio=1)
        for _ in range(3):
            row.add_column(justify="right", no_wrap=True)
        tokens = f"{short(self.train['tokens'])} tokens" if self.train else ""
        bar = ProgressBar(total=1.0, completed=min(self.progress, 1.0))
        where = f"{self.progress:.1%}  step {self.steps:,}"
        row.add_row(bar, Text(where), Text(tokens), Text(self.time_left(), style="cyan"))
        return row

    def _table(self) -> RenderableType:
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("")
        for title in ("loss", "right", "held-out loss", "right"):
            table.add_column(title, justify="right")
        table.add_column("")
        losses = [record.get("loss", {}) for record in (self.train, self.held_out)]
        for name in dict.fromkeys([*losses[0], *losses[1]]):
            cells = [
                plain(name), _loss(self.train, name), _right(self.train, name),
                _loss(self.held_out, name) + self._arrow(name), _right(self.held_out, name),
                ", ".join(_notes(self.facts, self.train, name)),
            ]  # fmt: skip
            table.add_row(*map(Text, cells))
        return table

    def _arrow(self, name: str) -> str:
        """Where the held-out loss is going."""
        before, now = (r.get("loss", {}).get(name) for r in (self.held_out_before, self.held_out))
        if before is None or now is None:
            return "  "
        return " ↓" if now < before else " ↑"


def _loss(record: Record, name: str) -> str:
    value = record.get("loss", {}).get(name)
    return NONE if value is None else f"{value:.3f}"


def _right(record: Record, name: str) -> str:
    """The share of right answers; a regression has none, and gives minus its error instead."""
    value = record.get("accuracy", {}).get(name)
    return NONE if value is None or value < 0 else f"{value:.1%}"


def _look(record: Record) -> str:
    """The scores of a look at the dev sets."""
    parts = [
        f"{name}: " + ", ".join(f"{metric} {value:.4f}" for metric, value in scores.items())
        for name, scores in record["scores"].items()
    ]
    return f"step {record['step']:,}, {'; '.join(parts)}"


def _notes(facts: dict[str, Any], record: Record, name: str) -> list[str]:
    """What a loss is seen beside: the level of guessing, the replaced tokens that were found."""
    notes = []
    if name == "masked_language" and facts.get("unigram") is not None:
        notes.append(f"guessing gives {facts['unigram']:.3f}")
    if name in record.get("found", {}):
        notes.append(f"{record['found'][name]:.1%} of the replaced found")
    return notes


@contextmanager
def watching(console: Console | None = None) -> Iterator[View]:
    """Something that shows a run; ranks that do not lead show nothing."""
    if int(os.environ.get("RANK", "0")) != 0:
        yield View(leads=False)
        return
    console = console or Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield Lines(console)
        return
    view = Moving()
    with Live(view, console=console, refresh_per_second=REFRESH):
        yield view

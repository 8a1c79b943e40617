"""Curves of runs, side by side in one picture.

One panel for the masked-LM loss with the unigram baseline, one for the accuracy of every other
objective, one for the learning rate. A run has one colour: a thin line is training text, smoothed,
and dots are held-out text. Runs that are still going can be drawn too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from litebert.base.errors import (
    FileError,
    FormatError,
    MissingExtraError,
    SettingsError,
    did_you_mean,
    one_line,
)
from litebert.base.files import check_writable, read_json, write_atomic
from litebert.train.metrics import Metrics, read_metrics
from litebert.train.run_folder import RUN

AXES: dict[str, Callable[[Metrics], float]] = {
    "tokens": lambda metrics: metrics.tokens,
    "steps": lambda metrics: metrics.step,
    "minutes": lambda metrics: metrics.time.seconds / 60,
}
SMOOTHING = 20  # a smoothed line averages about a twentieth of all its points
BALANCED = ("sentence_order", "next_sentence")  # half is chance
COLOURS = 10  # of matplotlib's cycle
MASKED_LM = "masked_lm"
LONGEST_NAME = 60  # characters
MOST_PANELS = 12  # a picture of more would not fit in memory


@dataclass(frozen=True)
class Curves:
    """What is drawn of one run."""

    name: str
    metrics: list[Metrics]
    unigram_loss: float | None

    def points(self, kind: str, x: str, path: tuple[str, ...]) -> tuple[list[float], list[float]]:
        """Abscissae and ordinates of the lines of a kind that have a value."""
        found = [(AXES[x](m), _value(m, path)) for m in self.metrics if m.kind == kind]
        kept = [(across, up) for across, up in found if up is not None]
        return [across for across, _ in kept], [up for _, up in kept]


def plot(runs: Sequence[str | Path], *, out: str | Path = "curves.png", x: str = "tokens") -> Path:
    """Draw the curves of runs side by side: losses, accuracies, learning rate.

    Thin lines are training text, smoothed; dots are held-out text; dashed lines are chance. Compare
    runs by tokens for what text was worth, by minutes for what time was worth.

    Example: litebert plot run-albert run-bert --out curves.png --x minutes

    Args:
        runs: Folders of runs, finished or still going.
        out: The PNG file to write.
        x: Across: tokens, steps or minutes.
    """
    out = Path(out)
    if x not in AXES:
        raise SettingsError(f"x axis {x!r}: {did_you_mean(x, AXES)}")
    if out.suffix.lower() != ".png":
        raise SettingsError(f"{out}: curves are drawn as PNG; name a file that ends in .png")
    if os.path.isdir(out) or not os.path.isdir(out.parent):
        raise FileError(f"{out}: cannot be written; name a file in a folder that exists")
    check_writable(out)
    if not runs:
        raise SettingsError("no run to draw; name at least one run's folder")
    folders = [Path(run) for run in runs]
    write_atomic(out, _draw(list(map(_open, folders, _names(folders))), x))
    return out


def smooth(values: Sequence[float]) -> list[float]:
    """A running mean that forgets, over about a twentieth of all values; the first is kept."""
    keep = 1 - 1 / max(len(values) / SMOOTHING, 1.0)
    mean, weight, smoothed = 0.0, 0.0, []
    for value in values:
        mean, weight = keep * mean + (1 - keep) * value, keep * weight + (1 - keep)
        smoothed.append(mean / weight)  # so that the empty beginning does not count
    return smoothed


def _names(folders: Sequence[Path]) -> list[str]:
    """The folders' names, or their whole paths where two are called the same."""
    names = [Path(os.path.abspath(folder)).name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder) for folder in folders]


def _open(folder: Path, name: str) -> Curves:
    metrics = read_metrics(folder)
    if not metrics:
        raise FormatError(f"{folder}: has no metrics yet; a run writes them every few steps")
    run = read_json(folder / RUN) if os.path.lexists(folder / RUN) else {}
    unigram_loss = run.get("unigram_loss")
    return Curves(name, metrics, unigram_loss if isinstance(unigram_loss, float) else None)


def _value(metrics: Metrics, path: tuple[str, ...]) -> float | None:
    """What a line has under some names in turn."""
    value = getattr(metrics, path[0], None)
    return value.get(path[1]) if isinstance(value, dict) else value


def _draw(runs: Sequence[Curves], x: str) -> bytes:
    """The picture. Figure draws with Agg where no other canvas is named: no display is needed."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import EngFormatter
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "drawing curves") from None
    panels = list(_panels(runs))
    if len(panels) > MOST_PANELS:
        raise FormatError(f"{len(panels)} panels to draw, at most {MOST_PANELS}; name fewer runs")
    figure = Figure(figsize=(5.5 * len(panels), 4.5), layout="constrained")
    places = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (title, path) in zip(places, panels, strict=True):
        axes.set_title(_plain(title))
        axes.set_xlabel(x)
        if x != "minutes":  # where 100m would be a tenth of one
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))  # 200k, 1.5M
        axes.grid(alpha=0.25)
        for place, run in enumerate(runs):
            _curve(axes, run, x, path, f"C{place % COLOURS}")
        _levels(axes, runs, path)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    return picture.getvalue()


def _panels(runs: Sequence[Curves]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Titles, and where metrics have the values."""
    losses = [metrics.loss for run in runs for metrics in run.metrics]
    objectives = dict.fromkeys(name for loss in losses for name in loss)
    if MASKED_LM in objectives:
        yield "masked-LM loss", ("loss", MASKED_LM)
    for name in objectives:
        if name != MASKED_LM:
            yield f"{name.replace('_', ' ')} accuracy", ("accuracy", name)
    yield "learning rate", ("learning_rate",)


def _curve(axes: Any, run: Curves, x: str, path: tuple[str, ...], colour: str) -> None:
    across, up = run.points("training", x, path)
    is_learning_rate = path == ("learning_rate",)
    axes.plot(
        across, up if is_learning_rate else smooth(up), color=colour, linewidth=1.2,
        alpha=1.0 if is_learning_rate else 0.6,
    )  # fmt: skip
    across, up = run.points("evaluation", x, path)
    axes.plot(across, up, color=colour, marker="o", markersize=4, linewidth=1.6, label=_label(run))


def _label(run: Curves) -> str:
    """A run's name as it is: matplotlib hides one with a leading _."""
    return " " + _plain(run.name)


def _plain(text: str) -> str:
    """Text as it is: matplotlib sets formulas between dollars."""
    return one_line(text)[:LONGEST_NAME].replace("$", r"\$")


def _levels(axes: Any, runs: Sequence[Curves], path: tuple[str, ...]) -> None:
    """The level of chance."""
    levels: list[float] = []
    if path == ("loss", MASKED_LM):
        levels = sorted(
            {round(run.unigram_loss, 3) for run in runs if run.unigram_loss is not None}
        )
    elif path[0] == "accuracy" and path[1] in BALANCED:
        levels = [0.5]
    for level in levels:
        axes.axhline(level, color="grey", linestyle="--", linewidth=1)
        axes.annotate(
            f"chance {level:g}", (1, level), xycoords=("axes fraction", "data"), ha="right",
            va="bottom", fontsize="small", color="grey",
        )  # fmt: skip

"""Curves of runs, side by side in one picture.

    litebert.train.plot.plot(["run-a", "run-b"], "curves.png", x="tokens")

One panel for the masked-language loss with the level of guessing by frequency, one for the accuracy
of every other objective, one for the learning rate. A run has one colour: a thin line is training
text, smoothed, and dots are held-out text. Runs that are still going can be drawn too.
"""

from __future__ import annotations

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
)
from litebert.base.files import read_json, write_whole
from litebert.train.metrics import Record, read_metrics
from litebert.train.run import METRICS, RUN

AXES: dict[str, Callable[[Record], float]] = {
    "tokens": lambda record: record["tokens"],
    "steps": lambda record: record["step"],
    "minutes": lambda record: record["time"]["seconds"] / 60,
}
SMOOTHING = 20  # a smoothed line averages about a twentieth of all its points
COIN_TOSSES = ("sentence_order", "next_sentence")  # right half the time by chance
COLOURS = 10  # of matplotlib's cycle
WORDS = "masked_language"


@dataclass(frozen=True)
class Curves:
    """What is drawn of one run."""

    name: str
    records: list[Record]
    unigram: float | None

    def points(
        self, kind: str, x: str, y: Callable[[Record], float | None]
    ) -> tuple[list[float], list[float]]:
        """Abscissae and ordinates of the records of a kind that have a value."""
        found = [(AXES[x](r), y(r)) for r in self.records if r["kind"] == kind]
        kept = [(across, up) for across, up in found if up is not None]
        return [across for across, _ in kept], [up for _, up in kept]


def plot(runs: Sequence[str | Path], out: str | Path, *, x: str = "tokens") -> None:
    """Draw the curves of some runs into a PNG file; `x` is tokens, steps or minutes."""
    out = Path(out)
    if x not in AXES:
        raise SettingsError(f"x axis {x!r}: {did_you_mean(x, AXES)}")
    if out.suffix.lower() != ".png":
        raise SettingsError(f"{out}: curves are drawn as PNG; name a file that ends in .png")
    if out.is_dir() or not out.parent.is_dir():
        raise FileError(f"{out}: cannot be written; name a file in a folder that exists")
    if not runs:
        raise SettingsError("no run to draw; name at least one run's folder")
    folders = [Path(run) for run in runs]
    write_whole(out, _draw(list(map(_open, folders, _names(folders))), x))


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
    names = [folder.resolve().name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder) for folder in folders]


def _open(folder: Path, name: str) -> Curves:
    path = folder / METRICS
    if not path.is_file():
        raise FileError(f"{path}: no such file; name the --out folder of `litebert pretrain`")
    try:
        records = [record for record in read_metrics(folder) if _is_drawn(record)]
    except (OSError, ValueError) as error:  # also bad UTF-8
        raise FormatError(f"{path}: not readable as metrics ({error})") from None
    if not records:
        raise FormatError(f"{path}: has no records yet; a run writes them every few steps")
    settings = read_json(folder / RUN) if (folder / RUN).is_file() else {}
    return Curves(name, records, settings.get("unigram"))


def _is_drawn(record: Any) -> bool:
    """Whether a line of metrics has a place in a picture."""
    return isinstance(record, dict) and {"kind", "step", "tokens", "time"} <= record.keys()


def _value(*path: str) -> Callable[[Record], float | None]:
    """Reads what a record has under some keys in turn."""

    def read(record: Record) -> float | None:
        value: Any = record
        for key in path:
            value = value.get(key, {})
        return None if value == {} else value

    return read


def _draw(runs: Sequence[Curves], x: str) -> bytes:
    """The picture. Figure draws with Agg where no other canvas is named: no display is needed."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import EngFormatter
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "drawing curves") from None
    panels = list(_panels(runs))
    figure = Figure(figsize=(5.5 * len(panels), 4.5), layout="constrained")
    places = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (title, path) in zip(places, panels, strict=True):
        axes.set_title(title)
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
    """Titles, and where records have the values."""
    losses = [record.get("loss", {}) for run in runs for record in run.records]
    objectives = dict.fromkeys(name for loss in losses for name in loss)
    if WORDS in objectives:
        yield "masked-language loss", ("loss", WORDS)
    for name in objectives:
        if name != WORDS:
            yield f"{name.replace('_', ' ')} accuracy", ("accuracy", name)
    yield "learning rate", ("rate",)


def _curve(axes: Any, run: Curves, x: str, path: tuple[str, ...], colour: str) -> None:
    across, up = run.points("train", x, _value(*path))
    is_rate = path == ("rate",)
    axes.plot(
        across, up if is_rate else smooth(up), color=colour, linewidth=1.2,
        alpha=1.0 if is_rate else 0.6,
    )  # fmt: skip
    across, up = run.points("held_out", x, _value(*path))
    axes.plot(across, up, color=colour, marker="o", markersize=4, linewidth=1.6, label=_label(run))


def _label(run: Curves) -> str:
    """A run's name as it is: matplotlib sets formulas between dollars and hides a leading _."""
    return " " + run.name.replace("$", r"\$")


def _levels(axes: Any, runs: Sequence[Curves], path: tuple[str, ...]) -> None:
    """What knowing nothing gives."""
    levels: list[float] = []
    if path == ("loss", WORDS):
        levels = sorted({round(run.unigram, 3) for run in runs if run.unigram is not None})
    elif path[0] == "accuracy" and path[1] in COIN_TOSSES:
        levels = [0.5]
    for level in levels:
        axes.axhline(level, color="grey", linestyle="--", linewidth=1)
        axes.annotate(
            f"guessing {level:g}", (1, level), xycoords=("axes fraction", "data"), ha="right",
            va="bottom", fontsize="small", color="grey",
        )  # fmt: skip

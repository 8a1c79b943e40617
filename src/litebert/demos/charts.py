"""The report's charts as SVG, by matplotlib: bars with intervals, lines over time."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any

from litebert.base.errors import MissingExtraError
from litebert.base.intervals import Interval

COLOURS = ("#9aa5b1", "#c7a45a", "#3e8ed0", "#e4572e")
GREY = "#7b8794"  # legible on white and on black
Points = Sequence[tuple[float, float]]


def bars(groups: Sequence[tuple[str, Sequence[Interval]]], names: Sequence[str]) -> str:
    """Groups of bars, one colour a name, each with its interval; the axis does not begin at 0."""
    axes = _axes()
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        row = [values[number] for _, values in groups]
        heights = [one.value for one in row]
        reach = [[one.value - one.low for one in row], [one.high - one.value for one in row]]
        places = [group + number * width for group in range(len(groups))]
        axes.bar(places, heights, width * 0.9, yerr=reach, color=COLOURS[number], ecolor=GREY,
                 label=name)  # fmt: skip
    lowest = min(one.low for _, row in groups for one in row)
    axes.set_ylim(bottom=min(lowest - 0.02, 0.5))
    axes.set_xticks([group + 0.4 - width / 2 for group in range(len(groups))])
    axes.set_xticklabels([label for label, _ in groups])
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.legend(frameon=False, labelcolor=GREY, ncols=2, loc="upper left")
    return _svg(axes)


def line(points: Points, x: str, chance: tuple[float, str], *, percent: bool = False) -> str:
    """One curve; `chance` is a dashed level with its name."""
    axes = _axes()
    axes.plot([a for a, _ in points], [b for _, b in points], color=COLOURS[-1])
    axes.axhline(chance[0], color=GREY, linestyle="--", linewidth=1)
    axes.annotate(
        chance[1], (1, chance[0]), xycoords=("axes fraction", "data"), ha="right", va="bottom",
        color=GREY,
    )  # fmt: skip
    axes.set_xlabel(x, color=GREY)
    if percent:
        axes.yaxis.set_major_formatter("{x:.0%}")
    return _svg(axes)


def _axes() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "demo", "the demo's charts") from None
    axes = Figure(figsize=(5.2, 3.0), layout="constrained").subplots()
    axes.tick_params(colors=GREY)
    axes.grid(axis="y", alpha=0.25)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GREY)
    return axes


def _svg(axes: Any) -> str:
    from matplotlib import rc_context

    text = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "litebert"}):
        axes.figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]

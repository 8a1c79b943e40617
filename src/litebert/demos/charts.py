"""The report's charts as SVG, by matplotlib: bars with intervals, lines over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from litebert.base.figures import GREY, new_axes, svg
from litebert.base.intervals import Interval

COLOURS = ("#9aa5b1", "#c7a45a", "#3e8ed0", "#e4572e")
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
    return svg(axes.figure)


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
    return svg(axes.figure)


def _axes() -> Any:
    return new_axes(extra="demo", purpose="the demo's charts")[1][0]

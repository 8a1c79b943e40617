"""Pictures of a report: slopes from the paper's values to ours, and curves of runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from litebert.base.figures import COLOURS, GREY, new_axes, svg
from litebert.train.metrics import read_metrics

PURPOSE = "the report's charts"


def slopes(rows: Mapping[str, tuple[float, float]]) -> str:
    """A line a row: the published value left, ours right, each side on a scale of its own."""
    figure, (axes,) = new_axes(extra="plot", purpose=PURPOSE, size=(4.6, 2.8))
    sides = [_normalised([pair[side] for pair in rows.values()]) for side in (0, 1)]
    for place, (name, pair) in enumerate(rows.items()):
        left, right = sides[0][place], sides[1][place]
        colour = COLOURS[place % len(COLOURS)]
        axes.plot([0, 1], [left, right], color=colour, marker="o")
        for x, y, value, side in ((0, left, pair[0], "right"), (1, right, pair[1], "left")):
            label = f"{name} {value:.1f}" if side == "right" else f"{value:.1f} {name}"
            axes.annotate(
                label, (x, y), xytext=(-6 if side == "right" else 6, 0),
                textcoords="offset points", ha=side, va="center", fontsize=8, color=GREY,
            )  # fmt: skip
    axes.set_xlim(-0.9, 1.9)
    axes.set_xticks([0, 1])
    axes.set_xticklabels(["published", "ours"])
    axes.set_yticks([])
    axes.grid(visible=False)
    return svg(figure)


def _normalised(values: list[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 0.5 for value in values]


def curves(runs: Mapping[str, Path]) -> str:
    """Held-out masked-LM losses over tokens; nothing where no run has one."""
    figure, (axes,) = new_axes(extra="plot", purpose=PURPOSE)
    drawn = False
    for place, (name, run) in enumerate(runs.items()):
        points = [
            (metrics.tokens / 1e6, metrics.loss.get("masked_lm"))
            for metrics in read_metrics(run)
            if metrics.kind == "evaluation"
        ]
        points = [(x, y) for x, y in points if y is not None]
        if points:
            drawn = True
            colour = COLOURS[place % len(COLOURS)]
            axes.plot(
                *zip(*points, strict=True), color=colour, marker="o", markersize=3, label=name
            )
    axes.set_xlabel("million tokens", color=GREY)
    axes.legend(frameon=False, labelcolor=GREY, fontsize=8)
    return svg(figure) if drawn else ""

"""Small charts as SVG, for a page that stands alone: lines over time, and bars with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from litebert.base.intervals import Interval

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460, 240, 46, 12, 14, 34
COLOURS = ("#9aa5b1", "#3e8ed0", "#e4572e")
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class _Frame:
    """From values to places on the paper."""

    left: float
    right: float
    bottom: float
    top: float

    def x(self, value: float) -> float:
        share = (value - self.left) / ((self.right - self.left) or 1)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = (value - self.bottom) / ((self.top - self.bottom) or 1)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def rule(self, value: float, label: str, dashed: bool = False) -> str:
        """A level line with its value at the left."""
        y, style = self.y(value), ' stroke-dasharray="4 3"' if dashed else ""
        return (
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="rule"'
            f'{style}/><text x="{LEFT - 6}" y="{y + 4:.1f}" class="tick end">{escape(label)}</text>'
        )


def lines(
    curves: Sequence[tuple[str, Points]], across: str, level: tuple[float, str] | None = None,
    percent: bool = False,
) -> str:  # fmt: skip
    """Curves over one axis; `level` is what knowing nothing gives."""
    points = [point for _, curve in curves for point in curve]
    if not points:
        return "<p>no measurements</p>"
    values = [value for _, value in points] + ([level[0]] if level else [])
    frame = _Frame(0, max(x for x, _ in points), min(values), max(values))
    parts = [
        frame.rule(value, _number(value, percent)) for value in _ticks(min(values), max(values))
    ]
    if level is not None:
        parts.append(
            frame.rule(level[0], "", dashed=True)
            + f'<text x="{WIDTH - RIGHT}" y="{frame.y(level[0]) - 4:.1f}" class="tick end">'
            f"{escape(level[1])}</text>"
        )
    for (name, curve), colour in zip(curves, reversed(COLOURS), strict=False):
        path = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in curve)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2">'
            f"<title>{escape(name)}</title></polyline>"
        )
    for share in (0.0, 0.5, 1.0):
        x = LEFT + share * (WIDTH - LEFT - RIGHT)
        anchor = "middle" if share == 0.5 else "end" if share else ""
        parts.append(
            f'<text x="{x:.0f}" y="{HEIGHT - 18}" class="tick {anchor}">'
            f"{share * frame.right:.1f}</text>"
        )
    parts.append(
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 3}" class="tick middle">{escape(across)}</text>'
    )
    return _sheet(parts)


def bars(groups: Sequence[tuple[str, Sequence[Interval]]], names: Sequence[str]) -> str:
    """Groups of bars, one colour a name, each with its interval; the axis does not begin at 0."""
    values = [v for _, row in groups for bar in row for v in (bar.low, bar.high)]
    low, high = min([*values, 0.5]), max([*values, 0.55])
    frame = _Frame(0, len(groups), low - 0.02, high + 0.01)
    parts = [frame.rule(value, _number(value, True)) for value in _ticks(low, high)]
    room = (WIDTH - LEFT - RIGHT) / len(groups)
    for place, (label, row) in enumerate(groups):
        width = room * 0.8 / len(row)
        for number, bar in enumerate(row):
            x = LEFT + place * room + room * 0.1 + number * width
            top, foot, middle = frame.y(bar.value), HEIGHT - BOTTOM, x + width * 0.45
            parts.append(
                f'<rect x="{x:.1f}" y="{top:.1f}" width="{width * 0.9:.1f}" '
                f'height="{foot - top:.1f}" fill="{COLOURS[number % 3]}"><title>'
                f"{escape(names[number])}: {bar.value:.1%}</title></rect>"
                f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{frame.y(bar.low):.1f}" '
                f'y2="{frame.y(bar.high):.1f}" class="whisker"/>'
            )
        parts.append(
            f'<text x="{LEFT + (place + 0.5) * room:.1f}" y="{HEIGHT - 14}" class="tick middle">'
            f"{escape(label)}</text>"
        )
    return _sheet(parts)


def legend(names: Sequence[str]) -> str:
    """The colours of bars."""
    spots = (
        f'<span class="spot" style="background:{colour}"></span>{escape(name)}'
        for name, colour in zip(names, COLOURS, strict=False)
    )
    return '<p class="legend">' + " &nbsp; ".join(spots) + "</p>"


def _sheet(parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}</svg>'


def _ticks(low: float, high: float) -> list[float]:
    """Four or so round values between two others."""
    span = (high - low) or 1.0
    step = next(
        scale * unit
        for scale in (0.001, 0.01, 0.1, 1.0, 10.0)
        for unit in (1, 2, 5)
        if span / (scale * unit) <= 6
    )
    first = -(-low // step)
    return [(first + i) * step for i in range(7) if (first + i) * step <= high + 1e-9]


def _number(value: float, percent: bool) -> str:
    return f"{value:.0%}" if percent else f"{value:.1f}"

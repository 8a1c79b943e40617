"""The numbers that the demo's reports tell: in the terminal, on the page, and in findings.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from litebert.base.intervals import Interval, mean_interval, paired_difference
from litebert.demos.compare import Cell, describe_labels
from litebert.demos.reviews import TEST
from litebert.demos.samples import Gap, JudgedOrder
from litebert.train.evaluate import HeldOutReport

MEASURED_ON = f"{TEST:,} sentences that no training has seen"


@dataclass(frozen=True)
class LabelCount:
    """One number of labels: accuracies of the arms, and how far the last is ahead of each."""

    labels: int
    accuracies: dict[str, Interval]
    learning_rates: dict[str, float | None]
    ahead: dict[str, Interval]

    @property
    def name(self) -> str:
        return describe_labels(self.labels)


@dataclass(frozen=True)
class Findings:
    """All that was found."""

    seeds: int
    rows: list[LabelCount]
    held_out: HeldOutReport  # of the pretrained encoder
    gaps: list[Gap]
    orders: list[JudgedOrder]
    parameters: list[tuple[str, int, int]]  # name, of the demo's shape, of the paper's base
    tokens: int  # of pretraining
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def rows_of(cells: Sequence[Cell]) -> list[LabelCount]:
    """Means over seeds with Student's 95 % intervals; differences seed by seed."""
    rows = []
    for labels in sorted({cell.labels for cell in cells}):
        row = [cell for cell in cells if cell.labels == labels]
        best = row[-1]
        rows.append(
            LabelCount(
                labels,
                {cell.arm: mean_interval(cell.test) for cell in row},
                {cell.arm: cell.learning_rate for cell in row},
                {cell.arm: paired_difference(best.test, cell.test) for cell in row[:-1]},
            )
        )
    return rows


def verdict(rows: Sequence[LabelCount]) -> list[str]:
    """What the comparison shows, in words, whatever it is."""
    return [
        f"With {row.name}, pretraining {_compared(one)} {arm} ({_points(one)})."
        for row in rows
        for arm, one in row.ahead.items()
    ]


def _compared(one: Interval) -> str:
    if one.low > 0:
        return "is ahead of"
    return "is behind" if one.high < 0 else "cannot be told from"


def _points(one: Interval) -> str:
    low, high = 100 * one.low, 100 * one.high
    return f"{100 * one.value:+.1f} points, 95 % interval {low:+.1f} to {high:+.1f}"

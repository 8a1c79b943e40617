"""What a table's runs show: cells with intervals, and a verdict for every published pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np

from litebert.base.errors import SettingsError
from litebert.base.intervals import Interval, mean_interval
from litebert.planning.count import parameters
from litebert.reproduction.downstream import common_tasks, with_mean
from litebert.reproduction.grid import ROWS, FrozenPlan
from litebert.reproduction.measurement import Measurement, read_measurements
from litebert.reproduction.measures import MEASURES
from litebert.reproduction.row import failure, run_folder, seeds_done
from litebert.reproduction.statistics import (
    Difference,
    Scored,
    Verdict,
    bootstrap_crossed,
    compare,
    equivalence,
    verdict,
)
from litebert.reproduction.summary import ColumnOrder
from litebert.reproduction.table import PaperTable

POINTS = "points"


@dataclass(frozen=True)
class Counted:
    """Parameters of a row at the paper's own scale, and whether the paper prints them."""

    with_pooler: int
    without_pooler: int
    published: float | None
    remark: str


@dataclass(frozen=True)
class PairFinding:
    """One published pair: the row that the paper has ahead, and the other."""

    column: str
    first: str
    second: str
    kind: Literal["order", "same"]
    published: float | None  # difference; None where the paper has no figures
    measure: str | None  # of ours; None where there is none of both rows
    ours: Difference | None  # first minus second, in the direction in which more is better
    bootstrap: Interval | None
    margin: float | None
    verdict: Verdict
    expected: str | None

    @property
    def why(self) -> str:
        """Why there is no verdict."""
        if self.measure is None:
            return "not measured"
        return "one seed" if self.ours is None else ""


@dataclass(frozen=True)
class RowFinding:
    """One row: every measure by seed, of the untrained copy, and what it took."""

    title: str
    key: str | None
    seeds: list[int]
    values: dict[str, list[float]]
    intervals: dict[str, Interval]
    untrained: dict[str, float]
    published: dict[str, float]
    counted: Counted | None
    failed: str | None = None
    left_out: str | None = None


@dataclass(frozen=True)
class TableFinding:
    """All of a table."""

    table: PaperTable
    scale: str
    rows: dict[str, RowFinding]
    pairs: list[PairFinding]
    orders: list[ColumnOrder] = field(default_factory=list)

    def count(self, said: Verdict) -> int:
        """How many of the pairs that were measured have a verdict."""
        return sum(pair.verdict == said for pair in self.pairs if pair.measure is not None)

    @property
    def unmeasured(self) -> int:
        """Pairs of which we have no measure."""
        return sum(pair.measure is None for pair in self.pairs)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "table": self.table.name, "scale": self.scale,
            "rows": {name: asdict(row) for name, row in self.rows.items()},
            "pairs": [asdict(pair) for pair in self.pairs],
        }  # fmt: skip


def find_out(table: PaperTable, plan: FrozenPlan | None, out: Path | None) -> TableFinding:
    """Collect what was measured so far, and judge it."""
    rows: dict[str, RowFinding] = {}
    scored: dict[str, dict[str, Scored]] = {}  # by measure, by row
    runs = {name: _read_runs(table, name, plan, out) for name in table.rows}
    tasks = common_tasks(one for done in runs.values() for one in done.measured)
    for name, row in table.rows.items():
        done = runs[name]
        values = _by_measure([with_mean(one, tasks) for one in done.measured])
        untrained = with_mean(done.untrained, tasks)
        for measure, ones in values.items():
            if (found := _scored(ones)) is not None:
                scored.setdefault(measure, {})[name] = found
        left_out = plan.left_out.get(table.name, {}).get(name) if plan is not None else None
        rows[name] = RowFinding(
            row.title, done.key, done.seeds,
            {m: [one.value for one in ones] for m, ones in values.items()},
            {m: _interval(ones) for m, ones in values.items()},
            {m: one.value for m, one in untrained.items()}, dict(row.published),
            _counted(table, name), done.failed, left_out,
        )  # fmt: skip
    scale = plan.scale if plan is not None else "full"
    pairs = [*_ordered_pairs(table, scored, scale), *_same_pairs(table, scored, scale)]
    return TableFinding(table, scale, rows, pairs, _orders(table, scored, pairs))


@dataclass(frozen=True)
class _RowRuns:
    """What was measured of a row's runs, and of the untrained copy."""

    key: str | None = None
    seeds: list[int] = field(default_factory=list)
    measured: list[dict[str, Measurement]] = field(default_factory=list)
    untrained: dict[str, Measurement] = field(default_factory=dict)
    failed: str | None = None


def _read_runs(table: PaperTable, name: str, plan: FrozenPlan | None, out: Path | None) -> _RowRuns:
    if plan is None or out is None or name not in plan.rows.get(table.name, {}):
        return _RowRuns()
    key = plan.rows[table.name][name].key
    folder = out / ROWS / key
    seeds = seeds_done(folder)[: plan.seeds]
    measured = [read_measurements(run_folder(folder, seed)) for seed in seeds]
    return _RowRuns(key, seeds, measured, read_measurements(run_folder(folder, 0)), failure(folder))


def _by_measure(measured: list[dict[str, Measurement]]) -> dict[str, list[Measurement]]:
    """Measures that all seeds have, so that seeds stay paired; none that is no number."""
    if not measured:
        return {}
    names = [
        name for name in measured[0] if all(name in one and one[name].is_finite for one in measured)
    ]
    return {name: [one[name] for one in measured] for name in names}


def _scored(ones: list[Measurement]) -> Scored | None:
    if len({len(one.blocks) for one in ones}) != 1:
        return None
    return Scored(np.asarray([one.value for one in ones]), np.asarray([one.blocks for one in ones]))


def _interval(ones: list[Measurement]) -> Interval:
    """Over seeds; one seed has no interval."""
    values = [one.value for one in ones]
    return mean_interval(values) if len(values) > 1 else Interval(values[0], values[0], values[0])


def _counted(table: PaperTable, name: str) -> Counted | None:
    column = next((c for c, one in table.columns.items() if "parameters" in one.measures), None)
    if column is None:
        return None
    row = table.rows[name]
    parts = parameters(table.row_preset(name))
    total, published = parts["total"], row.published.get(column)
    bare = total - parts.get("pooler", 0)
    return Counted(total, bare, published, _remark(total, bare, published, row.note))


def _remark(total: int, bare: int, published: float | None, note: str) -> str:
    if published is None:
        return note
    if round(total / 1e6) == published:
        return "as printed, with the pooler"
    if round(bare / 1e6) == published:
        return "as printed, without the pooler"
    if not note:
        raise SettingsError(f"{published:g} million is printed, {total:,} are counted: say why")
    return note


def _ordered_pairs(
    table: PaperTable, scored: Mapping[str, dict[str, Scored]], scale: str
) -> Iterator[PairFinding]:
    for name in table.columns:
        for better, worse, difference in published_pairs(table, name):
            yield _judged(table, scored, scale, name, better, worse, difference, None)


def published_pairs(table: PaperTable, name: str) -> Iterator[tuple[str, str, float | None]]:
    """The pairs that a column separates by a point or more, the better row first."""
    column = table.columns[name]
    have = {r: row.published[name] for r, row in table.rows.items() if name in row.published}
    if all(MEASURES[measure].unit == POINTS for measure in column.measures):
        for one, other in combinations(have, 2):
            ahead = (have[one] - have[other]) * (1 if column.higher_is_better else -1)
            if abs(ahead) >= table.separation - 1e-9:
                better, worse = (one, other) if ahead > 0 else (other, one)
                yield better, worse, abs(ahead)
    for claim in table.orders:
        if claim.column == name:
            yield claim.better, claim.worse, None


def _same_pairs(
    table: PaperTable, scored: Mapping[str, dict[str, Scored]], scale: str
) -> Iterator[PairFinding]:
    for claim in table.same:
        values = [table.rows[r].published.get(claim.column) for r in (claim.first, claim.second)]
        known = [value for value in values if value is not None]
        difference = known[0] - known[1] if len(known) == 2 else None
        yield _judged(
            table, scored, scale, claim.column, claim.first, claim.second, difference,
            claim.margin,
        )  # fmt: skip


def _judged(
    table: PaperTable, scored: Mapping[str, dict[str, Scored]], scale: str, name: str,
    first: str, second: str, published: float | None, margin: float | None,
) -> PairFinding:  # fmt: skip
    column = table.columns[name]
    have = (m for m in column.measures if {first, second} <= scored.get(m, {}).keys())
    measure = next(have, None)
    ours, drawn = None, None
    if measure is not None:
        rows = _directed(scored[measure], MEASURES[measure].higher_is_better)
        rows = _alike(rows, first)
        ours = compare(rows, first, second) if second in rows else None
        if ours is not None:
            seeds = min(len(rows[first].values_S), len(rows[second].values_S))
            blocks = rows[first].blocks_SB[:seeds] - rows[second].blocks_SB[:seeds]
            drawn = bootstrap_crossed(blocks) if blocks.shape[1] else None
    expected = table.expectations.get(scale)  # type: ignore[call-overload]
    return PairFinding(
        name, first, second, "order" if margin is None else "same", published, measure, ours, drawn,
        margin, verdict(ours, 1) if margin is None else equivalence(ours, margin),
        None if expected is None else expected.verdicts.get(name),
    )  # fmt: skip


def _directed(rows: Mapping[str, Scored], higher_is_better: bool) -> dict[str, Scored]:
    """Signs so that more is better."""
    sign = 1.0 if higher_is_better else -1.0
    return {name: Scored(sign * one.values_S, sign * one.blocks_SB) for name, one in rows.items()}


def _alike(rows: Mapping[str, Scored], first: str) -> dict[str, Scored]:
    """Rows that were asked the same blocks."""
    blocks = rows[first].blocks_SB.shape[1]
    return {name: one for name, one in rows.items() if one.blocks_SB.shape[1] == blocks}


def _orders(
    table: PaperTable, scored: Mapping[str, dict[str, Scored]], pairs: list[PairFinding]
) -> list[ColumnOrder]:
    """What the permutation test over tables takes: rows that all judged columns have."""
    judged = [pair for pair in pairs if pair.kind == "order" and pair.ours is not None]
    used = {(pair.column, pair.measure): pair.ours for pair in judged if pair.measure}
    if not used:
        return []
    common = [r for r in table.rows if all(r in scored[m] for _, m in used)]
    found = []
    for (column, measure), ours in used.items():
        assert ours is not None
        sign = 1.0 if MEASURES[measure].higher_is_better else -1.0
        error = max(ours.error, 1e-12)
        values = [sign * float(scored[measure][r].values_S.mean()) / error for r in common]
        places = [
            (common.index(pair.first), common.index(pair.second))
            for pair in judged
            if (pair.column, pair.measure) == (column, measure)
            and {pair.first, pair.second} <= set(common)
        ]
        found.append(ColumnOrder(values, places))
    return found

"""The grid behind some tables: which rows, how many tokens each. Frozen when it begins.

A budget of time is for all of it: the speed of every row is measured here first, and the tokens
that follow are written into OUT/grid.json, so that the same command goes on with the same numbers
whatever the machine does meanwhile. A budget of tokens is that of each run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from litebert.base.budget import Budget, parse_budget
from litebert.base.errors import FileError, SettingsError
from litebert.base.files import json_text, read_json, write_atomic
from litebert.base.settings import Settings
from litebert.configs.schema import Preset
from litebert.corpus.store import Store
from litebert.reproduction.row import GridRow
from litebert.reproduction.scale import SCALES, BudgetScale, leaves_out, scale_for, scaled_preset
from litebert.reproduction.table import PaperTable
from litebert.train.build import fit_to_corpus
from litebert.train.speed import measure_speed

GRID, ROWS = "grid.json", "rows"
GRID_VERSION = 1
TRAINING_FRACTION = 0.7  # of a budget of time; the rest is for measuring
FEWEST_STEPS = 40  # of a run: fewer end before the learning rate has risen and fallen
MEASURED_SECONDS = 2.0

Speed = Callable[[Preset], float]  # tokens a second


class FrozenPlan(Settings):
    """What one command trains: decided once."""

    scale: str
    seeds: int = Field(ge=1)
    rows: dict[str, dict[str, GridRow]] = Field(description="by table, by row")
    left_out: dict[str, dict[str, str]] = Field(
        default_factory=dict, description="by table, by row: why"
    )
    seconds: float | None = Field(default=None, description="expected, where speed was measured")

    @property
    def unique(self) -> dict[str, GridRow]:
        """Rows by key, each once, in the order of the tables."""
        return {row.key: row for rows in self.rows.values() for row in rows.values()}


@dataclass(frozen=True)
class GridRequest:
    """What the user asked for; equal requests get the same plan."""

    tables: Sequence[PaperTable]
    budget: str
    seeds: int
    scale: str | None = None

    @property
    def name(self) -> str:
        names = "+".join(f"{table.name}:{','.join(table.rows)}" for table in self.tables)
        return f"{names} {self.budget} seeds={self.seeds} scale={self.scale or 'by budget'}"


def open_plan(
    request: GridRequest, store: Store, out: Path, speed: Speed | None = None
) -> FrozenPlan:
    """The plan of a request: the one that was begun in this folder, or a new one."""
    content = _read(out, store)
    if request.name in content["plans"]:
        return FrozenPlan.build(content["plans"][request.name], f"{out / GRID}, {request.name}")
    plan = make_plan(request, store, speed or partial(_measured_speed, store))
    content["plans"][request.name] = plan.model_dump(mode="json")
    write_atomic(out / GRID, json_text(content).encode())
    return plan


def _read(out: Path, store: Store) -> dict[str, Any]:
    if not os.path.lexists(out / GRID):
        return {"format": GRID_VERSION, "corpus": store.checksum, "plans": {}}
    content = read_json(out / GRID)
    if content.get("format") != GRID_VERSION or not isinstance(content.get("plans"), dict):
        raise FileError(f"{out / GRID}: damaged, or written by another version")
    if content.get("corpus") != store.checksum:
        raise FileError(
            f"{out}: began with another corpus than {store.folders[0]}; give that corpus, or name "
            "another --out"
        )
    return content


def make_plan(request: GridRequest, store: Store, speed: Speed) -> FrozenPlan:
    """BudgetScale, speeds, tokens, rows."""
    budget = parse_budget(request.budget)
    if budget.kind == "steps":
        raise SettingsError(f"--budget {request.budget}: give a time for all (2h) or tokens a run")
    trained = [table for table in request.tables if table.compare != "counts"]
    scale = scale_of(request, trained, budget)
    left_out = {
        table.name: {
            row: why for row in table.rows if (why := leaves_out(table, row, scale)) is not None
        }
        for table in trained
    }
    presets = {
        (table.name, row): fit_to_corpus(scaled_preset(table, row, scale), store)
        for table in trained
        for row in table.rows
        if row not in left_out[table.name]
    }
    tokens, seconds = tokens_of_runs(trained, presets, scale, request, budget, speed)
    rows: dict[str, dict[str, GridRow]] = {table.name: {} for table in trained}
    for table in trained:
        for row in table.rows:
            if (table.name, row) in presets:
                _add(rows[table.name], table, row, presets, tokens, scale, store.checksum)
    return FrozenPlan(
        scale=scale.name, seeds=request.seeds, rows=rows, left_out=left_out, seconds=seconds
    )


def scale_of(request: GridRequest, tables: Sequence[PaperTable], budget: Budget) -> BudgetScale:
    """The scale that a request names, or that its budget allows."""
    if request.scale is not None:
        return SCALES[request.scale]
    runs = max(sum(len(table.rows) for table in tables) * request.seeds, 1)
    if budget.kind == "seconds":
        return scale_for(TRAINING_FRACTION * budget.amount / runs, None)
    return scale_for(None, budget.amount)


def _add(
    rows: dict[str, GridRow], table: PaperTable, name: str, presets: dict[tuple[str, str], Preset],
    tokens: dict[tuple[str, str], int], scale: BudgetScale, corpus: str,
) -> None:  # fmt: skip
    """A row after the one it starts from."""
    if name in rows:
        return
    parent = table.rows[name].start_from
    if parent is not None:
        _add(rows, table, parent, presets, tokens, scale, corpus)
    settings = presets[table.name, name].model_dump(mode="json")
    amount = tokens[table.name, name]
    rows[name] = GridRow(
        settings=settings, corpus=corpus, tokens=amount, learning_rates=scale.learning_rates,
        sweep_tokens=int(amount * scale.sweep),
        start_from=None if parent is None else rows[parent].key,
    )  # fmt: skip


def tokens_of_runs(
    tables: Sequence[PaperTable], presets: dict[tuple[str, str], Preset], scale: BudgetScale,
    request: GridRequest, budget: Budget, speed: Speed,
) -> tuple[dict[tuple[str, str], int], float | None]:  # fmt: skip
    """Tokens of each run; and the seconds that all will take, where speeds were measured."""
    runs = request.seeds + scale.sweep * len(scale.learning_rates)  # a row's, the sweep included
    of_time = {table.name for table in tables if table.compare == "time"}
    if budget.kind == "tokens" and not of_time:
        tokens = {place: int(budget.amount) for place in presets}
        _check_size(tokens, presets, request)
        return tokens, None
    speeds = _speeds(presets, speed)
    if budget.kind == "tokens":  # of the fastest row of an equal-time table
        seconds = budget.amount / max(speeds.values())
        each = {place: seconds for place in presets if place[0] in of_time}
        tokens = {place: int(budget.amount) for place in presets}
    else:
        # A row that stands in several tables is trained once.
        unique = {_identity(preset): speeds[place] for place, preset in presets.items()}
        total = TRAINING_FRACTION * budget.amount
        equal = total / (runs * sum(1 / s for s in unique.values()))
        seconds = total / (runs * len(unique))
        each = {place: seconds for place in presets if place[0] in of_time}
        tokens = dict.fromkeys(presets, _rounded(equal))
    tokens |= {place: _rounded(seconds * speeds[place]) for place, seconds in each.items()}
    _check_size(tokens, presets, request)
    expected = {_identity(p): runs * tokens[place] / speeds[place] for place, p in presets.items()}
    return tokens, sum(expected.values()) / TRAINING_FRACTION


def _speeds(presets: dict[tuple[str, str], Preset], speed: Speed) -> dict[tuple[str, str], float]:
    known: dict[str, float] = {}
    for preset in presets.values():
        if _identity(preset) not in known:
            known[_identity(preset)] = speed(preset)
    return {place: known[_identity(preset)] for place, preset in presets.items()}


def _identity(preset: Preset) -> str:
    return preset.model_dump_json(exclude={"title"})


def _measured_speed(store: Store, preset: Preset) -> float:
    data = preset.data
    found = measure_speed(preset, data.batch_size, data.max_length, MEASURED_SECONDS, store)
    return found.tokens_per_second


def _rounded(tokens: float) -> int:
    """Two digits are enough, and easier to read."""
    digits = max(len(str(int(tokens))) - 2, 0)
    return int(tokens) // 10**digits * 10**digits


def _check_size(
    tokens: dict[tuple[str, str], int], presets: dict[tuple[str, str], Preset], request: GridRequest
) -> None:
    for place, preset in presets.items():
        step = preset.data.batch_size * preset.data.max_length
        if tokens[place] < FEWEST_STEPS * step:
            raise SettingsError(
                f"--budget {request.budget} is too small: table {place[0]}, row {place[1]!r} would "
                f"train on {tokens[place]:,} tokens, {tokens[place] // step} steps, and needs "
                f"{FEWEST_STEPS * step:,}; give more, or fewer tables or --seeds"
            )

"""The plan of a run as one dictionary, and several of them side by side as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from litebert.base.budget import Budget, parse_budget
from litebert.base.errors import SettingsError
from litebert.base.runtime import Precision, default_device, resolve_precision
from litebert.planning.count import TRAINING_PASSES, flops_per_token, parameters
from litebert.planning.measure import measure
from litebert.planning.memory import peak_memory
from litebert.presets.load import load_preset
from litebert.presets.recipe import Preset

Plan = dict[str, Any]


def plan(
    preset: str,
    sets: Sequence[str] = (),
    *,
    batch: int = 32,
    length: int = 128,
    budget: str | None = None,
    measured: bool = False,
    precision: Precision = "auto",
    checkpointing: bool = False,
) -> Plan:
    """What training a preset takes: parameters, FLOPs, memory, and with `measured` the time."""
    settings = load_preset(preset, sets)
    longest = settings.model.longest_sequence
    if batch < 1 or not 1 <= length <= longest:
        raise SettingsError(
            f"{preset}: batch {batch} and length {length} do not fit; "
            f"batch is at least 1, length 1 to {longest} (model.max_position_embeddings)"
        )
    allowance = None if budget is None else parse_budget(budget)
    forward = flops_per_token(settings, length)
    passes = TRAINING_PASSES + checkpointing
    result: Plan = {
        "preset": preset,
        "title": settings.title,
        "batch": batch,
        "length": length,
        "precision": resolve_precision(precision, default_device()),
        "parameters": parameters(settings),
        "flops_per_token": {
            "forward": sum(forward.values()),
            "training": passes * sum(forward.values()),
            "items": forward,
        },
        "memory": peak_memory(settings, batch, length, precision, checkpointing),
    }
    if measured:
        result["measured"] = _measured(settings, batch, length, precision, checkpointing)
    if allowance is not None:
        result["budget"] = _budget(result, allowance)
    return result


def _measured(
    settings: Preset, batch: int, length: int, precision: Precision, checkpointing: bool
) -> dict[str, float]:
    found = measure(settings, batch, length, precision, checkpointing)
    return {
        "seconds_per_step": found.seconds_per_step,
        "tokens_per_second": found.tokens_per_second,
        "steps_taken": found.steps,
    }


def _budget(result: Plan, allowance: Budget) -> dict[str, float]:
    """The budget in every unit that can be known; seconds need a measurement."""
    per_step = result["batch"] * result["length"]
    speed = result.get("measured", {}).get("tokens_per_second")
    if allowance.kind == "seconds":
        if speed is None:
            raise SettingsError("a budget of time needs --measure to know what fits into it")
        tokens = allowance.amount * speed
    else:
        tokens = allowance.amount * (per_step if allowance.kind == "steps" else 1)
    spent = {
        "tokens": tokens,
        "steps": tokens / per_step,
        "flops": tokens * result["flops_per_token"]["training"],
    }
    return spent if speed is None else {**spent, "seconds": tokens / speed}


def table(plans: Sequence[Plan]) -> Table:
    """Plans side by side, as the paper's tables have them: a column each."""
    grid = Table(title=f"batch {plans[0]['batch']} x length {plans[0]['length']}", title_style="")
    grid.add_column("")
    for one in plans:
        grid.add_column(one["preset"], justify="right")
    for label, values in _rows(plans):
        if label == "":
            grid.add_section()
        else:
            grid.add_row(label, *values)
    return grid


def _rows(plans: Sequence[Plan]) -> list[tuple[str, list[str]]]:
    rows = [
        ("parameters (encoder + pooler)", [f"{p['parameters']['total']:,}" for p in plans]),
        ("  with heads", [f"{p['parameters']['with_heads']:,}" for p in plans]),
        *_part_rows(plans, "parameters", lambda n: f"{n:,}", {"total", "with_heads"}),
        ("", []),
        ("FLOPs a token, forward", [_si(p["flops_per_token"]["forward"]) for p in plans]),
        ("  training", [_si(p["flops_per_token"]["training"]) for p in plans]),
        *_item_rows(plans),
        ("", []),
        ("peak memory, training", [_gigabytes(p["memory"]["total"]) for p in plans]),
        *_part_rows(plans, "memory", _gigabytes, {"total"}),
    ]
    if any("measured" in p for p in plans):
        rows += [("", []), *_speed_rows(plans)]
    if any("budget" in p for p in plans):
        rows += [("", []), *_budget_rows(plans)]
    return rows


def _part_rows(
    plans: Sequence[Plan], key: str, show: Any, leave_out: set[str]
) -> list[tuple[str, list[str]]]:
    names = [name for p in plans for name in p[key] if name not in leave_out]
    return [
        (f"  {name}", [show(p[key][name]) if name in p[key] else "" for p in plans])
        for name in dict.fromkeys(names)
    ]


def _item_rows(plans: Sequence[Plan]) -> list[tuple[str, list[str]]]:
    items = [{"items": p["flops_per_token"]["items"]} for p in plans]
    return _part_rows(items, "items", _si, set())


def _speed_rows(plans: Sequence[Plan]) -> list[tuple[str, list[str]]]:
    speeds = [p["measured"]["tokens_per_second"] for p in plans]
    return [
        ("tokens/s here", [f"{speed:,.0f}" for speed in speeds]),
        ("  relative to the last", [f"{speed / speeds[-1]:.2f}x" for speed in speeds]),
        ("  seconds a step", [f"{p['measured']['seconds_per_step']:.3f}" for p in plans]),
    ]


def _budget_rows(plans: Sequence[Plan]) -> list[tuple[str, list[str]]]:
    rows = [
        ("budget: tokens", [_si(p["budget"]["tokens"]) for p in plans]),
        ("  steps", [f"{p['budget']['steps']:,.0f}" for p in plans]),
        ("  FLOPs", [_si(p["budget"]["flops"]) for p in plans]),
    ]
    if all("seconds" in p["budget"] for p in plans):
        rows.append(("  time", [_duration(p["budget"]["seconds"]) for p in plans]))
    return rows


def _si(value: float) -> str:
    for unit in ("", "k", "M", "G", "T", "P", "E"):
        if abs(value) < 1000:
            return f"{value:.3g} {unit}".rstrip()
        value /= 1000
    return f"{value:.3g} Z"


def _gigabytes(value: float) -> str:
    return f"{value / 1e9:.2f} GB"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"

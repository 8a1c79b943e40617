"""The plan of a run, and several of them side by side as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from litebert.base.budget import Budget
from litebert.base.errors import SettingsError
from litebert.base.runtime import default_device, resolve_precision
from litebert.configs.schema import Preset
from litebert.planning.cluster import Cluster, ClusterPlan, plan_cluster
from litebert.planning.count import TRAINING_PASSES, flops_per_token, parameters
from litebert.planning.memory import peak_memory


@dataclass(frozen=True)
class Speed:
    """What a few real steps showed."""

    seconds_per_step: float
    tokens_per_second: float
    steps_taken: int


@dataclass(frozen=True)
class Spending:
    """A budget in every unit that can be known; seconds need a measured speed."""

    tokens: float
    steps: float
    flops: float
    seconds: float | None
    passes: float | None = None  # over the text of a corpus, where one is given


@dataclass(frozen=True)
class Plan:
    """What training a preset takes. FLOPs are a token's, memory is of one micro-batch."""

    preset: str
    title: str
    batch_size: int
    max_length: int
    precision: str
    parameters: dict[str, int]
    forward_flops: float
    training_flops: float
    flops: dict[str, float]  # of the forward pass, by part
    memory: dict[str, int]
    speed: Speed | None = None
    budget: Spending | None = None
    cluster: ClusterPlan | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def micro_batch_size(preset: Preset, batch_size: int, max_length: int) -> int:
    """Sequences of one forward pass."""
    return max(min(batch_size, preset.data.micro_batch_tokens // max_length), 1)


def make_plan(
    name: str, preset: Preset, batch_size: int, max_length: int, devices: int = 1
) -> Plan:
    """The arithmetic of a plan. Before anything is measured: that leaves memory behind."""
    forward = flops_per_token(preset, max_length)
    training = (TRAINING_PASSES + preset.activation_checkpointing) * sum(forward.values())
    sequences = micro_batch_size(preset, max(batch_size // devices, 1), max_length)
    return Plan(
        preset=name,
        title=preset.title,
        batch_size=batch_size,
        max_length=max_length,
        precision=resolve_precision(preset.precision, default_device()),
        parameters=parameters(preset),
        forward_flops=sum(forward.values()),
        training_flops=training,
        flops=forward,
        memory=peak_memory(
            preset, sequences, max_length, preset.precision, preset.activation_checkpointing
        ),
    )


def spend(
    plan: Plan, budget: Budget, speed: Speed | None, text_tokens: float | None = None
) -> Spending:
    """What a budget buys; `text_tokens` are those of a corpus."""
    tokens_per_step = plan.batch_size * plan.max_length
    if budget.kind == "seconds":
        if speed is None:
            raise SettingsError("a budget of time needs --measure to know what fits into it")
        tokens = budget.amount * speed.tokens_per_second
    else:
        tokens = budget.amount * (tokens_per_step if budget.kind == "steps" else 1)
    seconds = None if speed is None else tokens / speed.tokens_per_second
    passes = None if text_tokens is None else tokens / max(text_tokens, 1)
    return Spending(tokens, tokens / tokens_per_step, tokens * plan.training_flops, seconds, passes)


def on_cluster(plan: Plan, cluster: Cluster, budget: Budget) -> ClusterPlan:
    """A plan on many devices; their speed is given, or was measured on this one."""
    tokens = plan.batch_size * plan.max_length
    speed = cluster.flops or (plan.speed and plan.speed.tokens_per_second * plan.training_flops)
    if not speed:
        raise SettingsError(
            "--devices: say what one of them sustains (--flops 400T), or measure this one "
            "(--measure)"
        )
    if budget.kind == "seconds":
        raise SettingsError("--devices: give the budget in steps or tokens, to learn the time")
    steps = budget.amount / (1 if budget.kind == "steps" else tokens)
    trained = sum(n for name, n in plan.parameters.items() if name not in ("total", "with_heads"))
    return plan_cluster(
        cluster, parameters=trained, flops=tokens * plan.training_flops, steps=steps,
        flops_per_second=speed,
    )  # fmt: skip


Rows = list[tuple[str, list[str]]]


def table(plans: Sequence[Plan]) -> Table:
    """Plans side by side, as the paper's tables have them: a column each."""
    grid = Table("", *(plan.preset for plan in plans))
    for column in grid.columns[1:]:
        column.justify = "right"
    for section in _sections(plans):
        for label, values in section:
            grid.add_row(label, *values)
        grid.add_section()
    return grid


def _sections(plans: Sequence[Plan]) -> list[Rows]:
    def row(label: str, show: Callable[[Plan], str]) -> tuple[str, list[str]]:
        return label, [show(plan) for plan in plans]

    return [
        [row("batch x length", lambda plan: f"{plan.batch_size:,} x {plan.max_length}")],
        [
            row("parameters (encoder + pooler)", lambda plan: f"{plan.parameters['total']:,}"),
            row("  with heads", lambda plan: f"{plan.parameters['with_heads']:,}"),
            *_part_rows([plan.parameters for plan in plans], "{:,}".format),
        ],
        [
            row("FLOPs a token, forward", lambda plan: _si(plan.forward_flops)),
            row("  training", lambda plan: _si(plan.training_flops)),
            *_part_rows([plan.flops for plan in plans], _si),
        ],
        [
            row("peak memory, training", lambda plan: _gigabytes(plan.memory["total"])),
            *_part_rows([plan.memory for plan in plans], _gigabytes),
        ],
        _speed_rows([plan.speed for plan in plans if plan.speed is not None]),
        _budget_rows([plan.budget for plan in plans if plan.budget is not None]),
        cluster_rows([plan.cluster for plan in plans if plan.cluster is not None]),
    ]


def _part_rows(parts: Sequence[Mapping[str, float]], show: Callable[[Any], str]) -> Rows:
    names = [name for part in parts for name in part if name not in ("total", "with_heads")]
    return [
        (f"  {name}", [show(part[name]) if name in part else "" for part in parts])
        for name in dict.fromkeys(names)
    ]


def _speed_rows(speeds: Sequence[Speed]) -> Rows:
    if not speeds:
        return []
    last = speeds[-1].tokens_per_second
    return [
        ("tokens/s here", [f"{speed.tokens_per_second:,.0f}" for speed in speeds]),
        ("  relative to the last", [f"{s.tokens_per_second / last:.2f}x" for s in speeds]),
        ("  seconds a step", [f"{speed.seconds_per_step:,.3f}" for speed in speeds]),
    ]


def _budget_rows(budgets: Sequence[Spending]) -> Rows:
    if not budgets:
        return []
    times = [_duration(b.seconds) for b in budgets if b.seconds is not None]
    passes = [f"{b.passes:,.1f}" for b in budgets if b.passes is not None]
    return [
        ("budget: tokens", [_si(budget.tokens) for budget in budgets]),
        ("  steps", [f"{budget.steps:,.0f}" for budget in budgets]),
        ("  FLOPs", [_si(budget.flops) for budget in budgets]),
        *([("  time", times)] if times else []),
        *([("  passes over the text", passes)] if passes else []),
    ]


def cluster_rows(found: Sequence[ClusterPlan]) -> Rows:
    """A step and a run on many devices."""
    if not found:
        return []
    last = found[-1].bytes_per_petaflop
    costs = [f"{plan.cost:,.0f}" for plan in found if plan.cost is not None]
    energy = [f"{plan.energy:,.0f} kWh" for plan in found if plan.energy is not None]
    return [
        ("devices (hosts)", [f"{plan.devices} ({plan.hosts})" for plan in found]),
        ("  a step: compute", [_seconds(plan.compute) for plan in found]),
        ("  a step: communication", [_seconds(plan.communication) for plan in found]),
        ("  communication, of a step", [f"{plan.fraction:.1%}" for plan in found]),
        ("  sent by a host, a step", [f"{_si(plan.sent_bytes)}B" for plan in found]),
        ("  gradients by compute", [f"{_si(p.bytes_per_petaflop)}B/PFLOP" for p in found]),
        ("    relative to the last", [f"{p.bytes_per_petaflop / last:.2f}x" for p in found]),
        ("  steps", [f"{plan.steps:,.0f}" for plan in found]),
        ("  time", [_duration(plan.seconds) for plan in found]),
        *([("  energy", energy)] if energy else []),
        *([("  cost", costs)] if costs else []),
    ]


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 or not value else f"{value * 1000:.3g} ms"


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

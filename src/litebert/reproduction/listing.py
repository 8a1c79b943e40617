"""What there is to reproduce, and what a budget would come to on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from litebert.base.budget import parse_budget
from litebert.base.errors import SettingsError
from litebert.configs.schema import Preset
from litebert.planning.count import flops_per_token
from litebert.reproduction.grid import GridRequest, scale_of, tokens_of_runs
from litebert.reproduction.scale import leaves_out, scaled_preset
from litebert.reproduction.table import PaperTable
from litebert.train.speed import measure_speed

MEASURED_SECONDS = 1.0


@dataclass(frozen=True)
class Listed:
    """One table, and what the budget means for it."""

    table: PaperTable
    scale: str = ""
    tokens: tuple[int, int] | None = None  # of a run: the least, the most
    remark: str = ""  # what is expected of the budget, or why it does not do


def list_tables(tables: Sequence[PaperTable], budget: str, seeds: int) -> list[Listed]:
    """Every table by itself on the budget; the speed of one row is measured, others follow from it.

    Other rows are taken to be slower or faster as their FLOPs a token are more or fewer.
    """
    known: dict[str, float] = {}  # FLOPs a second, by scale
    return [_listed(table, budget, seeds, known) for table in tables]


def _listed(table: PaperTable, budget: str, seeds: int, known: dict[str, float]) -> Listed:
    if table.compare == "counts":
        return Listed(table, remark="counted at once")
    request, allowed = GridRequest([table], budget, seeds), parse_budget(budget)
    scale = scale_of(request, [table], allowed)
    rows = [row for row in table.rows if leaves_out(table, row, scale) is None]
    presets = {(table.name, row): scaled_preset(table, row, scale) for row in rows}
    expected = table.expectations.get(scale.name)
    remark = "" if expected is None else expected.says

    def speed(preset: Preset) -> float:
        flops = sum(flops_per_token(preset, preset.data.max_length).values())
        if scale.name not in known:
            known[scale.name] = flops * _measured(preset)
        return known[scale.name] / flops

    try:
        tokens, _ = tokens_of_runs([table], presets, scale, request, allowed, speed)
    except SettingsError as error:
        return Listed(table, scale.name, remark=str(error))
    return Listed(table, scale.name, (min(tokens.values()), max(tokens.values())), remark)


def _measured(preset: Preset) -> float:
    size, length = preset.data.batch_size, preset.data.max_length
    return measure_speed(preset, size, length, seconds=MEASURED_SECONDS).tokens_per_second

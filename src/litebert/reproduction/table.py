"""A table of a paper as data: its claim, its rows as changes of a preset, what was published.

A shipped table is a TOML file in tables/; a user's own is a file of the same form. Settings in a
file are those of the paper's own scale; `scale.py` shrinks them to a budget by one stated rule.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from litebert.base.errors import FileError, SettingsError, did_you_mean
from litebert.base.settings import Settings, Tree, merge, read_toml
from litebert.configs.load import load_preset
from litebert.configs.schema import Preset
from litebert.reproduction.measures import MEASURES

ScaleName = Literal["minutes", "hour", "eight_hours", "full"]
Expected = Literal["agrees", "contradicts", "undecided"]
ALL = "all"


class TableRow(Settings):
    """One row: a preset with changes, and what the paper printed for it."""

    title: str
    preset: str | None = Field(default=None, description="instead of the table's")
    set: dict[str, Any] = Field(
        default_factory=dict, description="settings by their dotted names, at the paper's scale"
    )
    start_from: str | None = Field(
        default=None, description="another row, whose model this one goes on from"
    )
    published: dict[str, float] = Field(default_factory=dict, description="by column")
    note: str = Field(default="", description="why a printed value is not what we count")


class TableColumn(Settings):
    """What the paper measured, and which of our measures stands for it."""

    title: str
    measures: tuple[str, ...] = Field(
        description="the first one that both rows of a pair have is compared"
    )
    higher_is_better: bool = Field(default=True, description="of the published figure")

    @model_validator(mode="after")
    def _known(self) -> Self:
        for name in self.measures:
            if name not in MEASURES:
                raise ValueError(f"unknown measure {name!r}; {did_you_mean(name, MEASURES)}")
        return self


class OrderClaim(Settings):
    """A pair that the paper puts in order without figures that could be subtracted."""

    column: str
    better: str
    worse: str


class SameClaim(Settings):
    """A pair that the paper calls equal: tested for equivalence within a margin."""

    column: str
    first: str
    second: str
    margin: float = Field(default=1.0, gt=0, description="points")


class Expectation(Settings):
    """What we expect at a budget, written down before the runs."""

    says: str
    verdicts: dict[str, Expected] = Field(default_factory=dict, description="by column")


class PaperTable(Settings):
    """A table, or a figure, of a paper."""

    name: str
    title: str
    source: str = Field(description="where the published values stand")
    claim: str = Field(description="one sentence")
    compare: Literal["tokens", "time", "counts"] = Field(
        description="rows are trained on equal tokens, for equal time, or only counted"
    )
    preset: str = Field(description="what rows are changes of")
    varies: tuple[Literal["depth", "batch_size", "dropout"], ...] = Field(
        default=(), description="what the scale rule leaves in proportion, as it is the question"
    )
    separation: float = Field(
        default=1.0, gt=0, description="points between published values that make a pair"
    )
    columns: dict[str, TableColumn]
    rows: dict[str, TableRow]
    orders: tuple[OrderClaim, ...] = ()
    same: tuple[SameClaim, ...] = ()
    expectations: dict[ScaleName, Expectation] = Field(default_factory=dict)
    cannot_show: str = Field(default="", description="what small budgets leave open, and why")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for name, row in self.rows.items():
            if row.start_from is not None and row.start_from not in self.rows:
                raise ValueError(f"row {name!r} starts from unknown row {row.start_from!r}")
            self._check_columns(f"row {name!r}", row.published)
        for claim in self.orders:
            self._check_claim(claim.column, (claim.better, claim.worse))
        for claim in self.same:
            self._check_claim(claim.column, (claim.first, claim.second))
        for scale, expected in self.expectations.items():
            self._check_columns(f"the expectation for {scale}", expected.verdicts)
        return self

    def _check_columns(self, where: str, columns: Iterable[str]) -> None:
        for column in columns:
            if column not in self.columns:
                raise ValueError(
                    f"{where} has unknown column {column!r}; {did_you_mean(column, self.columns)}"
                )

    def _check_claim(self, column: str, rows: Iterable[str]) -> None:
        self._check_columns("a claim", [column])
        for row in rows:
            if row not in self.rows:
                raise ValueError(f"a claim has unknown row {row!r}; {did_you_mean(row, self.rows)}")

    def row_preset(self, name: str) -> Preset:
        """The row's run at the paper's own scale."""
        row = self.rows[name]
        tree: Tree = load_preset(row.preset or self.preset).model_dump()
        for key, value in row.set.items():
            branch: Any = value
            for step in reversed(key.split(".")):
                branch = {step: branch}
            tree = merge(tree, branch)
        return Preset.build(tree, f"table {self.name}, row {name!r}")


def table_names() -> list[str]:
    """The shipped tables, in the papers' order."""
    files = resources.files("litebert.reproduction.tables").iterdir()
    names = [file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")]
    return sorted(names, key=lambda name: (not name.startswith("t"), len(name), name))


def load_table(name: str) -> PaperTable:
    """A shipped table by its name, or a file of the user's own."""
    if name.endswith(".toml"):
        if not os.path.isfile(name):
            raise FileError(f"{name}: no such table file")
        return _read(Path(name))
    if name not in table_names():
        raise SettingsError(
            f"unknown table {name!r}; {did_you_mean(name, [*table_names(), ALL])} (a file of your "
            "own must end in .toml)"
        )
    return _read(Path(str(resources.files("litebert.reproduction.tables") / f"{name}.toml")))


def load_tables(names: Sequence[str]) -> list[PaperTable]:
    """Tables by name, or some rows of them (t4:all-shared-128,not-shared-128); `all` of them."""
    wanted = [each for name in names for each in (table_names() if name == ALL else [name])]
    tables = [_selected(name) for name in dict.fromkeys(wanted)]
    for table in tables:
        for row in table.rows:
            table.row_preset(row)  # says now, not hours later, which setting is unknown
    return tables


def _selected(name: str) -> PaperTable:
    name, _, rows = name.partition(":")
    table = load_table(name)
    chosen = list(filter(None, rows.split(",")))
    for row in chosen:
        if row not in table.rows:
            raise SettingsError(f"table {name} has no row {row!r}; {did_you_mean(row, table.rows)}")
        if (parent := table.rows[row].start_from) is not None:
            chosen.append(parent)  # and so on, as the list grows
    return _only(table, set(chosen)) if chosen else table


def _only(table: PaperTable, rows: set[str]) -> PaperTable:
    """The table with some of its rows, and the claims about them."""
    kept: Tree = {
        "rows": {name: row for name, row in table.rows.items() if name in rows},
        "orders": tuple(c for c in table.orders if {c.better, c.worse} <= rows),
        "same": tuple(c for c in table.same if {c.first, c.second} <= rows),
    }
    return table.model_copy(update=kept)


def _read(path: Path) -> PaperTable:
    tree = read_toml(path)
    return PaperTable.build({"name": path.stem, **tree}, str(path))

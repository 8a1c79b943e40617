"""`litebert reproduce`: the papers' tables on a budget.

OUT/grid.json      what is trained, decided once
OUT/rows/KEY/      one folder a row (row.py): its runs and what was measured of them
OUT/report.html    verdicts, tables, charts; report.md is the same, results.json for programs
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from litebert.base.errors import FileError, LitebertError, SettingsError
from litebert.base.files import json_text, lock_folder, read_json, write_atomic
from litebert.corpus.store import Store
from litebert.reproduction.commands import full_commands
from litebert.reproduction.downstream import Downstream
from litebert.reproduction.findings import TableFinding, find_out
from litebert.reproduction.grid import ROWS, FrozenPlan, GridRequest, open_plan
from litebert.reproduction.held_out import HeldOut
from litebert.reproduction.listing import Listed, list_tables
from litebert.reproduction.measurement import (
    Measurement,
    keep_measurements,
    read_measurements,
)
from litebert.reproduction.measures import MEASURES
from litebert.reproduction.on_ray import Failures, RowsTask, check_cluster, run_on
from litebert.reproduction.provenance import ReproductionContext
from litebert.reproduction.report import write_report
from litebert.reproduction.row import GridRow, Stopped, run_folder, run_row, seeds_done
from litebert.reproduction.scale import SCALES
from litebert.reproduction.table import PaperTable, load_tables
from litebert.train.callbacks import Callback
from litebert.train.metrics import METRICS, TrainingMetrics, read_metrics

LIST, FULL = "list", "full"
RESULTS, BASELINES = "results.json", "baselines.json"


class GridView:
    """What a reproduction shows on its way; override what you want to see."""

    def say(self, text: str) -> None:
        """Something the user should know."""

    def run(self, name: str) -> Callback:
        """A run begins; the callback follows it."""
        return Callback()

    def measuring(self, name: str) -> AbstractContextManager[None]:
        """A run is being measured."""
        return nullcontext()


@dataclass(frozen=True)
class Reproduction:
    """What came of it: findings by table, or what there is to run."""

    tables: list[PaperTable]
    findings: list[TableFinding]
    report: Path | None = None
    commands: str = ""  # of the paper's own scale
    listed: Sequence[Listed] = ()  # what there is, and what the budget means for it
    finished: bool = True
    failed: int = 0  # rows


def reproduce(
    tables: Sequence[str],
    *,
    corpus: str | Path | None = None,
    data: str | Path | None = None,
    budget: str = "2h",
    seeds: int = 3,
    scale: str | None = None,
    out: str | Path | None = None,
    part: str | None = None,
    on: str | None = None,
    callbacks: GridView | None = None,
) -> Reproduction:
    """Run the papers' tables on your budget, and say what agrees, contradicts or stays undecided.

    `litebert reproduce list --budget 2h` shows the tables and what that would come to here. Rows
    that several tables share are trained once; the same command resumes, and a row that fails is
    reported while the others go on.

    Example: litebert reproduce t5 --corpus corpus --budget 30m --out tables

    Args:
        tables: Tables by name, files of your own (.toml), `all`, or `list` to see what there is; of
            a table some rows: t4:all-shared-128,not-shared-128.
        corpus: A store made by `litebert prepare` with held-out text.
        data: A folder with glue/, ner/, squad/, race/ or blimp/, for downstream measures.
        budget: For all of it: 30m, 2h; or tokens of each run: 2Mtok; or `full`: print the commands
            of the papers' own settings.
        seeds: Runs of each row, paired between rows.
        scale: minutes, hour or eight_hours; by default what the budget allows.
        out: The grid's folder; the same one resumes.
        part: I/N: only every N-th row, beginning with the I-th, to share a grid among machines.
        on: "ray" or "ray:ADDRESS": rows run on the nodes of a Ray cluster, one device each; OUT and
            the corpus must be on a file system that they share.
        callbacks: Told what happens (a GridView).
    """
    view = callbacks or GridView()
    if list(tables) == [LIST]:
        every = load_tables(["all"])
        return Reproduction(every, [], listed=list_tables(every, budget, seeds))
    chosen = load_tables(tables)
    if not chosen:
        raise SettingsError("no table; `litebert reproduce list` shows them")
    if budget == FULL:
        return Reproduction(chosen, [], commands=full_commands(chosen, corpus, seeds))
    if all(table.compare == "counts" for table in chosen):
        return Reproduction(chosen, [find_out(table, None, None) for table in chosen])
    if corpus is None or out is None:
        raise SettingsError("give --corpus STORE to train on and --out FOLDER to keep the runs in")
    if scale is not None and scale not in SCALES:
        raise SettingsError(f"--scale {scale}: choose {', '.join(SCALES)}")
    if seeds < 1:
        raise SettingsError(f"--seeds {seeds}: at least one is needed")
    request = GridRequest(chosen, budget, seeds, scale)
    split = parse_part(part)
    if on is not None:
        check_cluster(on, out)
    return _Reproduce(request, Path(corpus), data, Path(out), split, view, tables).go(on)


def parse_part(text: str | None) -> tuple[int, int]:
    """`I/N` as two numbers; all of it without."""
    if text is None:
        return 1, 1
    first, _, second = text.partition("/")
    if not (first.isdigit() and second.isdigit() and 1 <= int(first) <= int(second)):
        raise SettingsError(f"--part {text}: expected I/N, as in 2/4")
    return int(first), int(second)


class _Reproduce:
    """One call of `reproduce`."""

    def __init__(
        self, request: GridRequest, corpus: Path, data: str | Path | None, out: Path,
        part: tuple[int, int], view: GridView, names: Sequence[str],
    ) -> None:  # fmt: skip
        self.request, self.corpus, self.out, self.part, self.view = (
            request, corpus, out, part, view
        )  # fmt: skip
        self.names = names
        self.store = Store([corpus])
        if not self.store.info.held_out:
            raise FileError(f"{corpus}: has no held-out text; prepare it with --held-out 0.02")
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{out}: cannot be written ({error})") from None
        self.data = data
        self.failed: set[str] = set()

    def go(self, on: str | None = None) -> Reproduction:
        """Plan, train, measure, report; on a cluster, what is found finished afterwards."""
        view = self.view
        with lock_folder(self.out, "litebert reproduce"):
            plan = open_plan(self.request, self.store, self.out)
            scale = SCALES[plan.scale]
            downstream = Downstream(self.data, scale, view.say)
            self._say_unmeasured()
            if plan.seconds is not None:
                view.say(f"about {plan.seconds / 60:.0f} minutes at the scale of {scale.name}")
        if on is not None:
            self._elsewhere(on, plan)
        held_out = HeldOut(self.corpus, scale.max_length, scale.sequences)
        finished = True
        try:
            for seeds in range(1, plan.seeds + 1):  # all rows can be compared as early as possible
                for row in self._mine(plan):
                    if row.key not in self.failed:
                        self._row(row, plan, seeds, held_out, downstream)
        except Stopped:
            finished = False
        return self._report(plan, downstream, finished)

    def _elsewhere(self, on: str, plan: FrozenPlan) -> None:
        """Have the rows trained and measured by a cluster."""
        unique, chains = plan.unique, dict[str, list[GridRow]]()
        for row in self._mine(plan):
            chains.setdefault(_root(row, unique), []).append(row)
        corpus, out = self.corpus.absolute(), self.out.absolute()
        data = None if self.data is None else Path(self.data).absolute()
        tasks = [
            RowsTask(rows, plan.seeds, corpus, out, data, plan.scale) for rows in chains.values()
        ]
        for task, failures in run_on(on, tasks, run_rows):
            for row in task.rows:
                why = failures.get(row.key)
                self.view.say(f"{row.title}: {'done' if why is None else f'failed: {why}'}")
            self.failed |= failures.keys()

    def _say_unmeasured(self) -> None:
        """Columns that nothing can be compared by without data."""
        if self.data is None:
            for table in self.request.tables:
                lost = [
                    column.title
                    for column in table.columns.values()
                    if all(MEASURES[measure].data for measure in column.measures)
                ]
                if lost:
                    self.view.say(f"{table.name}: without --data not measured: {', '.join(lost)}")

    def _mine(self, plan: FrozenPlan) -> list[GridRow]:
        """The rows of this part; those that go on from one another stay together."""
        unique = plan.unique
        roots = list(dict.fromkeys(_root(row, unique) for row in unique.values()))
        first, count = self.part
        mine = set(roots[first - 1 :: count])
        return [row for row in unique.values() if _root(row, unique) in mine]

    def _row(
        self, row: GridRow, plan: FrozenPlan, seeds: int, held_out: HeldOut, downstream: Downstream
    ) -> None:
        """Train and measure so many seeds of a row; a failure is told, and the rest goes on."""
        try:
            complete_row(
                row, plan.unique, seeds, self.corpus, self.out / ROWS, held_out, downstream,
                self.view,
            )  # fmt: skip
        except LitebertError as error:
            self.failed.add(row.key)
            self.view.say(f"{row.title}: failed: {error}")

    def _report(self, plan: FrozenPlan, downstream: Downstream, finished: bool) -> Reproduction:
        findings = [find_out(table, plan, self.out) for table in self.request.tables]
        context = ReproductionContext(
            tables=self.request.tables, command=self._command(), store=self.corpus,
            corpus=self.store.checksum, out=self.out, plan=plan,
            missing=downstream.missing, baselines=self._baselines(downstream),
        )  # fmt: skip
        results: list[Any] = [found.as_dict() for found in findings]
        write_atomic(self.out / RESULTS, json_text(results).encode())
        report = write_report(findings, context)
        return Reproduction(
            list(self.request.tables), findings, report, finished=finished, failed=len(self.failed)
        )

    def _baselines(self, downstream: Downstream) -> dict[str, float]:
        """Plain rivals on the same examples, measured once for all rows."""
        path = self.out / BASELINES
        known: dict[str, float] = read_json(path) if os.path.lexists(path) else {}
        if set(downstream.opened) - known.keys():
            known |= downstream.baselines(known)
            write_atomic(path, json_text(known).encode())
        return known

    def _command(self) -> str:
        names = " ".join(self.names)
        extra = f" --data {self.data}" if self.data is not None else ""
        extra += f" --scale {self.request.scale}" if self.request.scale else ""
        return (
            f"litebert reproduce {names} --corpus {self.corpus}{extra} --budget "
            f"{self.request.budget} --seeds {self.request.seeds} --out {self.out}"
        )


def complete_row(
    row: GridRow, rows: dict[str, GridRow], seeds: int, corpus: Path, folder: Path,
    held_out: HeldOut, downstream: Downstream, view: GridView,
) -> None:  # fmt: skip
    """Train and measure what is missing of so many seeds of a row."""
    run_row(row, rows, corpus, folder, seeds, view.run)
    for seed in [*seeds_done(folder / row.key)[:seeds], 0]:
        run = run_folder(folder / row.key, seed)
        with view.measuring(f"{row.title}, {run.name}"):
            measure(run, held_out, downstream)


def run_rows(task: RowsTask) -> Failures:
    """A row and those that go on from it, wherever they are run."""
    view, scale = GridView(), SCALES[task.scale]
    held_out = HeldOut(task.corpus, scale.max_length, scale.sequences)
    downstream = Downstream(task.data, scale, view.say)
    rows = {row.key: row for row in task.rows}
    failures: Failures = {}
    for row in task.rows:
        try:
            complete_row(
                row, rows, task.seeds, task.corpus, task.out / ROWS, held_out, downstream, view
            )
        except LitebertError as error:
            failures[row.key] = str(error)
    return failures


def _root(row: GridRow, rows: dict[str, GridRow]) -> str:
    while row.start_from is not None:
        row = rows[row.start_from]
    return row.key


def _speed(run: Path) -> dict[str, Measurement]:
    """Tokens a second that the run made, other work on the machine included."""
    if not os.path.lexists(run / METRICS):
        return {}
    lines = [m for m in read_metrics(run) if isinstance(m, TrainingMetrics)]
    rates = [line.time.tokens_per_second for line in lines]
    return {"speed": Measurement(median(rates), [])} if rates else {}


def measure(run: Path, held_out: HeldOut, downstream: Downstream) -> None:
    """Measure what is missing of a run."""
    known = read_measurements(run)
    if "sentence_order_probe" not in known and os.path.isdir(run):
        keep_measurements(run, held_out.measure(run) | _speed(run))
    for name in downstream.wanted(known):
        keep_measurements(run, downstream.measure(name, run))

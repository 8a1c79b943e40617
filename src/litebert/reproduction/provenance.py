"""What a reproduction took, and by what: enough to run it again."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from litebert.base.files import read_json
from litebert.base.processes import cpu_count
from litebert.planning.count import TRAINING_PASSES, flops_per_token
from litebert.reproduction.commands import row_command
from litebert.reproduction.document import Block, DocumentTable, Heading, Lines, Paragraph
from litebert.reproduction.grid import ROWS, FrozenPlan
from litebert.reproduction.row import GridRow, run_folder
from litebert.reproduction.scale import SCALES
from litebert.reproduction.table import PaperTable
from litebert.train.run_folder import RUN

ALBERT_BASE_FLOPS = 1.3e20  # 125,000 steps of 4,096 sequences of 512 tokens


@dataclass(frozen=True)
class ReproductionContext:
    """Where and how the tables were run."""

    tables: Sequence[PaperTable]
    command: str
    store: Path
    corpus: str | None  # checksum
    out: Path | None
    plan: FrozenPlan | None
    missing: Sequence[str] = ()  # data that was not there
    baselines: Mapping[str, float] = field(default_factory=dict)  # plain rivals, by measure


def what_it_took(context: ReproductionContext) -> Iterator[Block]:
    """Command, commit, machine, corpus, FLOPs, and every row with its folder."""
    yield Heading("What it took")
    lines = [
        f"command: {context.command}",
        f"commit: {_commit()}",
        f"machine: {_processor()}, {cpu_count()} cores used, torch {torch.__version__}",
    ]
    if context.corpus is not None:
        lines.append(f"corpus: sha256 {context.corpus}")
    if context.plan is not None and context.out is not None:
        scale = SCALES[context.plan.scale]
        lines.append(f"scale: {scale.name} ({scale.about}), {context.plan.seeds} seeds")
        seconds, flops, tokens = _spent(context.plan, context.out)
        fraction = flops / ALBERT_BASE_FLOPS
        lines.append(
            f"pretraining: {seconds / 60:.1f} min, {tokens:,} tokens, {flops:.2e} FLOPs: "
            f"{fraction:.1e} of ALBERT-base's 125,000 steps"
        )
    yield Lines("\n".join(lines))
    if context.plan is not None and context.out is not None:
        yield _runs(context.plan, context.out)
        yield Paragraph("The first seed of every row, as a command:")
        yield Lines("\n".join(_commands(context, context.plan, context.out)))


def _spent(plan: FrozenPlan, out: Path) -> tuple[float, float, int]:
    runs = [
        read_json(path)
        for key in plan.unique
        for path in sorted((out / ROWS / key).glob(f"*/{RUN}"))
    ]
    done = [run for run in runs if run.get("finished")]
    return (
        sum(run["seconds"] for run in done), sum(run["flops"] for run in done),
        sum(run["tokens"] for run in done),
    )  # fmt: skip


def _runs(plan: FrozenPlan, out: Path) -> DocumentTable:
    """Every row: what was trained, and the folder that its command resumes."""
    rows = []
    for table, members in plan.rows.items():
        for name, row in members.items():
            settings = row.preset(1, row.learning_rates[0], row.tokens)
            model = settings.model
            shape = (
                f"H {model.hidden_size}, E {model.embedding_size}, L {model.num_hidden_layers}, "
                f"shared: {model.sharing}"
            )
            flops = TRAINING_PASSES * sum(
                flops_per_token(settings, settings.data.max_length).values()
            )
            took = _took(out / ROWS / row.key)
            rows.append(
                [table, name, row.key, shape, f"{row.tokens:,}", f"{flops * row.tokens:.1e}", took]
            )
    head = [
        "table",
        "row",
        "folder",
        "shape",
        "tokens a run",
        "FLOPs a run",
        "seconds, learning rate",
    ]
    return DocumentTable(head, rows)


def _commands(context: ReproductionContext, plan: FrozenPlan, out: Path) -> Iterator[str]:
    for table in context.tables:
        for name, row in plan.rows.get(table.name, {}).items():
            preset = table.rows[name].preset or table.preset
            start = None if row.start_from is None else run_folder(out / ROWS / row.start_from, 1)
            wanted = row.preset(1, _learning_rate(out / ROWS / row.key, row), row.tokens)
            folder = f"{table.name}-{name}-1"
            yield row_command(preset, wanted, context.store, folder, start)


def _learning_rate(folder: Path, row: GridRow) -> float:
    path = run_folder(folder, 1) / RUN
    if not os.path.lexists(path):
        return row.learning_rates[0]
    return read_json(path)["settings"]["optimizer"]["learning_rate"]


def _took(folder: Path) -> str:
    path = run_folder(folder, 1) / RUN
    if not os.path.lexists(path):
        return ""
    run = read_json(path)
    rate = run["settings"]["optimizer"]["learning_rate"]
    return f"{run.get('seconds', 0):.0f} s, {rate:g}"


def _commit() -> str:
    """Of the code that ran, where it is a checkout."""
    here = Path(__file__).parent
    found = subprocess.run(
        ["git", "-C", str(here), "describe", "--always", "--dirty"], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return found.stdout.strip() or "not a checkout"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()

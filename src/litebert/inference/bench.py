"""How fast a model answers here: sentences a second, and how long one of them waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from litebert.base.errors import FileError, MissingExtraError, SettingsError
from litebert.base.files import check_writable, write_atomic
from litebert.inference.engine import Engine
from litebert.inference.jobs import Job, predict_job
from litebert.inference.pretrained import vectors_job
from litebert.tasks.data import read_split
from litebert.tasks.features import NO_LABEL, Sequences
from litebert.tasks.source import DataSource

SEQUENCES = 64  # of each length, drawn at random
WARM_UP = 3  # rounds that are not counted
FEWEST = 20  # answers one at a time, however slow


@dataclass(frozen=True)
class BenchRow:
    """How fast one precision answers one kind of input; times in milliseconds, one at a time."""

    input: str
    precision: str
    tokens: float  # of a sequence, on average
    depth: float  # layers, on average
    one_at_a_time: float  # inputs a second
    all_at_once: float
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True)
class BenchReport:
    """A row for each input and precision."""

    model: str
    threads: int
    rows: tuple[BenchRow, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def bench(
    model: str | Path, *, input: str | Path | None = None, lengths: str = "16,64,256",
    precision: str = "auto", exit: str | None = None, depth: int | None = None,
    threads: int | None = None, seconds: float = 3.0, columns: Sequence[str] = (),
    out: str | Path | None = None,
) -> BenchReport:  # fmt: skip
    """Measure how fast a model answers on this machine.

    Example: litebert bench tuned --input new.csv --precision fp32,int8

    Args:
        model: A run or a model folder.
        input: Examples of a fine-tuned model's task; without, random tokens of some lengths.
        lengths: Tokens of the sequences that are drawn, with commas between.
        precision: One or more of fp32, bf16, int8 and auto, with commas between.
        exit: An exit rule, with `input`.
        depth: Layers to run.
        threads: Threads of a matrix product; torch's choice without.
        seconds: Time to spend on each figure, at least.
        columns: With `input`: which column of a table is what, e.g. text=body.
        out: A PNG file to draw the figures in.
    """
    if out is not None:
        _check_picture(Path(out))
    if exit is not None and input is None:
        raise SettingsError("--exit: needs --input EXAMPLES, because random tokens have no answer")
    if not seconds > 0:
        raise SettingsError(f"--seconds {seconds}: give a time above 0")
    rows: list[BenchRow] = []
    count = 0
    for name in _listed(precision, "--precision"):
        engine = Engine(model, name, depth, exit, threads)
        count = torch.get_num_threads()
        for label, jobs, whole in _inputs(engine, input, lengths, columns):
            rows.append(_row(engine, label, jobs, whole, seconds))
    report = BenchReport(str(model), count, tuple(rows))
    if out is not None:
        write_atomic(Path(out), _draw(report))
    return report


Inputs = list[tuple[str, list[Job], Job]]  # a name, the inputs one by one, and all of them


def _inputs(
    engine: Engine, input: str | Path | None, lengths: str, columns: Sequence[str]
) -> Inputs:
    if input is None:
        return [_random(engine, _length(engine, text)) for text in _listed(lengths, "--lengths")]
    task, path = engine.needs_task(), Path(input)
    source = DataSource.build(input, columns=columns)
    examples = read_split(task, source, labelled=False)

    def job(some: list[Any]) -> Job:
        features = task.features(some, engine.tokenizer)
        return predict_job(task, some, features, engine.depth, engine.rule)

    return [(path.name, [job([one]) for one in examples], job(examples))]


def _random(engine: Engine, length: int) -> tuple[str, list[Job], Job]:
    """Sequences of random tokens, of which [CLS] is read off."""
    tokenizer, chance = engine.tokenizer, np.random.default_rng(length)
    ordinary = np.flatnonzero(~tokenizer.special_mask)

    def job(rows: list[Any]) -> Job:
        sequences = Sequences(tokenizer)
        for number, ids in enumerate(rows):
            sequences.add(number, NO_LABEL, ids)
        return vectors_job(sequences.batch(), engine.depth)

    room = length - Sequences(tokenizer).extra
    rows = [chance.choice(ordinary, room) for _ in range(SEQUENCES)]
    return f"{length} tokens", [job([row]) for row in rows], job(rows)


def _row(engine: Engine, label: str, jobs: list[Job], whole: Job, seconds: float) -> BenchRow:
    waits = _timed([lambda job=job: engine.answer(job) for job in jobs], seconds, FEWEST)
    together = _timed([lambda: engine.answer(whole)], seconds, 2)
    depths = [getattr(one, "depth", None) or engine.depth for one in engine.answer(whole)]
    p50, p95, p99 = (1000 * float(np.percentile(waits, percent)) for percent in (50, 95, 99))
    return BenchRow(
        input=label, precision=engine.precision,
        tokens=float(whole.batch.lengths.mean()), depth=float(np.mean(depths)),
        one_at_a_time=len(waits) / sum(waits),
        all_at_once=len(jobs) * len(together) / sum(together),
        p50=p50, p95=p95, p99=p99,
    )  # fmt: skip


def _timed(calls: Sequence[Callable[[], Any]], seconds: float, fewest: int) -> list[float]:
    """How long each call took, in turn, until there was enough time and there were enough calls."""
    for call in calls[:WARM_UP]:
        call()
    waits: list[float] = []
    while sum(waits) < seconds or len(waits) < fewest:
        began = time.perf_counter()
        calls[len(waits) % len(calls)]()
        waits.append(time.perf_counter() - began)
    return waits


def _listed(text: str, option: str) -> list[str]:
    found = [part.strip() for part in text.split(",")]
    if not all(found):
        raise SettingsError(f"{option} {text}: an entry is empty; put commas between values")
    return found


def _length(engine: Engine, text: str) -> int:
    longest = engine.model.config.longest_sequence
    if not text.isdecimal() or not 3 <= int(text) <= longest:
        raise SettingsError(f"--lengths {text}: choose 3 to {longest}, the model's positions")
    return int(text)


# ------------------------------------------------------------------------------- the picture


def _check_picture(out: Path) -> None:
    if out.suffix.lower() != ".png":
        raise SettingsError(f"{out}: drawn as PNG; name a file that ends in .png")
    if out.is_dir() or not out.parent.is_dir():
        raise FileError(f"{out}: cannot be written; name a file in a folder that exists")
    check_writable(out)


def _draw(report: BenchReport) -> bytes:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "drawing figures") from None
    inputs = list(dict.fromkeys(row.input for row in report.rows))
    precisions = list(dict.fromkeys(row.precision for row in report.rows))
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    panels = (("one at a time", "one_at_a_time"), ("all at once", "all_at_once"))
    for axes, (title, name) in zip(figure.subplots(1, 2), panels, strict=True):
        for place, precision in enumerate(precisions):
            found = {r.input: getattr(r, name) for r in report.rows if r.precision == precision}
            width = 0.8 / len(precisions)
            across = np.arange(len(inputs)) + (place - (len(precisions) - 1) / 2) * width
            heights = [found[one] for one in inputs]
            bars = axes.bar(across, heights, 0.95 * width, label=precision)
            axes.bar_label(bars, fmt="%.0f", fontsize=8)
        axes.set_xticks(range(len(inputs)), inputs)
        axes.set_title(f"{title}, inputs a second")
        axes.legend()
    figure.suptitle(f"{report.model}, {report.threads} thread(s)")
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    return picture.getvalue()

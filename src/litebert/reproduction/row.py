"""A row of a grid: the unit of work. Serialisable, independent of others, and resumed where it was.

ROWS/KEY/row.json           what it is; KEY is a hash of all that decides its runs
ROWS/KEY/sweep-0.001/       a short run for each learning rate, from the first seed
ROWS/KEY/seed-1/ ...        the runs, with the learning rate that the sweep chose
ROWS/KEY/untrained/         the first seed's model before its first step
ROWS/KEY/failed.json        why it could not be finished, if so

Rows of several tables that are the same have the same key, so they are trained once.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import Field

from litebert.base.errors import FileError, LitebertError
from litebert.base.files import json_text, read_json, write_atomic
from litebert.base.settings import Settings, Tree, merge
from litebert.configs.schema import Preset
from litebert.train.build import save_untrained
from litebert.train.callbacks import Callback
from litebert.train.metrics import read_metrics
from litebert.train.pretrain import pretrain
from litebert.train.run_folder import CHECKPOINTS, is_finished

ROW, FAILED, UNTRAINED = "row.json", "failed.json", "untrained"
LESSER = ("title", "checkpoint", "log")  # settings that do not change what a run learns


class GridRow(Settings):
    """Everything that decides the runs of one row but how many seeds there are."""

    settings: dict[str, object] = Field(description="a preset; seed, learning rate, budget aside")
    corpus: str = Field(description="checksum of the store")
    tokens: int = Field(gt=0, description="of each run")
    learning_rates: tuple[float, ...]
    sweep_tokens: int = Field(ge=0, description="of each try of a learning rate")
    start_from: str | None = Field(default=None, description="key of the row it goes on from")

    @property
    def key(self) -> str:
        """A hash of it all."""
        content = self.model_dump(mode="json")
        content["settings"] = {k: v for k, v in content["settings"].items() if k not in LESSER}
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def title(self) -> str:
        """What tables call it."""
        return str(self.settings["title"])

    def preset(self, seed: int, learning_rate: float, tokens: int) -> Preset:
        """The run of one seed."""
        changes: Tree = {
            "seed": seed, "budget": f"{tokens}tok", "optimizer": {"learning_rate": learning_rate}
        }  # fmt: skip
        return Preset.build(merge(self.settings, changes), "row")


class Stopped(Exception):
    """The user asked to stop; what was done is kept."""


def run_row(
    row: GridRow, rows: Mapping[str, GridRow], corpus: Path, folder: Path, seeds: int,
    callback_for: Callable[[str], Callback],
) -> None:  # fmt: skip
    """Train what is missing of a row; one that it starts from comes first.

    `rows` are those of the grid by their keys, `folder` holds all rows, and `callback_for` is given
    the name of each run and returns who follows it.
    """
    here = folder / row.key
    here.mkdir(parents=True, exist_ok=True)
    write_atomic(here / ROW, json_text(row.model_dump(mode="json")).encode())
    if row.start_from is not None:
        run_row(rows[row.start_from], rows, corpus, folder, seeds, callback_for)
    try:
        learning_rate = _swept(row, corpus, here, _start(row, folder, 1), callback_for)
        for seed in range(1, seeds + 1):
            preset = row.preset(seed, learning_rate, row.tokens)
            start = _start(row, folder, seed)
            _train(preset, corpus, run_folder(here, seed), start, callback_for)
        _untrained(row, corpus, here, learning_rate)
    except LitebertError as error:
        write_atomic(here / FAILED, json_text({"error": str(error)}).encode())
        raise
    (here / FAILED).unlink(missing_ok=True)


def run_folder(row: Path, seed: int) -> Path:
    """The folder of one seed's run; seed 0 is the untrained copy."""
    return row / (f"seed-{seed}" if seed else UNTRAINED)


def seeds_done(row: Path) -> list[int]:
    """The seeds whose runs are finished."""
    found = [int(path.name.removeprefix("seed-")) for path in row.glob("seed-*")]
    return sorted(seed for seed in found if is_finished(run_folder(row, seed)))


def failure(row: Path) -> str | None:
    """Why a row could not be finished."""
    path = row / FAILED
    return str(read_json(path).get("error")) if os.path.lexists(path) else None


def _start(row: GridRow, folder: Path, seed: int) -> Path | None:
    return None if row.start_from is None else run_folder(folder / row.start_from, seed)


def _swept(
    row: GridRow, corpus: Path, here: Path, start: Path | None,
    callback_for: Callable[[str], Callback],
) -> float:  # fmt: skip
    """The learning rate with the lowest held-out loss after a short run each."""
    if len(row.learning_rates) == 1 or not row.sweep_tokens:
        return row.learning_rates[0]
    losses = {}
    for rate in row.learning_rates:
        out = here / f"sweep-{rate:g}"
        _train(row.preset(1, rate, row.sweep_tokens), corpus, out, start, callback_for)
        losses[rate] = final_loss(out)
    return min(losses, key=lambda rate: losses[rate])


def final_loss(run: Path) -> float:
    """The sum of a run's held-out losses at its end; infinite where one is not finite."""
    last = [metrics for metrics in read_metrics(run) if metrics.kind == "evaluation"][-1:]
    values = [loss for metrics in last for loss in metrics.loss.values()]
    if not values:
        raise FileError(f"{run}: has no evaluation; prepare the corpus with --held-out 0.02")
    return math.inf if None in values else sum(loss for loss in values if loss is not None)


def _train(
    preset: Preset, corpus: Path, out: Path, start: Path | None,
    callback_for: Callable[[str], Callback],
) -> None:  # fmt: skip
    if is_finished(out):
        return
    name = f"{preset.title}, {out.name}"
    # A warm start would keep the depth of the model it starts from.
    depth = [f"model.num_hidden_layers={preset.model.num_hidden_layers}"]
    result = pretrain(
        preset, corpus, out, start_from=start, overrides=depth, callbacks=[callback_for(name)]
    )
    if not result.finished:
        raise Stopped
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)


def _untrained(row: GridRow, corpus: Path, here: Path, learning_rate: float) -> None:
    out = run_folder(here, 0)
    if not os.path.isdir(out / "model"):
        out.mkdir(exist_ok=True)
        save_untrained(row.preset(1, learning_rate, row.tokens), corpus, out / "model")

"""The first hour with a stranger's data: the default recipe against the best of a wide grid.

    python benchmarks/first_hour.py --data DATA --out first-hour --budget 2h \\
        --start ten=RUN --start hour=RUN --start minilm=FOLDER

Tasks and their samples are in first_hour_tasks.py, which says which of them chose the rule and
which only check it. The grid: five learning rates about the default's by every pooling that the
task has, then a third and three times the epochs at the best of these; its best is the one with the
best mean on the test set, so it is a little too good. A run is a line of OUT/results.jsonl, and the
same command goes on where it stopped: first every default, then the grids. Bars: the default within
1 point of the grid's best on average and never more than 3 below it; ahead of TF-IDF and a logistic
regression wherever texts are classified (from the imported encoder; from ours on film reviews and
SST-2); SQuAD with 1,000 questions from the imported encoder, F1 30.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import mean

from first_hour_tasks import TASKS, load_task
from litebert.base.budget import parse_budget
from litebert.finetuning.choose import choose_recipe
from litebert.finetuning.finetune import finetune_examples
from litebert.finetuning.recipe import Recipe
from litebert.inference.model_folder import open_tokenizer, task_of
from litebert.inference.run import predict_examples
from litebert.model.folder import find_model_folder
from litebert.model.model import Model
from litebert.tasks.data import TaskData
from litebert.tasks.registry import build_task
from litebert.tasks.task import Form

DATA = Path(os.environ.get("LITEBERT_DATA", Path(__file__).parents[2] / "shared" / "data"))
RATES = (0.2, 0.5, 1.0, 2.0, 5.0)  # times the default's
DURATIONS = (1 / 3, 3.0)
LONE = (("pooling=mean",), ("pooling=first",))
POOLINGS: dict[Form, tuple[tuple[str, ...], ...]] = {
    "text": LONE,
    "pair": (
        *((one, "bi_encoder=false") for (one,) in LONE), ("bi_encoder=true", "pooling=mean"),
    ),
}  # fmt: skip
WITHIN, NEVER_BELOW = 1.0, 3.0  # points
DEFAULT = ""


@dataclass(frozen=True)
class Cell:
    """One run: a setting is what is changed of the default, separated by spaces."""

    task: str
    start: str
    setting: str
    seed: int


class Bench:
    """The runs so far, and how to make more of them until the budget is spent."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.starts = {name: Path(path) for name, path in map(_named, options.start)}
        self.ends = time.monotonic() + parse_budget(options.budget).amount
        self.results: dict[Cell, float] = {}
        self.file = options.out / "results.jsonl"
        options.out.mkdir(parents=True, exist_ok=True)
        if self.file.is_file():
            for line in self.file.read_text().splitlines():
                row = json.loads(line)
                self.results[Cell(*(row[key] for key in Cell.__dataclass_fields__))] = row["score"]

    def score(self, cell: Cell) -> float | None:
        """The test score of a run in percent, from the file or by running it now."""
        if cell not in self.results and time.monotonic() < self.ends:
            began = time.monotonic()
            data = load_task(cell.task, self.options.data, cell.seed)
            self.results[cell] = self._run(cell, data)
            row = {**vars(cell), "score": self.results[cell], "seconds": time.monotonic() - began}
            with self.file.open("a") as stream:
                stream.write(json.dumps(row) + "\n")
            print(row, flush=True)
        return self.results.get(cell)

    def _run(self, cell: Cell, data: TaskData) -> float:
        if cell.start == "tf-idf":
            return _baseline(data)
        folder, out = find_model_folder(self.starts[cell.start]), self.options.out / "run"
        recipe = self.recipe(cell, data)
        shutil.rmtree(out, ignore_errors=True)
        learned = replace(data, dev={"dev": data.dev["dev"]})  # the test is read once, at the end
        report = finetune_examples(Model.load(folder), folder, learned, recipe, out).report
        if report is None:
            raise SystemExit("stopped; the same command goes on")
        model, test = Model.load(out / "model"), data.dev["test"]
        task = task_of(model, out)
        found = predict_examples(task, model, test, task.features(test, open_tokenizer(folder)))
        shutil.rmtree(out)
        return 100 * task.score(test, found)[report.metric]

    def recipe(self, cell: Cell, data: TaskData) -> Recipe:
        """What a setting means for a start and its data."""
        folder = find_model_folder(self.starts[cell.start])
        return choose_recipe(
            Model.load(folder), folder, data, open_tokenizer(folder), None, cell.setting.split(),
            lambda message: None,
        )  # fmt: skip

    def mean(self, task: str, start: str, setting: str) -> float | None:
        """Over all seeds, where all of them were run."""
        cells = [Cell(task, start, setting, seed) for seed in range(1, self.options.seeds + 1)]
        found = [score for cell in cells if (score := self.score(cell)) is not None]
        return mean(found) if len(found) == len(cells) else None

    def grid(self, task: str, start: str) -> dict[str, float]:
        """The means of all settings of the grid that could be run."""
        data = load_task(task, self.options.data, 1)
        default = self.recipe(Cell(task, start, DEFAULT, 1), data)
        form = build_task(data.settings).form(data.train)
        found: dict[str, float] = {}

        def measure(settings: Iterator[str]) -> None:
            for setting in settings:
                if (score := self.mean(task, start, setting)) is not None:
                    found[setting] = score

        measure(
            " ".join([f"learning_rate={default.learning_rate * factor:g}", *pooling])
            for pooling in POOLINGS.get(form, ((),))
            for factor in RATES
        )
        if found:
            best, epochs = max(found, key=lambda one: found[one]), default.epochs or 1
            measure(f"{best} epochs={epochs * factor:g}" for factor in DURATIONS)
        return found


def _named(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    return name, path


@cache
def _labels_texts(task: str) -> bool:
    return TASKS[task].published in ("film", "sst-2")


def _baseline(data: TaskData) -> float:
    train, test = [*data.train, *data.dev["dev"]], data.dev["test"]
    task = build_task(data.settings)
    found = task.baseline(train, test)
    assert found is not None, "classification has one"
    return 100 * task.score(test, found)["accuracy"]


def main() -> None:
    """Run what the budget allows; print what is known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=Path("first-hour"))
    parser.add_argument("--start", action="append", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", default="8h", help="no run begins after it")
    parser.add_argument("--no-grid", action="store_true", help="the defaults only")
    bench = Bench(parser.parse_args())
    options = bench.options
    for task in options.tasks:
        for start in ["tf-idf"] * _labels_texts(task) + list(bench.starts):
            bench.mean(task, start, DEFAULT)
    print_table(bench, [] if options.no_grid else list(bench.starts))


def print_table(bench: Bench, gridded: list[str]) -> None:
    """Default, grid's best, difference, baseline; then the bars."""
    print("| task | rule | start | default | grid's best | difference | TF-IDF | best setting |")
    print("|---|---|---|---|---|---|---|---|")
    behind: dict[bool, list[float]] = {True: [], False: []}
    for task in bench.options.tasks:
        role = "chosen on it" if TASKS[task].chooses else "checked on it"
        plain = bench.mean(task, "tf-idf", DEFAULT) if _labels_texts(task) else None
        for start in bench.starts:
            default = bench.mean(task, start, DEFAULT)
            grid = bench.grid(task, start) if start in gridded else {}
            best = max(grid, key=lambda one: grid[one]) if grid else ""
            apart = default - grid[best] if best and default is not None else None
            if apart is not None:
                behind[TASKS[task].chooses].append(apart)
            shown = [_shown(one) for one in (default, grid.get(best), apart, plain)]
            print(f"| {task} | {role} | {start} | {' | '.join(shown)} | {best} |", flush=True)
    for chooses, found in behind.items():
        if found:
            print(
                f"tasks that {'chose' if chooses else 'check'} the rule: difference "
                f"{mean(found):+.1f} on average (bar -{WITHIN:g}), {min(found):+.1f} at worst "
                f"(bar -{NEVER_BELOW:g})"
            )


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


if __name__ == "__main__":
    main()

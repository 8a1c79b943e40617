"""Fine-tuning: `litebert.finetune("model", "sst-2", data="glue/SST-2", out="tuned")`.

OUT/run.json       settings, where from, what came of it
OUT/seed-1/ ...    one folder a seed (fit.py); a collapsed one may be repeated (seed-1-again-1)
OUT/report.json    scores by seed, mean and deviation, collapses
OUT/model/         the best seed's model, which opens in `transformers`
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from litebert.base.config import parse_sets
from litebert.base.errors import SettingsError
from litebert.base.files import as_text, hold, new_folder, read_json, sha256, write_whole
from litebert.base.runtime import default_device, keep_freed_memory
from litebert.model.model import Model
from litebert.tasks.base import Pooling
from litebert.tasks.data import Data, open_data
from litebert.tasks.features import Features
from litebert.tasks.files.roles import Columns
from litebert.tasks.fit import MODEL, Part, Work, fit
from litebert.tasks.making import checksum, make_features
from litebert.tasks.recipe import Recipe, load_recipe
from litebert.tasks.registry import build_task
from litebert.tasks.scores.intervals import over_seeds
from litebert.tasks.starting import begin, check_length, open_tokenizer
from litebert.train.parallel import Group
from litebert.train.run import make_folder, model_folder, open_run, save_run
from litebert.train.signals import stop_requests
from litebert.train.watch import Watcher

Retry = Literal["no", "seed", "rate"]
AGAIN = 2  # times that a collapsed run is repeated at most
LOWER = 0.5  # of the rate, each time
SEED_STEP = 1000  # a repeated run's seed
REPORT = "report.json"


@dataclass(frozen=True)
class Finetuned:
    """What fine-tuning came to."""

    folder: Path
    finished: bool
    report: dict[str, Any]


def finetune(
    model: str | Path,
    task: str,
    out: str | Path,
    *,
    data: str | Path | None = None,
    train: str | Path | None = None,
    dev: str | Path | None = None,
    columns: Columns | None = None,
    level: str = "all",
    repair: bool = False,
    recipe: str | None = None,
    sets: Sequence[str] = (),
    long: str = "truncate",
    seeds: int = 1,
    retry: Retry = "no",
    keep_all: bool = False,
    watcher: Watcher | None = None,
) -> Finetuned:
    """Fine-tune a model folder for a task; leaves a run folder with the best model in it."""
    if retry not in ("no", "seed", "rate"):
        raise SettingsError(f"--retry {retry}: choose no, seed or rate")
    if seeds < 1:
        raise SettingsError(f"--seeds {seeds}: at least one is needed")
    watcher, start = watcher or Watcher(), model_folder(Path(model))
    paths = [None if path is None else Path(path) for path in (data, train, dev)]
    found = open_data(
        task, data=paths[0], train=paths[1], dev=paths[2], columns=columns, level=level,
        repair=repair, say=watcher.say,
    )  # fmt: skip
    opened = Model.load(start)
    name = recipe or default_recipe(opened)
    settings = load_recipe(
        name, found.settings.name, sets, without_dropout=opened.config.hidden_dropout_prob == 0
    )
    if "length" not in parse_sets(sets):  # the recipe's; what the user asked for is refused instead
        fitting = min(settings.length, opened.config.longest_sequence)
        settings = settings.model_copy(update={"length": fitting})
    return finetune_examples(
        opened, start, found, settings, Path(out), long=long, seeds=seeds, retry=retry,
        keep_all=keep_all, watcher=watcher,
    )  # fmt: skip


def default_recipe(model: Model) -> str:
    """The paper's recipe for models of its sizes, ours for smaller ones."""
    width = model.config.hidden_size
    return "paper" if width >= 768 else "base" if width >= 320 else "small"


def finetune_examples(
    start: Model, where: Path, data: Data, recipe: Recipe, out: Path, *, long: str = "truncate",
    seeds: int = 1, retry: Retry = "no", keep_all: bool = False, watcher: Watcher | None = None,
) -> Finetuned:  # fmt: skip
    """The same for examples at hand, from a model at hand whose tokenizer is in `where`."""
    watcher = watcher or Watcher()
    tokenizer = open_tokenizer(where)
    check_length(start, recipe.length, str(where))
    fields: dict[str, Any] = {"length": recipe.length, "long": long}
    fields["pooling"] = _pooling(recipe, data, long)
    fields["conditional"] = recipe.conditional and data.settings.impossible
    task = build_task(data.settings.build({**data.settings.model_dump(), **fields}, "task"))
    if task.head in ("mean_classification", "apart_classification"):
        watcher.say(
            f"pooling = {task.settings.pooling}: a head of our own; --set pooling=first makes one "
            "that transformers has"
        )
    keep_freed_memory()
    with ExitStack() as held:
        stopping = held.enter_context(stop_requests())
        make_folder(out)
        held.enter_context(hold(out, "litebert finetune"))
        settings = {
            "task": task.settings.model_dump(mode="json"), "recipe": recipe.model_dump(mode="json"),
            "examples": checksum(data.train)[:16], "retry": retry,
            "dev": {name: checksum(part)[:16] for name, part in data.dev.items()},
            "start": {file.name: sha256(file)[:16] for file in sorted(where.glob("*.safetensors"))},
        }  # fmt: skip
        about = {"format": 2, "settings": settings, "corpus": None, "from": str(where)}
        run = open_run(out, about)
        if run["finished"] and (out / MODEL).is_dir():
            report = read_json(out / REPORT)
            if len(report["seeds"]) >= seeds:
                watcher.say(f"{out}: finished before, with {len(report['seeds'])} seed(s)")
                return Finetuned(out, True, report)
        save_run(out, run)
        train = Part(data.train, make_features(task, data.train, tokenizer, where))
        dev = {
            name: Part(part, make_features(task, part, tokenizer, where))
            for name, part in data.dev.items()
        }
        _tell_lengths(train.features, len(data.train), recipe.length, task.settings.kind, watcher)
        group = Group(device=default_device())
        work = Work(
            task, recipe, tokenizer, train, dev, group,
            lambda seed: begin(start, task, recipe, seed), watcher, stopping,
        )  # fmt: skip
        return _all_seeds(work, out, run, seeds, retry, keep_all)


def _pooling(recipe: Recipe, data: Data, long: str) -> Pooling:
    """As the recipe says; but a lone text has nothing to be read apart from."""
    if recipe.pooling != "apart":
        return recipe.pooling
    if data.settings.kind not in ("classify", "pair", "regress") or data.train[0].second is None:
        return "mean"
    if long == "stride":
        raise SettingsError(
            "--long stride: not with pooling = apart, which cuts long texts off; --set pooling=mean"
        )
    return "apart"


def _all_seeds(
    work: Work, out: Path, run: dict[str, Any], seeds: int, retry: Retry, keep_all: bool
) -> Finetuned:
    results, collapses = [], 0
    for seed in range(1, seeds + 1):
        tries = _one_seed(work, out, seed, retry)
        if tries is None:
            return Finetuned(out, False, {})
        collapses += sum(result["collapsed"] is not None for result, _ in tries)
        results.append(tries[-1])
    metric = work.task.settings.metrics[0]
    best, folder = max(results, key=lambda pair: _value(pair[0], metric))
    report = _report(work, [result for result, _ in results], metric, collapses)
    if (folder / MODEL).is_dir():  # else it was the best before, and is there already
        with new_folder(out / MODEL, overwrite=True) as scratch:
            shutil.copytree(folder / MODEL, scratch, dirs_exist_ok=True)
    write_whole(out / REPORT, as_text(report).encode())
    save_run(out, {**run, "finished": True, "best": best["seed"]})
    if not keep_all:
        for _, other in results:
            shutil.rmtree(other / MODEL, ignore_errors=True)
    return Finetuned(out, True, report)


def _one_seed(
    work: Work, out: Path, seed: int, retry: Retry
) -> list[tuple[dict[str, Any], Path]] | None:
    """The tries of one seed: one, or more while it collapses and may be repeated."""
    tries: list[tuple[dict[str, Any], Path]] = []
    for number in range(1 if retry == "no" else 1 + AGAIN):
        folder = out / (f"seed-{seed}" + (f"-again-{number}" if number else ""))
        lower = LOWER**number if retry == "rate" else 1.0
        other = SEED_STEP * number if retry == "seed" else 0
        result = fit(work, seed + other, folder, work.recipe.rate * lower)
        if result is None:
            return None
        tries.append((result, folder))
        if result["collapsed"] is None:
            break
        work.watcher.say(f"warning: seed {seed} collapsed: {result['collapsed']}")
    return tries


def _value(result: dict[str, Any], metric: str) -> float:
    return next(iter(result["scores"].values()))[metric]


def _report(
    work: Work, results: list[dict[str, Any]], metric: str, collapses: int
) -> dict[str, Any]:
    values = [_value(result, metric) for result in results]
    summary = over_seeds(values)
    return {
        "task": work.task.settings.name, "metric": metric, "seeds": results,
        "mean": summary.mean, "median": summary.median, "deviation": summary.deviation,
        "best": max(values), "collapses": collapses,
        "train": len(work.train.examples),
        "dev": {name: len(part.examples) for name, part in work.dev.items()},
        "shortened": work.train.features.shortened, "divided": work.train.features.divided,
    }  # fmt: skip


def _tell_lengths(
    features: Features, examples: int, length: int, kind: str, watcher: Watcher
) -> None:
    if features.shortened:
        share = features.shortened / examples
        hint = "--set length=N for more"
        if kind in ("classify", "pair", "regress"):
            hint += ", --long stride to read them in windows"
        what = "questions" if kind == "qa" else "examples"
        watcher.say(
            f"{features.shortened:,} of {examples:,} {what} ({share:.1%}) are cut off to fit "
            f"{length} tokens ({hint})"
        )
    if features.divided:
        watcher.say(f"{features.divided:,} of {examples:,} examples are read in several windows")

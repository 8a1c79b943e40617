"""Fine-tuning: `litebert.finetune("model", "sst-2", "tuned", data="glue/SST-2")`.

OUT/run.json       settings, where from, what came of it
OUT/search/        where `--search` tried other settings (search.py)
OUT/seed-1/ ...    one folder a seed (runs.py); a collapsed one may be repeated (seed-1-again-1)
OUT/report.json    scores by seed, mean and deviation, collapses
OUT/model/         the best seed's model, with a card that says where it opens
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from litebert.base.errors import SettingsError
from litebert.base.files import (
    json_text,
    lock_folder,
    new_folder,
    sha256,
    sweep,
    write_atomic,
)
from litebert.base.intervals import over_seeds
from litebert.base.processes import source_checksum
from litebert.base.remote.mirror import Mirror
from litebert.base.runtime import default_device, keep_freed_memory
from litebert.base.settings import load_record
from litebert.finetuning.baseline import Baseline, measure_baseline
from litebert.finetuning.choose import choose_recipe
from litebert.finetuning.doubts import before_training
from litebert.finetuning.feature_cache import cached_features, checksum
from litebert.finetuning.model_card import finetuned_facts
from litebert.finetuning.on_ray import SeedTask, check_cluster, run_seeds
from litebert.finetuning.recipe import Recipe
from litebert.finetuning.reports import Finetuned, FinetuneReport
from litebert.finetuning.runs import FeaturedExamples, RunResult, RunSetup, run_seed
from litebert.finetuning.search import parse_search, search_recipe
from litebert.finetuning.soft_labels import TaskTeacher, open_teacher
from litebert.inference.model_folder import open_tokenizer
from litebert.model.card import where_it_opens
from litebert.model.folder import MODEL, find_model_folder, write_card
from litebert.model.model import Model
from litebert.tasks.data import TaskData, open_data
from litebert.tasks.features import Features
from litebert.tasks.featurize import make_features
from litebert.tasks.readers.text_file import Say, quiet
from litebert.tasks.registry import build_task
from litebert.tasks.source import DataSource
from litebert.tasks.task import Task
from litebert.text.tokenizer import Tokenizer
from litebert.train.callbacks import Callback, CallbackList
from litebert.train.distributed import DistributedGroup, join_group
from litebert.train.run_folder import make_folder, open_run, save_run
from litebert.train.signals import stop_requests

Retry = Literal["no", "seed", "learning_rate"]
RETRIES = ("no", "seed", "learning_rate")
MAX_RETRIES = 2  # of a collapsed run
RETRY_FACTOR = 0.5  # of the learning rate, each time
RETRY_SEED = 1000  # added to the seed, each time
REPORT = "report.json"
RUN_FORMAT = 3


def finetune(
    model: str | Path,
    task: str,
    out: str | Path,
    *,
    data: str | Path | None = None,
    train: str | Path | None = None,
    dev: str | Path | None = None,
    columns: Sequence[str] | Mapping[str, str] = (),
    level: str = "all",
    repair: bool = False,
    recipe: str | None = None,
    overrides: Sequence[str] = (),
    overflow: str = "truncate",
    seeds: int = 1,
    retry: Retry = "no",
    freeze: bool = False,
    baseline: bool = True,
    keep_all: bool = False,
    search: str | None = None,
    on: str | None = None,
    teacher: str | Path | None = None,
    unlabelled: str | Path | None = None,
    callbacks: Iterable[Callback] = (),
) -> Finetuned:
    """Fine-tune a pretrained encoder for a task: a published one, or a file of your own.

    Ctrl-C saves; the same command resumes. The best seed's model is in OUT/model. On several
    devices: torchrun --nproc-per-node 2 -m litebert finetune …

    Example: litebert finetune run --task sst-2 --data glue/SST-2 --out tuned --seeds 5

    Example: litebert finetune run --task classify --train reviews.csv --out tuned

    Args:
        model: A run, or a model folder: ours or Hugging Face's; also a URL (s3://…) of these.
        task: cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte, wnli, squad-1.1, squad-2.0, race or
            ner; or for files of your own: classify, pair, regress, tag, qa or choice.
        out: The run's folder, or a URL; the best seed's model is in its subfolder `model`.
        data: The folder of a published task's files, or of yours, named train and dev (or valid).
        train: Your examples: .csv, .tsv, .jsonl, .json or .parquet; .json like SQuAD's; CoNLL's
            columns; a folder of such files named train and dev; "-" for standard input.
        dev: Examples to evaluate on; without them a tenth of `train` is held out.
        columns: Which column of a table is what, where names do not say so: text=body, or text=0
            by its number.
        level: Of RACE: middle, high or all.
        repair: Move SQuAD's answers that are not at their offset to the nearest place.
        recipe: paper (Table 14) or a TOML file; without it, one that fits the data and the model.
        overrides: Settings of the recipe to change, as "learning_rate=1e-4".
        overflow: Texts beyond max_length: truncate them, or stride (read them in windows).
        seeds: Runs from different seeds; the best is kept.
        retry: A collapsed run is repeated: no, with another seed, or a lower learning_rate.
        freeze: A linear probe: the encoder stays as it is, and only the head is fitted, in seconds.
        baseline: Train TF-IDF and a linear model on the same examples, to be seen beside.
        keep_all: Keep every seed's model.
        search: Try learning rates and poolings first, within a time (5m) or a number of runs (12).
        on: "ray" or "ray:ADDRESS": seeds run on the nodes of a Ray cluster, one device each; OUT
            must be on a file system that all nodes share.
        teacher: A fine-tuned model of this task, larger as a rule, whose probabilities (or numbers)
            are learned beside the labels; for classify, pair and regress.
        unlabelled: With a teacher: more texts of the same kind, a file as `train` without labels,
            or a text a line.
        callbacks: Told of the run's events (train/callbacks.py).

    Returns:
        The run's folder, and its report if it was not stopped before its end.
    """
    if retry not in RETRIES:
        raise SettingsError(f"--retry {retry}: choose {', '.join(RETRIES)}")
    if seeds < 1:
        raise SettingsError(f"--seeds {seeds}: at least one is needed")
    if on is not None:
        check_cluster(on, out)
    with ExitStack() as held:
        group = held.enter_context(join_group())
        heard = CallbackList(callbacks if group.is_main else ())
        folder = find_model_folder(Path(model))
        source = DataSource.build(data, train, dev, columns, level, repair)
        found = open_data(task, source, heard.on_message)
        start = Model.load(folder)
        overrides = [*overrides, "freeze=true"] if freeze else overrides
        taught_by = open_teacher(teacher, unlabelled, found, source, heard.on_message)
        learned = found if taught_by is None else taught_by.joined(found)
        chosen = choose_recipe(
            start, folder, learned, open_tokenizer(folder), recipe, overrides, heard.on_message,
            contrasts=taught_by is None and group.world_size == 1,
        )  # fmt: skip
        # Every rank writes what the main one writes, to a folder that is thrown away.
        place = out if group.is_main else held.enter_context(tempfile.TemporaryDirectory())
        mirror = Mirror(place)
        held.callback(mirror.close)
        mirror.pull()
        done = finetune_examples(
            start, folder, found, chosen, mirror.folder, overflow=overflow, seeds=seeds,
            retry=retry, baseline=baseline and group.is_main, keep_all=keep_all, search=search,
            teacher=taught_by, callbacks=heard, group=group, on=on,
        )  # fmt: skip
        mirror.push()
        return done


def finetune_examples(
    start: Model, folder: Path, data: TaskData, recipe: Recipe, out: Path, *,
    overflow: str = "truncate", seeds: int = 1, retry: Retry = "no", baseline: bool = False,
    keep_all: bool = False, search: str | None = None, teacher: TaskTeacher | None = None,
    callbacks: Callback | None = None, group: DistributedGroup | None = None,
    on: str | None = None,
) -> Finetuned:  # fmt: skip
    """The same for examples at hand, from a model at hand whose tokenizer is in `folder`."""
    callbacks, group = callbacks or Callback(), group or DistributedGroup(device=default_device())
    _check_ranks(group, recipe, search, teacher is not None, on)
    tokenizer = open_tokenizer(folder)
    longest = start.config.longest_sequence
    if recipe.max_length > longest:
        raise SettingsError(
            f"max_length {recipe.max_length}: {folder} has positions for {longest} tokens "
            f"(--set max_length={longest})"
        )
    if recipe.exits and start.config.num_hidden_layers < 2:
        raise SettingsError(f"exits=true: {folder} has one layer, before which there is no exit")
    if search is not None and recipe.freeze:
        raise SettingsError("--search: a frozen encoder has no learning rate to search for")
    if teacher is not None and (search is not None or recipe.fits_head):
        how = "--search" if search is not None else "freeze and contrastive"
        raise SettingsError(f"--teacher: {how} cannot be combined with it; leave one of them out")
    if teacher is not None and recipe.exits:
        raise SettingsError("--teacher: it teaches the last layer's head alone; leave exits out")
    budget = None if search is None else parse_search(search)
    task = _task(data, recipe, overflow)
    keep_freed_memory()
    with ExitStack() as held:
        should_stop = held.enter_context(stop_requests())
        make_folder(out)
        description = _describe(task, recipe, data, folder, retry, search, teacher)
        group.require_equal({"settings": description["settings"], "litebert": source_checksum()})
        report = _finished_everywhere(group, _finished_report(out, description))
        if report is not None and len(report.seeds) >= seeds:  # needs no disk that can be written
            callbacks.on_message(f"{out}: finished before, with {len(report.seeds)} seed(s)")
            return Finetuned(out, report, _opens(start, task, out))
        held.enter_context(lock_folder(out, "litebert finetune"))
        sweep(out)
        run = open_run(out, description)
        save_run(out, run)

        def setup_of(recipe: Recipe, data: TaskData, say: Say = quiet) -> RunSetup:
            task = _task(data, recipe, overflow, say)
            train, dev = _featured(task, data, tokenizer, folder)
            taught = None
            if teacher is not None:
                unlabelled = make_features(task, teacher.unlabelled, tokenizer, folder)
                parts = (train.features, unlabelled)
                taught = teacher.teach(task, train.examples, parts, out, say)
            return RunSetup(
                start, task, recipe, tokenizer, train, dev, group, callbacks, should_stop, taught
            )

        if budget is not None:
            found = search_recipe(setup_of, recipe, data, out, budget)
            if found is None:
                return Finetuned(out, None)
            recipe = found
        setup = setup_of(recipe, data, callbacks.on_message)
        dev = len(setup.first_dev.examples)
        _tell_lengths(setup.task, setup.train.features, len(data.train), callbacks)
        for warning in before_training(recipe, setup.steps_per_epoch, dev):
            callbacks.on_message(warning)
        if on is not None:
            place = (Path(out).absolute(), overflow, retry)
            tasks = [
                SeedTask(folder.absolute(), data, recipe, *place, seed + 1) for seed in range(seeds)
            ]
            run_seeds(on, tasks, run_task, setup)
        return _all_seeds(setup, out, run, seeds, retry, baseline, keep_all)


def _check_ranks(
    group: DistributedGroup, recipe: Recipe, search: str | None, taught: bool, on: str | None
) -> None:
    """What one process alone can do."""
    if group.world_size == 1 and on is None:
        return
    if taught:
        raise SettingsError("--teacher: goes with one process, which keeps its answers")
    if search is not None:
        raise SettingsError("--search: goes with one process, as it watches the time")
    if recipe.contrastive and group.world_size > 1:
        raise SettingsError("contrastive=true: its pairs are drawn within a batch, by one process")


def _finished_everywhere(
    group: DistributedGroup, report: FinetuneReport | None
) -> FinetuneReport | None:
    """What the main rank finds finished, on all ranks."""
    found = group.broadcast_object(None if report is None else asdict(report))
    return report if found is None or report else load_record(FinetuneReport, found, REPORT)


def _task(data: TaskData, recipe: Recipe, overflow: str, say: Say = quiet) -> Task:
    asked = {**recipe.model_dump(), "overflow": overflow}
    return build_task(data.settings).configured(asked, data.train, say)


def _finished_report(out: Path, description: dict[str, Any]) -> FinetuneReport | None:
    finished = open_run(out, description)["finished"] and os.path.isdir(out / MODEL)
    return FinetuneReport.load(out / REPORT) if finished else None


def _describe(
    task: Task, recipe: Recipe, data: TaskData, folder: Path, retry: Retry, search: str | None,
    teacher: TaskTeacher | None,
) -> dict[str, Any]:  # fmt: skip
    """What a run is: equal descriptions, equal runs."""
    settings = {
        "task": task.settings.model_dump(mode="json"), "recipe": recipe.model_dump(mode="json"),
        "examples": checksum(data.train)[:16], "retry": retry,
        "search": search, "teacher": None if teacher is None else teacher.describe(),
        "dev": {name: checksum(part)[:16] for name, part in data.dev.items()},
        "start": {file.name: sha256(file)[:16] for file in sorted(folder.glob("*.safetensors"))},
    }  # fmt: skip
    return {"format": RUN_FORMAT, "settings": settings, "corpus": None, "from": str(folder)}


def _featured(
    task: Task, data: TaskData, tokenizer: Tokenizer, folder: Path
) -> tuple[FeaturedExamples, dict[str, FeaturedExamples]]:
    def featured(examples: list[Any]) -> FeaturedExamples:
        return FeaturedExamples(examples, cached_features(task, examples, tokenizer, folder))

    return featured(data.train), {name: featured(part) for name, part in data.dev.items()}


def _tell_lengths(task: Task, features: Features, examples: int, callbacks: Callback) -> None:
    if features.truncated:
        callbacks.on_message(
            f"{features.truncated:,} of {examples:,} {task.noun} "
            f"({features.truncated / examples:.1%}) are truncated to fit "
            f"{task.settings.max_length} tokens (--set max_length=N for more{task.overflow_hint})"
        )
    if features.windowed:
        callbacks.on_message(
            f"{features.windowed:,} of {examples:,} examples are read in several windows"
        )


def _all_seeds(
    setup: RunSetup, out: Path, run: dict[str, Any], seeds: int, retry: Retry, baseline: bool,
    keep_all: bool,
) -> Finetuned:  # fmt: skip
    results: list[tuple[RunResult, Path]] = []
    collapses = 0
    for seed in range(1, seeds + 1):
        tries = _one_seed(setup, out, seed, retry)
        if tries is None:
            return Finetuned(out, None)
        collapses += sum(result.collapsed is not None for result, _ in tries)
        results.append(tries[-1])
    metric = setup.task.settings.metrics[0]
    best, folder = max(results, key=lambda pair: pair[0].value(metric))
    # A model that is not there was the best before, and is in its place already.
    source = folder / MODEL if os.path.isdir(folder / MODEL) else out / MODEL
    beside = measure_baseline(setup, source) if baseline else None
    if source != out / MODEL:
        with new_folder(out / MODEL, overwrite=True) as scratch:
            shutil.copytree(source, scratch, dirs_exist_ok=True)
            searched = run["settings"]["search"] is not None
            facts = finetuned_facts(setup, best, len(results), beside, searched=searched)
            write_card(scratch, facts)
    report = _report(setup, [result for result, _ in results], metric, collapses, beside)
    write_atomic(out / REPORT, json_text(asdict(report)).encode())
    save_run(out, {**run, "finished": True, "best": best.seed})
    if not keep_all:
        for _, other in results:
            shutil.rmtree(other / MODEL, ignore_errors=True)
    return Finetuned(out, report, _opens(setup.start, setup.task, out))


def _opens(start: Model, task: Task, out: Path) -> tuple[str, ...]:
    return tuple(where_it_opens(start.config.family, [task.head], str(out / MODEL)))


def _one_seed(
    setup: RunSetup, out: Path, seed: int, retry: str
) -> list[tuple[RunResult, Path]] | None:
    """The tries of one seed: one, or more while it collapses and may be repeated."""
    tries: list[tuple[RunResult, Path]] = []
    for number in range(1 if retry == "no" else 1 + MAX_RETRIES):
        folder = out / (f"seed-{seed}" + (f"-again-{number}" if number else ""))
        lower = RETRY_FACTOR**number if retry == "learning_rate" else 1.0
        other = RETRY_SEED * number if retry == "seed" else 0
        result = run_seed(setup, seed + other, folder, setup.recipe.learning_rate * lower)
        if result is None:
            return None
        tries.append((result, folder))
        if result.collapsed is None:
            break
        setup.callbacks.on_message(f"warning: seed {seed} collapsed: {result.collapsed}")
    if tries[-1][0].doubt and tries[-1][0].collapsed is None:
        setup.callbacks.on_message(f"warning: seed {seed}: {tries[-1][0].doubt}")
    return tries


def run_task(task: SeedTask) -> list[RunResult]:
    """One seed, wherever it is run; all its tries."""
    start, tokenizer = Model.load(task.folder), open_tokenizer(task.folder)
    kind = _task(task.data, task.recipe, task.overflow)
    train, dev = _featured(kind, task.data, tokenizer, task.folder)
    group = DistributedGroup(device=default_device())
    setup = RunSetup(start, kind, task.recipe, tokenizer, train, dev, group)
    tries = _one_seed(setup, task.out, task.seed, task.retry)
    assert tries is not None  # nobody asked it to stop
    return [result for result, _ in tries]


def _report(
    setup: RunSetup, results: list[RunResult], metric: str, collapses: int,
    baseline: Baseline | None,
) -> FinetuneReport:  # fmt: skip
    values = [result.value(metric) for result in results]
    summary, features = over_seeds(values), setup.train.features
    return FinetuneReport(
        task=setup.task.settings.name, metric=metric, seeds=tuple(results), mean=summary.mean,
        median=summary.median, deviation=summary.deviation, best=max(values), collapses=collapses,
        train=len(setup.train.examples),
        dev={name: len(part.examples) for name, part in setup.dev.items()},
        truncated=features.truncated, windowed=features.windowed, baseline=baseline,
    )  # fmt: skip

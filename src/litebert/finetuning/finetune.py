"""Fine-tuning: `litebert.finetune("model", "sst-2", "tuned", data="glue/SST-2")`.

OUT/run.json       settings, where from, what came of it
OUT/seed-1/ ...    one folder a seed (runs.py); a collapsed one may be repeated (seed-1-again-1)
OUT/report.json    scores by seed, mean and deviation, collapses
OUT/model/         the best seed's model, which opens in `transformers`
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from litebert.base.errors import FormatError, SettingsError
from litebert.base.files import json_text, lock_folder, new_folder, read_json, sha256, write_atomic
from litebert.base.intervals import over_seeds
from litebert.base.runtime import default_device, keep_freed_memory
from litebert.base.settings import parse_overrides
from litebert.finetuning.feature_cache import cached_features, checksum
from litebert.finetuning.recipe import Recipe, load_recipe
from litebert.finetuning.runs import FeaturedExamples, RunResult, RunSetup, run_seed
from litebert.inference.model_folder import open_tokenizer
from litebert.model.folder import MODEL, find_model_folder
from litebert.model.model import Model
from litebert.tasks.data import TaskData, open_data
from litebert.tasks.features import Features
from litebert.tasks.registry import build_task
from litebert.tasks.source import DataSource
from litebert.tasks.task import Task
from litebert.text.tokenizer import Tokenizer
from litebert.train.callbacks import Callback, CallbackList
from litebert.train.distributed import DistributedGroup
from litebert.train.run_folder import make_folder, open_run, save_run
from litebert.train.signals import stop_requests

Retry = Literal["no", "seed", "learning_rate"]
RETRIES = ("no", "seed", "learning_rate")
MAX_RETRIES = 2  # of a collapsed run
RETRY_FACTOR = 0.5  # of the learning rate, each time
RETRY_SEED = 1000  # added to the seed, each time
REPORT = "report.json"
RUN_FORMAT = 3


@dataclass(frozen=True)
class FinetuneReport:
    """What came of all seeds."""

    task: str
    metric: str  # the one that chose the best models
    seeds: tuple[RunResult, ...]
    mean: float
    median: float
    deviation: float | None
    best: float
    collapses: int  # runs, repeated ones among them
    train: int  # examples
    dev: dict[str, int]
    truncated: int  # training examples that lost text to fit
    windowed: int  # training examples that are read in several windows

    @classmethod
    def load(cls, path: Path) -> FinetuneReport:
        """Read a report."""
        content = read_json(path)
        try:
            seeds = tuple(RunResult(**seed) for seed in content.pop("seeds"))
            return cls(seeds=seeds, **content)
        except (KeyError, TypeError) as error:
            raise FormatError(f"{path}: not a report of `litebert finetune`") from error


@dataclass(frozen=True)
class Finetuned:
    """A run of fine-tuning: its folder, and its report once it is finished."""

    folder: Path
    report: FinetuneReport | None

    @property
    def finished(self) -> bool:
        """Whether it was not stopped before its end."""
        return self.report is not None


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
    keep_all: bool = False,
    callbacks: Iterable[Callback] = (),
) -> Finetuned:
    """Fine-tune a pretrained encoder for a task: a published one, or a file of your own.

    Ctrl-C saves; the same command resumes. The best seed's model is in OUT/model.

    Example: litebert finetune run --task sst-2 --data glue/SST-2 --out tuned --seeds 5

    Example: litebert finetune run --task classify --train reviews.csv --out tuned

    Args:
        model: A run, or a model folder: ours or Hugging Face's.
        task: cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte, wnli, squad-1.1, squad-2.0, race or
            ner; or for files of your own: classify, pair, regress, tag, qa or choice.
        out: The run's folder; the best seed's model is in its subfolder `model`.
        data: The folder of a published task's files, or of yours, named train and dev (or valid).
        train: Your examples: .csv, .tsv, .jsonl, .json or .parquet; .json like SQuAD's; CoNLL's
            columns; a folder of such files named train and dev; "-" for standard input.
        dev: Examples to evaluate on; without them a tenth of `train` is held out.
        columns: Which column of a table is what, where names do not say so: text=body, or text=0
            by its number.
        level: Of RACE: middle, high or all.
        repair: Move SQuAD's answers that are not at their offset to the nearest place.
        recipe: paper (Table 14), base, small, or a TOML file; without it, by the model's size.
        overrides: Settings of the recipe to change, as "learning_rate=1e-4".
        overflow: Texts beyond max_length: truncate them, or stride (read them in windows).
        seeds: Runs from different seeds; the best is kept.
        retry: A collapsed run is repeated: no, with another seed, or a lower learning_rate.
        keep_all: Keep every seed's model.
        callbacks: Told of the run's events (train/callbacks.py).

    Returns:
        The run's folder, and its report if it was not stopped before its end.
    """
    if retry not in RETRIES:
        raise SettingsError(f"--retry {retry}: choose {', '.join(RETRIES)}")
    if seeds < 1:
        raise SettingsError(f"--seeds {seeds}: at least one is needed")
    heard, folder = CallbackList(callbacks), find_model_folder(Path(model))
    source = DataSource.build(data, train, dev, columns, level, repair)
    found = open_data(task, source, heard.on_message)
    start = Model.load(folder)
    settings = choose_recipe(start, found.settings.name, recipe, overrides)
    return finetune_examples(
        start, folder, found, settings, Path(out), overflow=overflow, seeds=seeds, retry=retry,
        keep_all=keep_all, callbacks=heard,
    )  # fmt: skip


def choose_recipe(start: Model, task: str, name: str | None, overrides: Sequence[str]) -> Recipe:
    """A recipe by its name or by the model's size: the paper's is for models of its sizes."""
    width, longest = start.config.hidden_size, start.config.longest_sequence
    name = name or ("paper" if width >= 768 else "base" if width >= 320 else "small")
    without_dropout = start.config.hidden_dropout_prob == 0
    recipe = load_recipe(name, task, overrides, without_dropout=without_dropout)
    if "max_length" in parse_overrides(overrides):  # what the user asked for is refused if too long
        return recipe
    return recipe.model_copy(update={"max_length": min(recipe.max_length, longest)})


def finetune_examples(
    start: Model, folder: Path, data: TaskData, recipe: Recipe, out: Path, *,
    overflow: str = "truncate", seeds: int = 1, retry: Retry = "no", keep_all: bool = False,
    callbacks: Callback | None = None,
) -> Finetuned:  # fmt: skip
    """The same for examples at hand, from a model at hand whose tokenizer is in `folder`."""
    callbacks = callbacks or Callback()
    tokenizer = open_tokenizer(folder)
    longest = start.config.longest_sequence
    if recipe.max_length > longest:
        raise SettingsError(
            f"max_length {recipe.max_length}: {folder} has positions for {longest} tokens "
            f"(--set max_length={longest})"
        )
    asked = {**recipe.model_dump(), "overflow": overflow}
    task = build_task(data.settings).configured(asked, data.train, callbacks.on_message)
    keep_freed_memory()
    with ExitStack() as held:
        should_stop = held.enter_context(stop_requests())
        make_folder(out)
        held.enter_context(lock_folder(out, "litebert finetune"))
        run = open_run(out, _describe(task, recipe, data, folder, retry))
        if run["finished"] and (out / MODEL).is_dir():
            report = FinetuneReport.load(out / REPORT)
            if len(report.seeds) >= seeds:
                callbacks.on_message(f"{out}: finished before, with {len(report.seeds)} seed(s)")
                return Finetuned(out, report)
        save_run(out, run)
        train, dev = _featured(task, data, tokenizer, folder)
        _tell_lengths(task, train.features, len(data.train), callbacks)
        setup = RunSetup(
            start, task, recipe, tokenizer, train, dev, DistributedGroup(device=default_device()),
            callbacks, should_stop,
        )  # fmt: skip
        return _all_seeds(setup, out, run, seeds, retry, keep_all)


def _describe(
    task: Task, recipe: Recipe, data: TaskData, folder: Path, retry: Retry
) -> dict[str, Any]:
    """What a run is: equal descriptions, equal runs."""
    settings = {
        "task": task.settings.model_dump(mode="json"), "recipe": recipe.model_dump(mode="json"),
        "examples": checksum(data.train)[:16], "retry": retry,
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
    setup: RunSetup, out: Path, run: dict[str, Any], seeds: int, retry: Retry, keep_all: bool
) -> Finetuned:
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
    report = _report(setup, [result for result, _ in results], metric, collapses)
    if (folder / MODEL).is_dir():  # else it was the best before, and is there already
        with new_folder(out / MODEL, overwrite=True) as scratch:
            shutil.copytree(folder / MODEL, scratch, dirs_exist_ok=True)
    write_atomic(out / REPORT, json_text(asdict(report)).encode())
    save_run(out, {**run, "finished": True, "best": best.seed})
    if not keep_all:
        for _, other in results:
            shutil.rmtree(other / MODEL, ignore_errors=True)
    return Finetuned(out, report)


def _one_seed(
    setup: RunSetup, out: Path, seed: int, retry: Retry
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
    return tries


def _report(
    setup: RunSetup, results: list[RunResult], metric: str, collapses: int
) -> FinetuneReport:
    values = [result.value(metric) for result in results]
    summary, features = over_seeds(values), setup.train.features
    return FinetuneReport(
        task=setup.task.settings.name, metric=metric, seeds=tuple(results), mean=summary.mean,
        median=summary.median, deviation=summary.deviation, best=max(values), collapses=collapses,
        train=len(setup.train.examples),
        dev={name: len(part.examples) for name, part in setup.dev.items()},
        truncated=features.truncated, windowed=features.windowed,
    )  # fmt: skip

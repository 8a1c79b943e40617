"""Predictions of fine-tuned models: `litebert.predict("tuned", "new.csv")`, or of texts at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from litebert.base.errors import SettingsError
from litebert.base.files import check_writable, write_atomic
from litebert.base.runtime import keep_freed_memory
from litebert.inference.engine import Engine
from litebert.inference.exits import FULL_DEPTH, DepthDial
from litebert.inference.jobs import OnProgress, no_progress
from litebert.inference.output import check_format, predictions_text
from litebert.model.folder import find_model_folder
from litebert.tasks.data import read_split
from litebert.tasks.featurize import make_features
from litebert.tasks.published.registry import PUBLISHED
from litebert.tasks.readers.text_file import Say, quiet
from litebert.tasks.source import DataSource, ExampleInput
from litebert.tasks.task import Prediction, Task


def predict(
    models: str | Path | Sequence[str | Path], input: ExampleInput | None = None, *,
    text: Sequence[str] = (), out: str | Path | None = None, split: str = "test",
    columns: Sequence[str] | Mapping[str, str] = (),
    repair: bool = False, submission: str | Path | None = None, precision: str = "auto",
    exit: str | None = None, depth: int | None = None, say: Say = quiet,
    on_progress: OnProgress = no_progress,
) -> list[Prediction]:  # fmt: skip
    """Predict with a fine-tuned model; several models vote.

    Example: litebert predict tuned --input new.csv --out predictions.jsonl

    Example: litebert predict tuned --text "a fine film" --text "two hours too long"

    Args:
        models: Fine-tuned runs or model folders; several vote.
        input: Examples: a file, a folder with a file of the split or a published task's, or "-" for
            standard input; in Python also a list of texts, of pairs of texts, or of dicts with the
            columns of a table.
        text: Texts to predict for, instead of `input`; the two texts of a pair, or a question and
            its passage, have ||| between them.
        out: Where predictions also go: .jsonl, .json, .csv, .tsv, or .conll for tags.
        split: Of a published task's folder; `ax` for a model of MNLI.
        columns: Which column of a table is what, where names do not say so: text=body, or text=0
            by its number.
        repair: Move SQuAD's answers that are not at their offset to the nearest place.
        submission: Where predictions also go in the task's official format: GLUE's zip (which
            grows task by task), SQuAD's folder of JSON, RACE's JSON lines.
        precision: fp32; bf16 where the hardware has it; int8, smallest and fastest on most CPUs;
            auto is bf16 where that is faster, else fp32.
        exit: When a text has been read deeply enough: patience=3, confidence=0.95, depth=4, or
            accuracy=-0.5, the cheapest rule that lost so many points on dev at most. For models
            fine-tuned with --set exits=true.
        depth: Layers to run, at most; encoders that share all layers can run any number.
        say: Told what the user should know, a sentence each.
        on_progress: Called with how many sequences are done, and of how many.

    Returns:
        A prediction for each example, of the class that its kind of task has, with what was asked
        as its `inputs`.
    """
    if (input is None) == (not text):
        raise SettingsError("give --input FILE (- for standard input), or texts with --text")
    for path in (out, submission):
        if path is not None:
            check_writable(Path(path))
    source = DataSource.build(
        list(text) if input is None else input, columns=columns, repair=repair
    )
    task, _, predictions = ask(
        models, source, split=split, labelled=False, precision=precision,
        dial=DepthDial(exit, depth), say=say, on_progress=on_progress,
        check=lambda task: None if out is None else check_format(Path(out), task),
    )  # fmt: skip
    if submission is not None:
        _submit(task, predictions, Path(submission), split, say)
    if out is not None:
        write_atomic(Path(out), predictions_text(Path(out), task, predictions).encode())
    return predictions


def ask(
    models: str | Path | Sequence[str | Path], source: DataSource, *, split: str, labelled: bool,
    precision: str = "auto", dial: DepthDial = FULL_DEPTH, say: Say = quiet,
    on_progress: OnProgress = no_progress, check: Callable[[Task], None] = lambda task: None,
) -> tuple[Task, list[Any], list[Prediction]]:  # fmt: skip
    """What one or several fine-tuned models say of examples; `check` may refuse the task before."""
    models = [models] if isinstance(models, str | Path) else models
    if not models:
        raise SettingsError("name at least one model folder")
    keep_freed_memory()
    tasks: list[Task] = []
    examples: list[Any] = []
    said: list[list[Prediction]] = []
    for folder in (find_model_folder(Path(model)) for model in models):
        engine = Engine(folder, precision, dial.depth, dial.exit)
        task = engine.needs_task()
        if not tasks:
            check(task)
            examples = read_split(task, source, split=split, labelled=labelled, say=say)
            if precision == "auto":
                say(f"precision: {engine.precision}")
        tasks.append(task)
        _check_same(tasks[0], task, folder)
        features = make_features(task, examples, engine.tokenizer, folder)
        told = dial != FULL_DEPTH
        said.append(
            engine.predict_examples(examples, features, tell_depth=told, on_progress=on_progress)
        )
    jury, found = tasks[0], said[0]
    if len(said) > 1:
        jury = tasks[0].together_with(tasks[1:])
        found = [jury.merge(votes) for votes in zip(*said, strict=True)]
    pairs = zip(examples, found, strict=True)
    return jury, examples, [replace(one, inputs=jury.inputs_of(asked)) for asked, one in pairs]


def _check_same(task: Task, other: Task, where: Path) -> None:
    for key in ("kind", "labels"):
        mine, theirs = (getattr(one.settings, key) for one in (task, other))
        if mine != theirs:
            raise SettingsError(
                f"{where}: a model of other {key} ({theirs}) cannot vote with the first ({mine})"
            )


def _submit(
    task: Task, predictions: Sequence[Prediction], path: Path, split: str, say: Say
) -> None:
    published = PUBLISHED.get(task.settings.name)
    if published is None:
        task.write_submission(path, predictions)
    else:
        published.write_submission(task, predictions, path, split, say)

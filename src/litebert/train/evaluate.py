"""Evaluating a model: pretrained on held-out text or minimal pairs, fine-tuned on its task.

Sentence order and next sentence are both asked of a model with a pair head, whichever it learned:
that is the cross-evaluation of the paper's Table 5. Samples and masks depend on the corpus and the
length alone, so that models of one tokenizer are asked the same things.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from litebert.base.batches import Batch
from litebert.base.errors import SettingsError
from litebert.base.files import read_json
from litebert.base.intervals import wilson
from litebert.base.remote.folders import local_folder
from litebert.base.runtime import Precision, default_device
from litebert.configs.schema import Preset, PresetData
from litebert.corpus.loader import LoaderSettings
from litebert.corpus.sampling.input_formats import INPUT_FORMATS
from litebert.corpus.statistics import token_counts, unigram_loss
from litebert.corpus.store import Store
from litebert.inference.evaluate import TaskReport, evaluate_task
from litebert.inference.jobs import OnProgress, no_progress
from litebert.inference.minimal_pairs import MinimalPairReport, evaluate_minimal_pairs
from litebert.model.folder import find_model_folder
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.objectives.masking import Masker, Masking
from litebert.objectives.registry import OBJECTIVES, build_objectives
from litebert.tasks.readers.text_file import Say, quiet
from litebert.tasks.source import ExampleInput
from litebert.train.distributed import DistributedGroup
from litebert.train.held_out import evaluate_batches, held_out_batches
from litebert.train.metrics import Sums
from litebert.train.run_folder import CHECKPOINTS, GENERATOR, RUN

MICRO_BATCH_TOKENS = 8192


@dataclass(frozen=True)
class ObjectiveReport:
    """How well an objective is met, with the 95 % interval of its accuracy."""

    loss: float
    accuracy: float | None  # None for an objective that does not count correct answers
    interval: tuple[float, float] | None
    count: int
    recall: float | None = None  # of the replaced tokens


@dataclass(frozen=True)
class HeldOutReport:
    """What a pretrained model predicts on held-out text."""

    max_length: int
    unigram_loss: float  # of predicting masked tokens by their frequency
    objectives: dict[str, ObjectiveReport]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def evaluate(
    models: str | Path | Sequence[str | Path],
    *,
    corpus: str | Path | Sequence[str | Path] | None = None,
    input: ExampleInput | None = None,
    blimp: str | Path | None = None,
    split: str = "dev",
    columns: Sequence[str] = (),
    repair: bool = False,
    precision: str = "auto",
    exit: str | None = None,
    depth: int | None = None,
    sequences: int = 2000,
    max_length: int | None = None,
    input_format: str | None = None,
    say: Say = quiet,
    on_progress: OnProgress = no_progress,
) -> HeldOutReport | TaskReport | MinimalPairReport:
    """Evaluate a pretrained model on held-out text, or a fine-tuned one on labelled examples.

    A model with a sentence-pair head is asked for order and for next sentence, whichever it learned
    (Table 5 of the paper). Intervals are 95 %.

    Example: litebert evaluate run --corpus corpus

    Example: litebert evaluate tuned --input glue/SST-2

    Example: litebert evaluate run --blimp blimp/data

    Args:
        models: A run's folder, or any model folder; several fine-tuned ones vote.
        corpus: For a pretrained model: a store made by `litebert prepare`, or all its parts.
        input: For a fine-tuned model: labelled examples (a file, a folder with one named dev, "-"
            for standard input), or the folder of a published task.
        blimp: For a pretrained model: a folder of minimal pairs (BLiMP's .jsonl files); is the
            grammatical sentence likelier?
        split: Of a published task's folder.
        columns: With `input`: which column is what, e.g. text=body, or text=0 by its number.
        repair: Move answers that are not at their offset to the nearest place.
        precision: With `input`: fp32, bf16, int8 or auto, as in `predict`.
        exit: With `input`: when a text has been read deeply enough, as in `predict`.
        depth: With `input`: layers to run, at most.
        sequences: Held-out sequences, at most.
        max_length: Tokens of a sequence; by default as in the run.
        input_format: How sentences become samples; by default as in the run.
        say: Told what the user should know, a sentence each.
        on_progress: Called with how many sequences are done, and of how many.
    """
    folders = [models] if isinstance(models, str | Path) else list(models)
    given = [one is not None for one in (corpus, input, blimp)]
    if sum(given) != 1 or (input is None and len(folders) != 1):
        raise SettingsError(
            "give --corpus STORE or --blimp FOLDER to evaluate one pretrained model, or --input "
            "EXAMPLES for fine-tuned ones"
        )
    if input is not None:
        return evaluate_task(
            folders, input, split=split, columns=columns, repair=repair, precision=precision,
            exit=exit, depth=depth, say=say, on_progress=on_progress,
        )  # fmt: skip
    if exit is not None or depth is not None:
        raise SettingsError("--exit and --depth are for fine-tuned models, with --input EXAMPLES")
    if blimp is not None:
        return evaluate_minimal_pairs(folders[0], blimp, on_progress=on_progress)
    stores = [corpus] if isinstance(corpus, str | Path) else list(corpus or ())
    return evaluate_held_out(
        folders[0], stores, sequences=sequences, max_length=max_length, input_format=input_format,
        on_progress=on_progress,
    )  # fmt: skip


def evaluate_held_out(
    folder: str | Path,
    corpus: Sequence[str | Path],
    *,
    sequences: int = 2000,
    max_length: int | None = None,
    input_format: str | None = None,
    precision: Precision = "auto",
    on_progress: OnProgress = no_progress,
) -> HeldOutReport:
    """Losses and accuracies of a model on a corpus's held-out text.

    Masking, length and input format are those of the run; ALBERT's, and 128 tokens, without one.
    """
    folder, store = local_folder(folder, leave_out=CHECKPOINTS), Store(corpus)
    if sequences < 1:
        raise SettingsError(f"--sequences {sequences}: at least one is needed")
    model = Model.load(find_model_folder(folder))
    masking, data = _settings(folder)
    most = model.config.longest_sequence
    length = min(data.max_length, most) if max_length is None else max_length
    if not 8 <= length <= most:
        raise SettingsError(f"--max-length {length}: choose 8 to {most}, the model's positions")
    counts = token_counts(store)
    if store.info.vocab_size > model.config.vocab_size:
        raise SettingsError(
            f"{store.folders[0]}: prepared with vocab_size {store.info.vocab_size}, {folder} has "
            f"{model.config.vocab_size}; run `litebert prepare` with the model's tokenizer"
        )
    masker = Masker(masking, store.tokenizer, counts)
    group = DistributedGroup(device=default_device())
    found: dict[str, ObjectiveReport] = {}
    learners = _learners(model, folder, input_format or data.input_format)
    for number, (learner, format) in enumerate(learners):
        learner.to(group.device).eval()
        loading = LoaderSettings(input_format=format, max_length=length)
        batches = held_out_batches(store, loading, masker, sequences, group)
        batches = _counted(batches, number * sequences, len(learners) * sequences, on_progress)
        found |= _reports(evaluate_batches(learner, batches, group, precision, MICRO_BATCH_TOKENS))
    return HeldOutReport(length, unigram_loss(masker.masked_counts(counts)), found)


def _counted(
    batches: Iterable[Batch], done: int, size: int, on_progress: OnProgress
) -> Iterator[Batch]:
    for batch in batches:
        yield batch
        done += len(batch)
        on_progress(done, size)


def _settings(folder: Path) -> tuple[Masking, PresetData]:
    """What the run was trained with."""
    if not os.path.lexists(folder / RUN):
        return Masking(), PresetData(max_length=128)
    run = read_json(folder / RUN)
    preset = Preset.build(run.get("settings") or {}, str(folder / RUN))
    return preset.masking, preset.data


def _learners(model: Model, folder: Path, run_format: str) -> list[tuple[Learner, str]]:
    """The model with each objective that it has a head for, and the input format to ask it in."""
    found: list[tuple[Learner, str]] = []
    for name, objective in OBJECTIVES.items():
        if objective.head not in model.heads:
            continue
        generator = None
        if name == "replaced_token":
            if not os.path.isdir(folder / GENERATOR):
                continue
            generator = Model.load(folder / GENERATOR)
        learner = Learner(model, build_objectives([name]), generator)
        found.append((learner, _input_format(objective.negatives) or run_format))
    if not found:
        raise SettingsError(
            f"{folder}: has no pretraining head to evaluate (ELECTRA's needs RUN/generator beside "
            "RUN/model)"
        )
    return found


def _input_format(negatives: str | None) -> str | None:
    """The first input format with such negatives: "albert" for order, "bert" for next sentence."""
    fitting = (name for name, rules in INPUT_FORMATS.items() if rules.negatives == negatives)
    return next(fitting, None)


def _reports(sums: Sums) -> dict[str, ObjectiveReport]:
    means = sums.means()
    return {
        name: ObjectiveReport(
            loss=values["loss"] / count,
            accuracy=means.accuracy.get(name),
            interval=_interval(values.get("correct"), count),
            count=int(count),
            recall=means.recall.get(name),
        )
        for name, count, values in sums.rows()
        if count
    }


def _interval(correct: float | None, count: float) -> tuple[float, float] | None:
    if correct is None:
        return None
    found = wilson(correct, count)
    return found.low, found.high

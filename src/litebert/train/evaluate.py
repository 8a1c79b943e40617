"""Measuring a pretrained model on held-out text: every objective it has a head for.

Sentence order and next sentence are both asked of a model with a pair head, whichever it learned:
that is the cross-evaluation of the paper's Table 5. Samples and masks depend on the corpus and the
length alone, so that models of one tokenizer are asked the same things.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from litebert.base.errors import SettingsError
from litebert.base.files import read_json
from litebert.base.runtime import Precision, default_device
from litebert.corpus.loader import LoaderSettings
from litebert.corpus.statistics import piece_counts, unigram_level
from litebert.corpus.store import Store
from litebert.model.model import Model
from litebert.objectives.base import Objective
from litebert.objectives.learner import Learner
from litebert.objectives.masking import Masker, Masking
from litebert.objectives.pairs import SentencePair
from litebert.objectives.registry import objectives
from litebert.presets.recipe import Data, Preset
from litebert.train.evaluation import held_out, measure
from litebert.train.metrics import Sums
from litebert.train.parallel import Group
from litebert.train.run import GENERATOR, RUN, model_folder

PAIRS = {"sentence_order": "albert", "next_sentence": "bert"}
AT_ONCE = 8192
NORMAL_95 = 1.96
Report = dict[str, Any]


def evaluate(
    folder: str | Path,
    corpus: str | Path | Sequence[str | Path],
    *,
    sequences: int = 2000,
    length: int | None = None,
    arrangement: str | None = None,
    precision: Precision = "auto",
) -> Report:
    """Losses and accuracies of a run's model, or of any model folder, on a corpus's held-out text.

    Masking, length and arrangement are those of the run; ALBERT's, and 128 tokens, without one.
    """
    folder = Path(folder)
    store = Store([corpus] if isinstance(corpus, str | Path) else list(corpus))
    model = Model.load(model_folder(folder))
    masking, data = _settings(folder)
    length = length or min(data.length, model.config.longest_sequence)
    counts = piece_counts(store)
    if store.info.vocabulary > model.config.vocab_size:
        raise SettingsError(
            f"{store.folders[0]}: prepared with vocabulary {store.info.vocabulary}, {folder} has "
            f"{model.config.vocab_size}; run `litebert prepare` with the model's tokenizer"
        )
    masker = Masker(masking, store.tokenizer, counts)
    group = Group(device=default_device())
    report: Report = {"length": length, "unigram": unigram_level(masker.hidden(counts))}
    for learner, arranged in _learners(model, folder, arrangement or data.arrangement):
        learner.to(group.device).eval()
        loading = LoaderSettings(arrangement=arranged, length=length)
        batches = held_out(store, loading, masker, sequences, group)
        report |= _entries(measure(learner, batches, group, precision, AT_ONCE))
    return report


def _settings(folder: Path) -> tuple[Masking, Data]:
    """What the run was trained with."""
    if not (folder / RUN).exists():
        return Masking(), Data(length=128)
    run = read_json(folder / RUN)
    preset = Preset.build(run.get("settings") or {}, str(folder / RUN))
    return preset.masking, preset.data


def _learners(model: Model, folder: Path, arranged: str) -> list[tuple[Learner, str]]:
    """The model with each thing to ask of it, and the arrangement that asks it."""
    found: list[tuple[Learner, str]] = []
    alone = [head for head in ("masked_language", "span_boundary") if head in model.heads]
    if alone:
        found.append((Learner(model, objectives(alone, arranged)), arranged))
    if "replaced_token" in model.heads and (folder / GENERATOR).is_dir():
        generator = Model.load(folder / GENERATOR)
        found.append(
            (Learner(model, objectives(["replaced_token"], arranged), generator), arranged)
        )
    if "sentence_pair" in model.heads:
        for name, pairs in PAIRS.items():
            asked: list[Objective] = [SentencePair(name)]
            found.append((Learner(model, asked), pairs))
    if not found:
        raise SettingsError(
            f"{folder}: has no pretraining head to measure (ELECTRA's needs RUN/generator beside "
            "RUN/model)"
        )
    return found


def _entries(sums: Sums) -> Report:
    """One entry an objective: loss, accuracy with its 95 % interval, and of how many."""
    entries: Report = {}
    for name, count, row in zip(sums.names, sums.counts, sums.values, strict=True):
        loss, right, found, hidden = row
        if not count:
            continue
        entries[name] = {
            "loss": loss / count,
            "accuracy": right / count,
            "interval": wilson(right, count),
            "count": int(count),
        }
        if hidden:
            entries[name]["found"] = found / hidden
    return entries


def wilson(right: float, count: float, z: float = NORMAL_95) -> list[float]:
    """The interval of a share (Wilson 1927): sound near 0 and 1, and for small counts."""
    share, square = right / count, z * z / count
    middle = (share + square / 2) / (1 + square)
    half = z * sqrt(share * (1 - share) / count + square / (4 * count)) / (1 + square)
    return [max(middle - half, 0.0), min(middle + half, 1.0)]

"""BLiMP (Warstadt et al. 2020): does a model find the grammatical sentence of a pair likelier?

A folder of JSON lines files, one a paradigm, as published: `sentence_good`, `sentence_bad`, `UID`
(the paradigm) and `linguistics_term` (the phenomenon). No training: sentences are compared by their
pseudo-log-likelihood (pseudo_likelihood.py), plain and within-word left to right.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from litebert.base.errors import FileError, FormatError
from litebert.base.files import read_bytes
from litebert.base.intervals import Interval, wilson
from litebert.base.runtime import Precision
from litebert.inference.jobs import OnProgress, no_progress
from litebert.inference.pseudo_likelihood import pseudo_likelihoods
from litebert.model.folder import find_model_folder
from litebert.model.model import Model
from litebert.text.tokenizer import load_tokenizer

LARGEST_FILE = 64 * 2**20


@dataclass(frozen=True)
class MinimalPair:
    """A grammatical sentence and one that is not, which differ in one thing."""

    good: str
    bad: str
    paradigm: str
    phenomenon: str


@dataclass(frozen=True)
class PhenomenonScore:
    """How often the grammatical sentence is found likelier; a tie is half."""

    pairs: int
    plain: Interval
    word: Interval


@dataclass(frozen=True)
class MinimalPairReport:
    """BLiMP's accuracies: the mean over paradigms, as published, and by phenomenon."""

    pairs: int
    paradigms: int
    plain: float
    word: float
    phenomena: dict[str, PhenomenonScore]
    correct: list[tuple[float, float]]  # of each pair: plain, word

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; without the single pairs."""
        found = asdict(self)
        del found["correct"]
        return found


def read_minimal_pairs(folder: Path) -> list[MinimalPair]:
    """The pairs of every .jsonl file of a folder, in the order of their names."""
    files = sorted(folder.glob("*.jsonl")) if os.path.isdir(folder) else []
    if not files:
        raise FileError(f"{folder}: holds no .jsonl files; name the folder of BLiMP's data")
    return [pair for file in files for pair in _read(file)]


def _read(file: Path) -> list[MinimalPair]:
    pairs = []
    for number, line in enumerate(read_bytes(file, LARGEST_FILE).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            good, bad = row["sentence_good"], row["sentence_bad"]
            paradigm = row.get("UID") or file.stem
            phenomenon = row.get("linguistics_term") or paradigm
            texts = (good, bad, paradigm, phenomenon)
            if not all(isinstance(text, str) and text.strip() for text in texts):
                raise ValueError
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise FormatError(
                f"{file}, line {number:,}: no minimal pair; a line is an object with sentence_good "
                "and sentence_bad"
            ) from None
        pairs.append(MinimalPair(*texts))
    return pairs


def evaluate_minimal_pairs(
    folder: str | Path, data: str | Path, *, precision: Precision = "fp32",
    on_progress: OnProgress = no_progress,
) -> MinimalPairReport:  # fmt: skip
    """Score a model folder, or a run, on a folder of minimal pairs."""
    pairs = read_minimal_pairs(Path(data))
    where = find_model_folder(Path(folder))
    model, tokenizer = Model.load(where), load_tokenizer(where)
    sentences = [text for pair in pairs for text in (pair.good, pair.bad)]
    scores = pseudo_likelihoods(
        model, tokenizer, sentences, precision=precision, on_progress=on_progress
    )
    both = np.asarray([[one.plain, one.word] for one in scores]).reshape(-1, 2, 2)
    ahead = both[:, 0] - both[:, 1]  # pairs, ways
    return _report(pairs, (ahead > 0) + 0.5 * (ahead == 0))


def _report(pairs: Sequence[MinimalPair], correct: np.ndarray) -> MinimalPairReport:
    paradigm = np.asarray([pair.paradigm for pair in pairs])
    phenomenon = np.asarray([pair.phenomenon for pair in pairs])
    names = np.unique(paradigm)
    means = np.stack([correct[paradigm == name].mean(0) for name in names])
    phenomena = {}
    for name in np.unique(phenomenon):
        chosen = correct[phenomenon == name]
        plain, word = (wilson(float(column.sum()), len(column)) for column in chosen.T)
        phenomena[str(name)] = PhenomenonScore(len(chosen), plain, word)
    plain, word = means.mean(0).tolist()
    rows = [(float(a), float(b)) for a, b in correct]
    return MinimalPairReport(len(pairs), len(names), plain, word, phenomena, rows)

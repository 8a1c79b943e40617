"""GLUE: the nine tasks and the diagnostic set AX as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from litebert.base.errors import SettingsError, did_you_mean

HIGHEST_SCORE = 5.0  # of STS-B; the lowest is 0
_FILES = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
_MNLI_LABELS = ("contradiction", "entailment", "neutral")
_ENTAILMENT = ("entailment", "not_entailment")
_BINARY = ("0", "1")
_TWO_SENTENCES = ("sentence1", "sentence2")


@dataclass(frozen=True)
class GlueTask:
    """Where a task's examples are, its labels, and how predictions are scored and sent in."""

    name: str  # as published; also its folder
    texts: tuple[str, ...]  # the columns of its one or two texts
    labels: tuple[str, ...]  # in their published order; none: a number from 0 to 5
    submissions: Mapping[str, str]  # split -> file of the submission
    metrics: tuple[str, ...] = ("accuracy",)
    label: str = "label"  # the column of the label in train and dev
    id: str = "index"  # the column that a submission names an example by
    files: Mapping[str, str] = field(default_factory=lambda: _FILES)  # split -> file
    other_folders: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()  # the columns of train and dev, if these have no header
    skips_broken_rows: bool = False


GLUE: dict[str, GlueTask] = {
    "cola": GlueTask(
        "CoLA",
        texts=("sentence",),
        labels=_BINARY,
        submissions={"test": "CoLA.tsv"},
        metrics=("matthews",),
        unnamed=("source", "label", "original_mark", "sentence"),
    ),
    "sst-2": GlueTask(
        "SST-2", texts=("sentence",), labels=_BINARY, submissions={"test": "SST-2.tsv"}
    ),
    "mrpc": GlueTask(
        "MRPC",
        texts=("#1 String", "#2 String"),
        labels=_BINARY,
        submissions={"test": "MRPC.tsv"},
        metrics=("f1", "accuracy"),
        label="Quality",
    ),
    "sts-b": GlueTask(
        "STS-B",
        texts=_TWO_SENTENCES,
        labels=(),
        submissions={"test": "STS-B.tsv"},
        metrics=("pearson", "spearman"),
        label="score",
    ),
    "qqp": GlueTask(
        "QQP",
        texts=("question1", "question2"),
        labels=_BINARY,
        submissions={"test": "QQP.tsv"},
        metrics=("f1", "accuracy"),
        label="is_duplicate",
        id="id",
        # A few published rows are torn by line ends inside a question; Google's code drops them.
        skips_broken_rows=True,
    ),
    "mnli": GlueTask(
        "MNLI",
        texts=_TWO_SENTENCES,
        labels=_MNLI_LABELS,
        submissions={"test": "MNLI-m.tsv", "test-mismatched": "MNLI-mm.tsv"},
        label="gold_label",
        files={
            "train": "train.tsv",
            "dev": "dev_matched.tsv",
            "dev-mismatched": "dev_mismatched.tsv",
            "test": "test_matched.tsv",
            "test-mismatched": "test_mismatched.tsv",
        },
    ),
    "qnli": GlueTask(
        "QNLI",
        texts=("question", "sentence"),
        labels=_ENTAILMENT,
        submissions={"test": "QNLI.tsv"},
    ),
    "rte": GlueTask(
        "RTE", texts=_TWO_SENTENCES, labels=_ENTAILMENT, submissions={"test": "RTE.tsv"}
    ),
    "wnli": GlueTask(
        "WNLI", texts=_TWO_SENTENCES, labels=_BINARY, submissions={"test": "WNLI.tsv"}
    ),
    "ax": GlueTask(  # nothing to learn from: a model of MNLI is asked
        "AX",
        texts=_TWO_SENTENCES,
        labels=_MNLI_LABELS,
        submissions={"test": "AX.tsv"},
        metrics=("matthews",),
        files={"test": "diagnostic.tsv"},
        other_folders=("diagnostic", "MNLI"),
    ),
}


def glue_task(name: str) -> GlueTask:
    """The row of a task."""
    if name.lower() not in GLUE:
        raise SettingsError(f"no GLUE task {name!r}; {did_you_mean(name.lower(), GLUE)}")
    return GLUE[name.lower()]

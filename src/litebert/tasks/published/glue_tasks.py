"""GLUE: the nine tasks and the diagnostic set AX as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from litebert.base.errors import SettingsError, did_you_mean

HIGHEST_SCORE = 5.0  # of STS-B; the lowest is 0
_FILES = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
_MNLI_FILES = {
    "train": "train.tsv",
    "dev": "dev_matched.tsv",
    "dev-mismatched": "dev_mismatched.tsv",
    "test": "test_matched.tsv",
    "test-mismatched": "test_mismatched.tsv",
}


@dataclass(frozen=True)
class GlueTask:
    """Where a task's examples are, its labels, and how predictions are scored and sent in."""

    name: str  # as published; also its folder
    texts: tuple[str, ...]  # the columns of its one or two texts
    labels: tuple[str, ...]  # in their published order; none: a number from 0 to 5
    metrics: tuple[str, ...] = ("accuracy",)
    label: str = "label"  # the column of the label in train and dev
    id: str = "index"  # the column that a submission names an example by
    files: Mapping[str, str] = field(default_factory=lambda: _FILES)  # split -> file
    sent: Mapping[str, str] = field(default_factory=dict)  # split -> name, if not the task's
    other_folders: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()  # the columns of train and dev, if these have no header
    skips_broken_rows: bool = False

    @property
    def submissions(self) -> dict[str, str]:
        """Split -> file of the submission."""
        return {split: f"{name}.tsv" for split, name in (self.sent or {"test": self.name}).items()}


_ONE, _TWO = ("sentence",), ("sentence1", "sentence2")
_BINARY, _ENTAILMENT = ("0", "1"), ("entailment", "not_entailment")
_MNLI = ("contradiction", "entailment", "neutral")
_F1 = ("f1", "accuracy")
GLUE: dict[str, GlueTask] = {
    "cola": GlueTask(
        "CoLA", _ONE, _BINARY, ("matthews",),
        unnamed=("source", "label", "original_mark", "sentence"),
    ),
    "sst-2": GlueTask("SST-2", _ONE, _BINARY),
    "mrpc": GlueTask("MRPC", ("#1 String", "#2 String"), _BINARY, _F1, label="Quality"),
    "sts-b": GlueTask("STS-B", _TWO, (), ("pearson", "spearman"), label="score"),
    "qqp": GlueTask(  # a few published rows are torn by line ends; Google's code drops them
        "QQP", ("question1", "question2"), _BINARY, _F1, label="is_duplicate", id="id",
        skips_broken_rows=True,
    ),
    "mnli": GlueTask(
        "MNLI", _TWO, _MNLI, label="gold_label", files=_MNLI_FILES,
        sent={"test": "MNLI-m", "test-mismatched": "MNLI-mm"},
    ),
    "qnli": GlueTask("QNLI", ("question", "sentence"), _ENTAILMENT),
    "rte": GlueTask("RTE", _TWO, _ENTAILMENT),
    "wnli": GlueTask("WNLI", _TWO, _BINARY),
    "ax": GlueTask(  # nothing to learn from: a model of MNLI is asked
        "AX", _TWO, _MNLI, ("matthews",), files={"test": "diagnostic.tsv"},
        other_folders=("diagnostic", "MNLI"),
    ),
}  # fmt: skip


def glue_task(name: str) -> GlueTask:
    """The row of a task."""
    if name.lower() not in GLUE:
        raise SettingsError(f"no GLUE task {name!r}; {did_you_mean(name.lower(), GLUE)}")
    return GLUE[name.lower()]

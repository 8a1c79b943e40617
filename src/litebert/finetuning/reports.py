"""What comes of fine-tuning: the scores of all seeds, as they are returned and written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from litebert.base.errors import FormatError
from litebert.base.files import read_json
from litebert.base.settings import load_record
from litebert.finetuning.baseline import Baseline
from litebert.finetuning.runs import RunResult


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
    baseline: Baseline | None = None  # TF-IDF and a linear model on the same examples

    @classmethod
    def load(cls, path: Path) -> FinetuneReport:
        """Read a report."""
        try:
            return load_record(cls, read_json(path), str(path))
        except FormatError as error:
            raise FormatError(f"{error}: not a report of `litebert finetune`") from None


@dataclass(frozen=True)
class Finetuned:
    """A run of fine-tuning: its folder, and its report once it is finished."""

    folder: Path
    report: FinetuneReport | None
    opens: tuple[str, ...] = ()  # a line a library: how the model opens there, or that it does not

    @property
    def finished(self) -> bool:
        """Whether it was not stopped before its end."""
        return self.report is not None

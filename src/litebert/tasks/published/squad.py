"""SQuAD 1.1 and 2.0: train-v1.1.json, dev-v2.0.json, …"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from litebert.tasks.published.task import PublishedTask, find_file
from litebert.tasks.question_answering import QuestionAnswering, QuestionSettings
from litebert.tasks.questions import QuestionExample, read_squad
from litebert.tasks.readers.text_file import Say
from litebert.tasks.source import DataSource


@dataclass(frozen=True)
class Squad(PublishedTask):
    """A version of SQuAD; 2.0 has questions that cannot be answered."""

    version: str

    def settings(self, train: Sequence[QuestionExample]) -> QuestionSettings:
        unanswerable = self.version == "2.0"
        return QuestionSettings(
            name=f"squad-{self.version}", kind=QuestionAnswering.kind,
            has_unanswerable=unanswerable,
            metrics=("best_f1", "best_exact") if unanswerable else ("f1", "exact"),
        )  # fmt: skip

    def read(
        self, path: Path, split: str, source: DataSource, *, labelled: bool, say: Say
    ) -> list[QuestionExample]:
        file = find_file(path, f"{split}-v{self.version}.json")
        return read_squad(file, self.version, needs_answers=labelled, repair=source.repair, say=say)

"""Where examples come from: the folder of a published task, or files of the user's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from litebert.tasks.readers.column_mapping import ColumnMapping, GivenColumns


@dataclass(frozen=True)
class DataSource:
    """The files of a task, and how they are read."""

    data: Path | None = None  # the published task's folder; or what a fine-tuned model is asked
    train: Path | None = None
    dev: Path | None = None
    columns: ColumnMapping = field(default_factory=ColumnMapping)  # as the user says
    level: str = "all"  # of RACE
    repair: bool = False  # of SQuAD: move answers that are not at their offset

    @classmethod
    def build(
        cls, data: str | Path | None = None, train: str | Path | None = None,
        dev: str | Path | None = None, columns: GivenColumns = (), level: str = "all",
        repair: bool = False,
    ) -> DataSource:  # fmt: skip
        """From what users give: paths as text, columns as a mapping."""
        data, train, dev = (None if path is None else Path(path) for path in (data, train, dev))
        return cls(data, train, dev, ColumnMapping.build(columns), level, repair)

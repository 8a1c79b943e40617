"""Where examples come from: the folder of a published task, or files of the user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from litebert.base.errors import SettingsError
from litebert.reading.streams import STDIN
from litebert.tasks.readers.column_mapping import ColumnMapping, GivenColumns

# A text, the texts of an example (a pair), or its columns by name.
Value = str | Sequence[str] | Mapping[str, object]
ExampleInput = str | Path | Sequence[Value]  # a file, or examples themselves


@dataclass(frozen=True)
class DataSource:
    """The files of a task, and how they are read."""

    data: Path | None = None  # the published task's folder; or what a fine-tuned model is asked
    train: Path | None = None
    dev: Path | None = None
    columns: ColumnMapping = field(default_factory=ColumnMapping)  # as the user says
    level: str = "all"  # of RACE
    repair: bool = False  # of SQuAD: move answers that are not at their offset
    values: Sequence[Value] | None = None  # examples themselves, instead of `data`
    refused: list[str] | None = None  # collects what is wrong with bad rows, which else stop it

    @classmethod
    def build(
        cls, data: ExampleInput | None = None, train: str | Path | None = None,
        dev: str | Path | None = None, columns: GivenColumns = (), level: str = "all",
        repair: bool = False,
    ) -> DataSource:  # fmt: skip
        """From what users give: paths as text, columns as a mapping, examples as a list."""
        values = None
        if data is not None and not isinstance(data, str | Path):
            data, values = None, list(data)
        data, train, dev = (None if path is None else Path(path) for path in (data, train, dev))
        if (data, train, dev).count(Path(STDIN)) > 1:
            raise SettingsError("standard input (-) can be read once; name a file for the other")
        return cls(data, train, dev, ColumnMapping.build(columns), level, repair, values)

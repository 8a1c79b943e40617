"""How the examples of a kind of task are read: from users' tables and text files, or as given.

A kind says what the columns of a table may be (`roles`) and makes examples of rows (`from_table`);
all else is the same for every kind, and inherited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from litebert.base.errors import FormatError, SettingsError
from litebert.tasks.readers.column_mapping import ColumnMapping, Role, candidates, map_columns
from litebert.tasks.readers.headers import columns_by_content
from litebert.tasks.readers.rows import Row, Table, map_rows, read_table
from litebert.tasks.readers.text_file import Say, quiet
from litebert.tasks.source import DataSource, Value

BETWEEN_TEXTS = "|||"  # of an example of several texts that is given as one


class AnyExample(Protocol):
    """What examples of all kinds have; they are frozen dataclasses of plain values."""

    @property
    def id(self) -> str: ...

    @property
    def where(self) -> str:
        """File and line, for messages; "" where it is not known."""
        ...


E = TypeVar("E", bound=AnyExample)


class ReadsExamples(Protocol[E]):
    """The part of a kind of task that reads."""

    kind: ClassVar[str]  # its name on the command line and in the registry
    plain_columns: ClassVar[tuple[str, ...]] = ()  # of an example that is given as texts alone

    @classmethod
    def roles(cls, columns: Sequence[str], given: ColumnMapping) -> tuple[Role, ...]:
        """What the columns of a table may be; `given` by the user, perhaps a few only."""
        ...

    @classmethod
    def from_table(cls, table: Table, *, labelled: bool, say: Say) -> list[E]:
        """An example for each row; `labelled` ones must have their labels."""
        ...

    @classmethod
    def read_table(
        cls, path: Path, given: ColumnMapping, *, labelled: bool, say: Say
    ) -> tuple[list[E], ColumnMapping]:
        """The examples of a table or a text file, and the columns they came from."""
        table = cls.open_table(path, given, labelled=labelled, say=say)
        return cls.map_table(table, given, labelled=labelled, say=say)

    @classmethod
    def open_table(cls, path: Path, given: ColumnMapping, *, labelled: bool, say: Say) -> Table:
        """The rows of a table, or the lines of a text file where no labels are needed."""
        table = read_table(path, lambda names: cls.known_names(names, given), given, say)
        if table.is_plain and labelled:
            raise FormatError(
                f"{path}: a text a line, without labels; give a table (.csv, .tsv, .jsonl, …) that "
                "has them"
            )
        return table

    @classmethod
    def known_names(cls, names: Sequence[str], given: ColumnMapping) -> list[str]:
        """Those of some names that may be columns of a table of this kind."""
        ways = (way for role in cls.roles(names, given) for way in candidates(role, names))
        return [name for way in ways for columns in way.values() for name in columns]

    @classmethod
    def map_table(
        cls, table: Table, given: ColumnMapping, *, labelled: bool, say: Say,
        refused: list[str] | None = None,
    ) -> tuple[list[E], ColumnMapping]:  # fmt: skip
        """The examples of a table's rows, and the columns they came from.

        A bad row stops it, unless there is a list of what was `refused`.
        """
        roles = cls.roles(table.columns, given)
        if table.headerless and not given.columns:
            records = [list(row.values.values()) for row in table.rows]
            given = columns_by_content(table.path, records, roles)
            say(f"{table.path}: columns guessed by their content: {given.listed()}")
        columns = map_columns(table.path, cls.kind, table.columns, roles, given, labelled=labelled)
        table = map_rows(table, columns, say, id_told="id" in given.columns)
        if refused is not None:
            table = cls._good_rows(table, refused, labelled=labelled)
        return cls.from_table(table, labelled=labelled, say=say), table.rows[0].columns

    @classmethod
    def _good_rows(cls, table: Table, refused: list[str], *, labelled: bool) -> Table:
        good = []
        for row in table.rows:
            try:
                cls.from_table(replace(table, rows=[row]), labelled=labelled, say=quiet)
            except FormatError as error:
                refused.append(str(error))
            else:
                good.append(row)
        if not good:
            raise FormatError(refused[0])
        return replace(table, rows=good)

    @classmethod
    def read_file(cls, path: Path, source: DataSource, *, labelled: bool, say: Say) -> list[E]:
        """The examples of a user's file, in any format that the kind reads."""
        if source.repair:
            raise SettingsError(f"--repair: {path} is not a SQuAD file, which it is for")
        table = cls.open_table(path, source.columns, labelled=labelled, say=say)
        examples, columns = cls.map_table(
            table, source.columns, labelled=labelled, say=say, refused=source.refused
        )
        guessed = columns.without(*source.columns.columns)
        if guessed.columns and not table.headerless and not table.is_plain:
            say(
                f"{path}: columns guessed by their names: {guessed.listed()} "
                "(--column ROLE=NAME to change)"
            )
        return examples

    @classmethod
    def read_values(cls, source: DataSource, *, labelled: bool, say: Say) -> list[E]:
        """The examples that a caller gives instead of a file."""
        values = [
            cls.columns_of(one, f"text {n:,}") for n, one in enumerate(source.values or (), 1)
        ]
        if not values:
            raise SettingsError("no texts are given; there must be at least one")
        rows = [Row(f"text {number:,}", one) for number, one in enumerate(values, 1)]
        names = tuple(dict.fromkeys(name for one in values for name in one))
        table = Table("the texts that are given", names, rows)
        return cls.map_table(table, source.columns, labelled=labelled, say=say)[0]

    @classmethod
    def columns_of(cls, value: Value, where: str) -> dict[str, Any]:
        """An example that is given as a text, as several, or by its columns, as a table has it."""
        if isinstance(value, Mapping):
            return dict(value)
        several = len(cls.plain_columns) > 1
        parts = value.split(BETWEEN_TEXTS) if isinstance(value, str) and several else value
        texts = [parts] if isinstance(parts, str) else [part.strip() for part in parts]
        if len(texts) != len(cls.plain_columns):
            listed = (
                " and ".join(cls.plain_columns) or "columns by their names, in a file or a dict"
            )
            hint = f", with {BETWEEN_TEXTS} between them" if several else ""
            raise SettingsError(f"{where}: {len(texts)} given; {cls.kind} needs {listed}{hint}")
        return dict(zip(cls.plain_columns, texts, strict=True))

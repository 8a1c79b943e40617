"""How the examples of a kind of task are read: from users' tables and text files, or as given.

A kind says what the columns of a table may be (`roles`) and makes examples of rows (`from_table`);
all else is the same for every kind, and inherited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

from litebert.base.errors import FormatError, SettingsError
from litebert.reading.tables import quoted_list
from litebert.tasks.readers.column_mapping import ColumnMapping, Role, candidates, map_columns
from litebert.tasks.readers.headers import columns_by_content, repeats
from litebert.tasks.readers.rows import Row, Table, map_rows, read_table
from litebert.tasks.readers.text_file import Say, quiet
from litebert.tasks.source import DataSource


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
        if not given.columns and (found := _by_content(table, roles)).columns:
            given = found
            say(
                f"{table.path}: columns guessed by their content: {given.listed()} "
                "(--column ROLE=NAME to change)"
            )
        columns = map_columns(table.path, cls.kind, table.columns, roles, given, labelled=labelled)
        table = map_rows(table, columns, say, id_told="id" in given.columns)
        if refused is not None:
            table = cls._good_rows(table, refused, labelled=labelled)
        return cls.from_table(table, labelled=labelled, say=say), table.rows[0].columns

    @classmethod
    def _good_rows(cls, table: Table, refused: list[str], *, labelled: bool) -> Table:
        try:
            cls.from_table(table, labelled=labelled, say=quiet)
        except FormatError:
            pass
        else:
            return table  # a row may be understood by the others only
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
        names = cls.known_names(table.columns, source.columns)
        plain = [role for role, of in columns.columns.items() if of == (role,)]
        guessed = columns.without(*source.columns.columns, *plain).among(names)
        if guessed.columns and not table.headerless and not table.is_plain:
            say(
                f"{path}: columns guessed by their names: {guessed.listed()} "
                "(--column ROLE=NAME to change)"
            )
        return examples

    @classmethod
    def read_rows(
        cls, rows: Sequence[Mapping[str, object]], given: ColumnMapping, *, labelled: bool, say: Say
    ) -> list[E]:
        """The examples of rows that a caller gives instead of a file, by the names of columns."""
        names = tuple(dict.fromkeys(name for row in rows for name in row))
        numbered = [Row(f"row {number:,}", dict(row)) for number, row in enumerate(rows, 1)]
        table = Table("the rows that are given", names, numbered)
        return cls.map_table(table, given, labelled=labelled, say=say)[0]


def _by_content(table: Table, roles: Sequence[Role]) -> ColumnMapping:
    """What the values of columns say where their names do not; none where they do not either."""
    return _of_no_header(table, roles) if table.headerless else _of_unknown_names(table, roles)


def _of_no_header(table: Table, roles: Sequence[Role]) -> ColumnMapping:
    records = [list(row.values.values()) for row in table.rows]
    found = columns_by_content(records, roles)
    if found is None:
        first = next(role.names[0] for role in roles if role.needed == "always")
        raise FormatError(
            f"{table.path}: no header, and {len(table.columns)} columns "
            f"({quoted_list(records[0])}); say which is what by numbers from 0, as in "
            f"`--column {first}=0`"
        )
    return found


def _of_unknown_names(table: Table, roles: Sequence[Role]) -> ColumnMapping:
    """Columns that are known by name are left out; of the rest a label's values must repeat."""
    ways = {role: candidates(role, table.columns) for role in roles}
    named = {name for each in ways.values() for way in each for one in way.values() for name in one}
    left = [column for column in table.columns if column not in named]
    unnamed = [role for role in roles if not ways[role] and role.needed != "never"]
    values = [[row.values.get(column) for column in left] for row in table.rows]
    records = [[one for one in row if isinstance(one, str)] for row in values]
    found = columns_by_content(records, unnamed) if left and unnamed and records == values else None
    labels = [name for role in unnamed if role.needed == "labelled" for name in role.names]
    if found is None or not all(repeats(records, int(found[n])) for n in labels if found[n]):
        return ColumnMapping()
    return ColumnMapping(
        {name: tuple(left[int(one)] for one in places) for name, places in found.columns.items()}
    )

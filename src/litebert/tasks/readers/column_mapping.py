"""Which column of the user's table plays which role: as told, or guessed where it is obvious.

A name is made by name alone. Where two columns could be meant, nothing is guessed.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from litebert.base.errors import FormatError, SettingsError, did_you_mean
from litebert.reading.tables import quoted_list

Needed = Literal["always", "labelled", "never"]
# role -> column, as users write it: {"text": "body"}, or "text=body" as on the command line
GivenColumns = Mapping[str, str | Sequence[str]] | Sequence[str]


@dataclass(frozen=True)
class Role:
    """What a column is for: a text, a label. Roles of one object are told or guessed together.

    `usual_names` are names of columns that say so themselves, one for each of the roles. The items
    of a listed role are in one column of lists, or in a column each: `items` matches its name,
    with its mark (a, b or 1, 2) as the group.
    """

    names: tuple[str, ...]
    usual_names: tuple[tuple[str, ...], ...]
    needed: Needed = "always"
    items: re.Pattern[str] | None = None


def role(name: str, usual_names: str, needed: Needed = "always") -> Role:
    """A role of one column; `usual_names` have spaces between them."""
    return Role((name,), tuple((each,) for each in usual_names.split()), needed)


ID = role("id", "id index idx guid qid example_id", "never")


@dataclass(frozen=True)
class ColumnMapping:
    """Role -> its columns: one, or several of a listed role; a role that none plays is left out."""

    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def build(cls, given: GivenColumns | None) -> ColumnMapping:
        """From {"text": "body", "options": ["a", "b"]}, or ["text=body", "options=a,b"]."""
        given = given or ()
        if not isinstance(given, Mapping):
            wrong = [pair for pair in given if "=" not in pair]
            if wrong:
                raise SettingsError(
                    f"--column {wrong[0]}: expected ROLE=NAME or ROLE=NUMBER, as in text=body"
                )
            given = dict(pair.split("=", 1) for pair in given)
        return cls(
            {
                name: (columns,) if isinstance(columns, str) else tuple(columns)
                for name, columns in given.items()
            }
        )

    def __getitem__(self, name: str) -> str:
        """The (first) column of a role, or "" where there is none."""
        return self.columns[name][0] if name in self.columns else ""

    def are_numbers(self) -> bool:
        """Whether all columns are told by their numbers, from 0."""
        told = [
            part for columns in self.columns.values() for one in columns for part in one.split(",")
        ]
        return all(part.isascii() and part.isdigit() for part in told)

    def without(self, *names: str) -> ColumnMapping:
        return ColumnMapping({n: c for n, c in self.columns.items() if n not in names})

    def among(self, columns: Sequence[str]) -> ColumnMapping:
        """The roles that some columns play."""
        return ColumnMapping({n: c for n, c in self.columns.items() if set(c) <= set(columns)})

    def listed(self) -> str:
        """The same in one line."""
        return ", ".join(f"{role} = {column!r}" for role, column in self.shown().items())

    def shown(self) -> dict[str, str]:
        """Role -> columns, to be said aloud."""
        return {name: ", ".join(columns) for name, columns in self.columns.items()}


def map_columns(
    path: str, kind: str, columns: Sequence[str], roles: Sequence[Role], given: ColumnMapping,
    *, labelled: bool,
) -> ColumnMapping:  # fmt: skip
    """The columns of every role of a kind of task; `labelled` rows must have their labels."""
    names = [name for role in roles for name in role.names]
    for name, column in given.shown().items():
        if name not in names:
            raise SettingsError(
                f"columns: {name} = {column!r} has no meaning for {kind!r}; "
                f"{did_you_mean(name, names)}"
            )
    found: dict[str, tuple[str, ...]] = {}
    for role in roles:
        needed = role.needed == "always" or (role.needed == "labelled" and labelled)
        found |= _told(path, role, columns, given) or _guessed(path, role, columns, needed)
    return ColumnMapping(found)


def candidates(role: Role, columns: Sequence[str]) -> list[dict[str, tuple[str, ...]]]:
    """Every way in which columns could play a role, by their names."""
    name, *others = role.names
    if others:
        by_name = {_plain(column): column for column in columns}
        ways = [[by_name.get(each, "") for each in names] for names in role.usual_names]
        return [dict(zip(role.names, zip(way), strict=True)) for way in ways if all(way)]
    obvious = {each for (each,) in role.usual_names}
    found: list[tuple[str, ...]] = [(column,) for column in columns if _plain(column) in obvious]
    if marked := {column: mark for column in columns if (mark := _mark(role, column))}:
        found.append(tuple(sorted(marked, key=lambda column: marked[column])))
    return [{name: way} for way in found]


def _told(
    path: str, role: Role, columns: Sequence[str], given: ColumnMapping
) -> dict[str, tuple[str, ...]]:
    told = {name: given.columns[name] for name in role.names if name in given.columns}
    if told and len(told) < len(role.names):
        raise SettingsError(f"columns: {' and '.join(role.names)} go together; name both")
    if role.items is not None:  # a command line gives one word: a,b,c
        told = {n: c if c[0] in columns else tuple(",".join(c).split(",")) for n, c in told.items()}
    return {
        name: tuple(_named(path, one, columns) for one in chosen) for name, chosen in told.items()
    }


def _named(path: str, column: str, columns: Sequence[str]) -> str:
    """A column that is told by its name, or by its number from 0."""
    if column in columns:
        return column
    if column.isascii() and column.isdigit() and int(column) < len(columns):
        return columns[int(column)]
    raise FormatError(f"{path}: no column {column!r}; {did_you_mean(column, columns)}")


def _guessed(
    path: str, role: Role, columns: Sequence[str], needed: bool
) -> dict[str, tuple[str, ...]]:
    """The columns of a role; none if they cannot be guessed and are not needed."""
    ways = candidates(role, columns)
    fitting = [column for way in ways for chosen in way.values() for column in chosen]
    if len(ways) == 1 and _is_complete([_mark(role, column) for column in fitting]):
        return ways[0]
    if not needed:
        return {}
    name, *others = role.names
    if fitting:
        problem = f"several columns could be the {name}: {quoted_list(fitting)}"
    else:
        problem = f"no column is obviously the {name}; there are {quoted_list(columns)}"
    also = "".join(f" {other}=NAME" for other in others)
    raise FormatError(f"{path}: {problem}; say which with `--column {name}=NAME{also}`")


def _mark(role: Role, column: str) -> str:
    """What marks the column of one item: the b of option_b; "" where it is none."""
    found = role.items and role.items.fullmatch(_plain(column))
    return found[1] if found else ""


def _is_complete(marks: list[str]) -> bool:
    """Whether the marks of items follow each other: a b c, 0 1 2, or 1 2 3; or there are none."""
    rows = (string.ascii_lowercase, string.digits, string.digits[1:])
    in_a_row = len(marks) > 1 and any(marks == list(row[: len(marks)]) for row in rows)
    return in_a_row or not any(marks)


def _plain(column: str) -> str:
    return column.strip().lower().replace(" ", "_").replace("-", "_")

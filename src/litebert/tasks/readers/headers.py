"""Whether the first line of a CSV or TSV file names its columns, and what they are if it does not.

The rule, in this order:
1. `--column` names a column by its name: there is a header.
2. The first line has two names that the task knows (text, label, review, …), or one that does not
   occur again in its column and no number beside it: a header.
3. `--column` gives numbers, or there is one column, or one line: no header.
4. The first line has a number, a field of more than 40 characters, or one that occurs again in its
   column (labels do): no header.
5. Otherwise a header.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from litebert.tasks.readers.column_mapping import ColumnMapping, Role

LONGEST_NAME = 40
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)

Known = Callable[[Sequence[str]], list[str]]  # those of some names that the task knows
Records = Sequence[Sequence[str]]


def has_header(records: Records, known: Known, given: ColumnMapping) -> bool:
    """Whether the first of these records names the columns."""
    if given.columns and not given.are_numbers():
        return True
    first, others = records[0], records[1:]
    found, numbers = known(first), any(map(_NUMBER.fullmatch, first))
    if len(found) > 1 or (found and not numbers and not _recurs(found[0], first, others)):
        return True
    if given.columns or len(first) == 1 or not others:
        return False
    if numbers or any(len(field) > LONGEST_NAME for field in first):
        return False
    named = [field for field in first if field.strip()]
    distinct = len(set(named)) == len(named)
    return distinct and not any(_recurs(field, first, others) for field in named)


def _recurs(field: str, first: Sequence[str], others: Records) -> bool:
    place = first.index(field)
    return any(place < len(other) and other[place] == field for other in others)


def columns_by_content(records: Records, roles: Sequence[Role]) -> ColumnMapping | None:
    """Columns by number where names say nothing: the label's values repeat, the rest are the texts.

    Only where that is all there is: one text or a pair, perhaps a label, and perhaps a column of
    whole numbers that are all different, which is no text: it is the id.
    """
    width = len(records[0])
    texts = [role for role in roles if role.needed == "always"]
    labels = [name for role in roles if role.needed == "labelled" for name in role.names]
    names = texts[0].names if len(texts) == 1 and texts[0].items is None else ()
    order = list(range(width))
    told: dict[str, tuple[str, ...]] = {}
    ids = [one for one in order if _counts(records, one)]
    has_label = any(_variety(records, one)[0] < len(records) for one in order)
    if width - len(names) == 2 and ids and has_label:
        order.remove(ids[0])
        told["id"] = (str(ids[0]),)
    if len(labels) > 1 or not 0 <= len(order) - len(names) <= len(labels) or (texts and not names):
        return None
    if len(order) > len(names):
        label = min(order, key=lambda place: _variety(records, place))
        order.remove(label)
        told[labels[0]] = (str(label),)
    return ColumnMapping({**{n: (str(p),) for n, p in zip(names, order, strict=True)}, **told})


def repeats(records: Records, place: int) -> bool:
    """Whether the values of a column stand twice or more on average, as labels do."""
    return 2 * _variety(records, place)[0] <= len(records)


def _counts(records: Records, place: int) -> bool:
    """Whether a column only numbers the rows: whole numbers, no two alike."""
    values = {record[place].strip() for record in records}
    return len(values) == len(records) > 1 and all(
        one.isascii() and one.isdigit() for one in values
    )


def _variety(records: Records, place: int) -> tuple[int, int]:
    """How many values a column has, and how long they are together."""
    values = [record[place] for record in records]
    return len(set(values)), sum(map(len, values))

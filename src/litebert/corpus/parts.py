"""Which of N machines prepares what: parts need no coordination, because parcels have names.

A parcel becomes one shard: a unit of a file, or a run of small files as a whole, so that a folder
of a hundred thousand short texts does not become a hundred thousand shards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from litebert.base.errors import SettingsError
from litebert.reading.sources import ReadSettings, Source, Unit, cut_units

Part = tuple[int, int]


@dataclass(frozen=True)
class Parcel:
    """Units that become a shard, and how much of the input lies before its end, for progress."""

    source: int
    number: int
    units: tuple[Unit, ...]
    read: int

    @property
    def shard(self) -> str:
        """The name of its shard; names sort in the order of the input."""
        return f"{self.source:06d}-{self.number:06d}.safetensors"


def parse_part(text: str) -> Part:
    """`2/3` as (2, 3)."""
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    part = (int(match[1]), int(match[2])) if match else (0, 0)
    check_part(part, text)
    return part


def check_part(part: Part, text: str) -> None:
    """Refuse a part that is not one of its whole."""
    if not 1 <= part[0] <= part[1]:
        raise SettingsError(f"part {text}: expected I/N with 1 <= I <= N, as in 2/3")


def parcels(
    sources: Sequence[Source], reading: ReadSettings, unit_bytes: int, part: Part
) -> Iterator[Parcel]:
    """The parcels of a part. All parts together give those of the whole, named alike.

    Where there are files enough, parts take whole files, so that none reads what is not its own.
    """
    runs = _runs(sources, unit_bytes)
    whole = len(runs) >= 2 * part[1]
    before = 0
    for place, run in enumerate(runs):
        if not whole or _is_ours(place, part):
            for parcel in _cut(run, reading, unit_bytes, before):
                if whole or _is_ours(place + parcel.number, part):
                    yield parcel
        before += sum(source.size or 0 for source in run)


def _runs(sources: Sequence[Source], unit_bytes: int) -> list[list[Source]]:
    """Neighbouring small files together, up to the size of a unit; any other source alone."""
    runs: list[list[Source]] = []
    room = 0
    for source in sources:
        size = unit_bytes if source.size is None else source.size
        if not runs or size > room:
            runs.append([])
            room = unit_bytes
        runs[-1].append(source)
        room -= size
    return runs


def _cut(
    run: Sequence[Source], reading: ReadSettings, unit_bytes: int, before: int
) -> Iterator[Parcel]:
    """A parcel a unit; units of small files together, but no more text than a unit has."""
    first, number = run[0].number, 0
    units: list[Unit] = []
    size = 0
    for source in run:
        for unit in cut_units(source, reading, unit_bytes):
            units.append(unit)
            size += unit.end_byte - unit.first_byte if not unit.row_groups else unit_bytes
            if len(run) == 1 or size >= unit_bytes:
                yield Parcel(first, number, tuple(units), before + unit.consumed)
                units, size, number = [], 0, number + 1
        before += source.size or 0
    if units:
        yield Parcel(first, number, tuple(units), before)


def _is_ours(number: int, part: Part) -> bool:
    return number % part[1] == part[0] - 1

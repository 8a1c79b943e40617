"""Which of N machines prepares what: parts need no coordination, because units have numbers."""

from __future__ import annotations

import re

from litebert.base.errors import SettingsError

Part = tuple[int, int]


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


def is_ours(number: int, part: Part) -> bool:
    """Whether the part takes the unit, or the source, of this number."""
    return number % part[1] == part[0] - 1

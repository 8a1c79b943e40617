"""Budgets: how much training, said in one dial: `30m`, `200Mtok` or `125000steps`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from litebert.base.errors import SettingsError

Kind = Literal["seconds", "tokens", "steps"]

_PATTERN = re.compile(r"\s*(\d[\d_]*(?:\.\d+)?)\s*([kMGT]?)\s*(tok|tokens|steps?|s|m|h|d)\s*")
_SCALES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Budget:
    """An amount of training, in one of three units."""

    kind: Kind
    amount: float


def parse_budget(text: str) -> Budget:
    """`30m` (also s, h, d), `200Mtok` (also k, G, T), `125000steps`."""
    match = _PATTERN.fullmatch(text)
    amount = float(match[1].replace("_", "")) if match else 0.0
    if match is None or not 0 < amount < float("inf") or (match[3] in _SECONDS and match[2]):
        raise SettingsError(
            f"budget {text!r}: write a time (30m, 2h), tokens (200Mtok) or steps (125000steps)"
        )
    unit = match[3]
    if unit in _SECONDS:
        return Budget("seconds", amount * _SECONDS[unit])
    return Budget("tokens" if unit.startswith("tok") else "steps", amount * _SCALES[match[2]])

"""A text of ten words, how it is prepared, and what a store's folder holds."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

WORDS = ["river", "stone", "lamp", "green", "walks", "slowly", "under", "bridge", "old", "the"]
SMALL: dict[str, Any] = {"chunk_bytes": 4000, "held_out": 0.1}


def documents(count: int, seed: int = 0) -> list[str]:
    chance = random.Random(seed)
    return [
        " ".join(
            " ".join(chance.choices(WORDS, k=chance.randint(1, 12))).capitalize() + "."
            for _ in range(chance.randint(1, 9))
        )
        for _ in range(count)
    ]


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }

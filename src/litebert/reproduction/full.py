"""The papers' own settings as the commands one would run: what a full reproduction is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from litebert.reproduction.table import PaperTable


def full_commands(tables: Sequence[PaperTable], corpus: str | Path | None, seeds: int) -> str:
    """One `litebert pretrain` a row and seed; nothing is shrunk."""
    lines = []
    for table in tables:
        if table.compare == "counts":
            continue
        lines.append(f"# {table.title}: {table.source}")
        for name, row in table.rows.items():
            changes = "".join(f" --set '{key}={_toml(value)}'" for key, value in row.set.items())
            for seed in range(1, seeds + 1):
                start = f" --from {table.name}-{row.start_from}-{seed}" if row.start_from else ""
                lines.append(
                    f"litebert pretrain {row.preset or table.preset} --corpus "
                    f"{corpus or 'CORPUS'} --out {table.name}-{name}-{seed}{start}{changes} "
                    f"--set seed={seed}"
                )
    return "\n".join(lines)


def _toml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)

"""Rows as the commands one would run by hand: at the paper's own scale, or as the grid ran them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from litebert.base.settings import flatten
from litebert.configs.load import load_preset
from litebert.configs.schema import Preset
from litebert.reproduction.table import PaperTable

BY_CORPUS = ("vocab_size", "pad_token_id")  # a run takes these from its corpus


def full_commands(tables: Sequence[PaperTable], corpus: str | Path | None, seeds: int) -> str:
    """One `litebert pretrain` a row and seed; nothing is shrunk."""
    lines = []
    for table in tables:
        if table.compare == "counts":
            continue
        lines.append(f"# {table.title}: {table.source}")
        for name, row in table.rows.items():
            for seed in range(1, seeds + 1):
                start = f"{table.name}-{row.start_from}-{seed}" if row.start_from else None
                lines.append(
                    _command(
                        row.preset or table.preset, corpus or "CORPUS",
                        f"{table.name}-{name}-{seed}", start, {**row.set, "seed": seed},
                    )
                )  # fmt: skip
    return "\n".join(lines)


def row_command(
    preset: str, wanted: Preset, corpus: str | Path, out: str | Path, start: str | Path | None
) -> str:
    """The command of one run: what differs from a shipped preset."""
    there = flatten(load_preset(preset).model_dump(mode="json"))
    changes = {
        key: value
        for key, value in flatten(wanted.model_dump(mode="json")).items()
        if there.get(key) != value and value is not None and key not in ("title", "budget")
        if key.rpartition(".")[2] not in BY_CORPUS
    }
    return f"{_command(preset, corpus, out, start, changes)} --budget {wanted.budget}"


def _command(
    preset: str, corpus: str | Path, out: str | Path, start: str | Path | None,
    changes: Mapping[str, Any],
) -> str:  # fmt: skip
    begin = "" if start is None else f" --from {start}"
    settings = "".join(f" --set '{key}={_toml(value)}'" for key, value in changes.items())
    return f"litebert pretrain {preset} --corpus {corpus} --out {out}{begin}{settings}"


def _toml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)

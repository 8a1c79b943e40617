"""Several fine-tuned runs side by side, and GLUE's average over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.base.errors import FileError, FormatError
from litebert.base.files import read_json
from litebert.tasks.finetune import REPORT
from litebert.tasks.scores.intervals import Summary, over_seeds
from litebert.tasks.scores.metrics import GLUE_EIGHT, MISMATCHED, Scores, glue_average

_HALF = {"dev-mismatched": MISMATCHED}  # MNLI has two dev sets


@dataclass(frozen=True)
class Row:
    """One run: each score over its seeds, by dev set and metric."""

    run: Path
    task: str
    scores: dict[str, dict[str, Summary]]
    collapses: int


def read_row(run: Path) -> Row:
    """The row of a finished run."""
    path = run / REPORT
    if not path.is_file():
        raise FileError(f"{run}: no finished run of `litebert finetune` ({REPORT} is missing)")
    report = read_json(path)
    try:
        seeds: list[dict[str, Any]] = [seed["scores"] for seed in report["seeds"]]
        scores = {
            part: {
                name: over_seeds([seed[part][name] for seed in seeds]) for name in seeds[0][part]
            }
            for part in seeds[0]
        }
        return Row(run, report["task"], scores, report["collapses"])
    except (KeyError, TypeError, IndexError) as error:
        raise FormatError(f"{path}: not a report of `litebert finetune`") from error


def glue_of(rows: Sequence[Row]) -> tuple[float | None, list[str]]:
    """GLUE's average of eight tasks from the seeds' medians, or None; and what it lacks.

    Of several runs of one task the last one counts. Without MNLI or QQP there is no average that
    could be compared with a published one.
    """
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        for part, scores in row.scores.items():
            name = _HALF.get(part, row.task)
            found[name] = {metric: summary.median for metric, summary in scores.items()}
    missing = [task for task in (*GLUE_EIGHT, MISMATCHED) if task not in found]
    scored: Scores = found
    return (None, missing) if missing else (glue_average(scored), [])

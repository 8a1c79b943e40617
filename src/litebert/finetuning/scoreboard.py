"""Several fine-tuned runs side by side, and GLUE's average over them: `litebert.scores(runs)`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from litebert.base.errors import FileError, FormatError, SettingsError
from litebert.base.intervals import Summary, over_seeds
from litebert.finetuning.finetune import REPORT
from litebert.finetuning.reports import FinetuneReport

# The leaderboard averages nine tasks; the diagnostic set AX is in no average. BERT and its
# successors leave WNLI out on the development set, where its sentences are those of the training
# set with the answers turned round.
GLUE_EIGHT = ("cola", "sst-2", "mrpc", "sts-b", "qqp", "mnli", "qnli", "rte")
GLUE_NINE = (*GLUE_EIGHT, "wnli")
MISMATCHED = "mnli-mismatched"
_HALF = {"dev-mismatched": MISMATCHED}  # MNLI has two dev sets

TaskScores = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class ScoreboardRow:
    """One run: each score over its seeds, by dev set and metric."""

    run: Path
    task: str
    scores: dict[str, dict[str, Summary]]
    collapses: int


@dataclass(frozen=True)
class Scoreboard:
    """Runs side by side; GLUE's average is None where `missing` tasks are not among them."""

    rows: tuple[ScoreboardRow, ...]
    glue_average: float | None
    missing: tuple[str, ...]


def scores(runs: Sequence[str | Path]) -> Scoreboard:
    """Put finished runs of fine-tuning side by side: scores over seeds, collapses, GLUE's average.

    GLUE's average is that of eight tasks (without WNLI, as papers have it on dev sets), of the
    medians over seeds. Of several runs of one task the last one counts. Without all eight there is
    none: it could not be compared with a published one.

    Example: litebert scores tuned-cola tuned-sst-2 tuned-rte

    Args:
        runs: Folders that `litebert.finetune` has finished.

    Returns:
        A row for each run, in the order given, and the average.
    """
    rows = tuple(_row(Path(run)) for run in runs)
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        for part, by_metric in row.scores.items():
            name = _HALF.get(part, row.task)
            found[name] = {metric: summary.median for metric, summary in by_metric.items()}
    missing = tuple(task for task in (*GLUE_EIGHT, MISMATCHED) if task not in found)
    return Scoreboard(rows, None if missing else glue_average(found), missing)


def _row(run: Path) -> ScoreboardRow:
    path = run / REPORT
    if not os.path.isfile(path):
        raise FileError(f"{run}: no finished run of `litebert finetune` ({REPORT} is missing)")
    report = FinetuneReport.load(path)
    try:
        seeds = [seed.scores for seed in report.seeds]
        summaries = {
            part: {
                name: over_seeds([seed[part][name] for seed in seeds]) for name in seeds[0][part]
            }
            for part in seeds[0]
        }
    except (KeyError, TypeError, IndexError) as error:
        raise FormatError(f"{path}: not a report of `litebert finetune`") from error
    return ScoreboardRow(run, report.task, summaries, report.collapses)


def average_of_tasks(scores: TaskScores) -> float:
    """The mean over tasks of the mean of each task's metrics, each task weighing the same."""
    if not scores or not all(scores.values()):
        raise SettingsError("no average: there are no tasks, or a task without a score")
    return float(np.mean([np.mean(list(values.values())) for values in scores.values()]))


def glue_average(scores: TaskScores, tasks: Sequence[str] = GLUE_EIGHT) -> float:
    """GLUE's average over `tasks`: eight as in papers' development results, or GLUE_NINE.

    A task with two metrics counts with their mean, and MNLI with the mean of its matched (`mnli`)
    and its mismatched examples (`mnli-mismatched`). Tasks that were scored and are not in `tasks`
    do not count; one that is and was not scored is an error.
    """
    wanted = [*tasks, MISMATCHED] if "mnli" in tasks else list(tasks)
    missing = [name for name in wanted if name not in scores]
    if missing:
        raise SettingsError(
            f"no GLUE average without {', '.join(missing)}; score what is missing, or name the "
            "tasks to average"
        )
    found = {task: scores[task] for task in tasks}
    if "mnli" in tasks:
        halves = ("mnli", MISMATCHED)
        found["mnli"] = {half: average_of_tasks({half: scores[half]}) for half in halves}
    return average_of_tasks(found)

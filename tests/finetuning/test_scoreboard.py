"""Runs side by side, and averages that have been published."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from litebert.base.errors import FormatError, SettingsError
from litebert.base.files import json_text
from litebert.finetuning.finetune import REPORT, FinetuneReport
from litebert.finetuning.runs import RunResult
from litebert.finetuning.scoreboard import (
    GLUE_EIGHT,
    GLUE_NINE,
    average_of_tasks,
    glue_average,
    scores,
)
from litebert.tasks.metrics.classification import CLASSIFICATION_METRICS
from litebert.tasks.metrics.correlation import CORRELATION_METRICS
from litebert.tasks.published.glue_tasks import GLUE
from tests.test_cli import run

METRICS = {**CLASSIFICATION_METRICS, **CORRELATION_METRICS}


def report(folder: Path, task: str, *seeds: dict[str, dict[str, float]]) -> Path:
    folder.mkdir()
    results = tuple(
        RunResult(1, 1e-5, scores, {}, 1, 1, 1, 0.5, None, None, 1.0) for scores in seeds
    )
    content = FinetuneReport(task, "f1", results, 0, 0, None, 0, 1, 8, {"dev": 2}, 0, 0)
    (folder / REPORT).write_text(json_text(asdict(content)))
    return folder


GLUE_RUNS: dict[str, dict[str, dict[str, float]]] = {
    "cola": {"dev": {"matthews": 0.5}}, "sst-2": {"dev": {"accuracy": 0.9}},
    "mrpc": {"dev": {"f1": 0.9, "accuracy": 0.8}},
    "sts-b": {"dev": {"pearson": 0.7, "spearman": 0.8}},
    "qqp": {"dev": {"f1": 0.6, "accuracy": 0.8}},
    "mnli": {"dev": {"accuracy": 0.8}, "dev-mismatched": {"accuracy": 0.6}},
    "qnli": {"dev": {"accuracy": 0.7}}, "rte": {"dev": {"accuracy": 0.6}},
}  # fmt: skip


def test_glue_s_average_of_finished_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [report(tmp_path / task, task, found) for task, found in GLUE_RUNS.items()]
    board = scores(folders)
    average = board.glue_average
    assert average == pytest.approx((0.5 + 0.9 + 0.85 + 0.75 + 0.7 + 0.7 + 0.7 + 0.6) / 8)
    assert board.missing == ()
    some = scores([folder for folder in folders if folder.name not in ("mnli", "qqp")])
    assert (some.glue_average, some.missing) == (None, ("qqp", "mnli", "mnli-mismatched"))
    assert not run(monkeypatch, "scores", *folders)
    out = capsys.readouterr().out
    assert f"average of eight: {average:.4f}" in out
    assert "1 collapsed" in out


def test_seeds_are_summed_up(tmp_path: Path) -> None:
    seeds = [{"dev": {"accuracy": value}} for value in (0.6, 0.7, 0.9)]
    (row,) = scores([report(tmp_path / "run", "rte", *seeds)]).rows
    summary = row.scores["dev"]["accuracy"]
    assert summary.mean == pytest.approx(2.2 / 3)
    assert (summary.median, summary.count) == (0.7, 3)


def test_what_is_no_finished_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "scores", tmp_path) == 2
    assert "no finished run" in capsys.readouterr().err
    (tmp_path / REPORT).write_text("{}")
    with pytest.raises(FormatError, match="not a report"):
        scores([tmp_path])


# The leaderboard's row of ALBERT's ensemble, of which the paper's Table 9 prints a part.
ALBERT = {
    "cola": {"matthews": 69.1},
    "sst-2": {"accuracy": 97.1},
    "mrpc": {"accuracy": 91.2, "f1": 93.4},
    "sts-b": {"pearson": 92.5, "spearman": 92.0},
    "qqp": {"accuracy": 90.5, "f1": 74.2},
    "mnli": {"accuracy": 91.3},
    "mnli-mismatched": {"accuracy": 91.0},
    "qnli": {"accuracy": 99.2},
    "rte": {"accuracy": 89.2},
    "wnli": {"accuracy": 91.8},
    "ax": {"matthews": 50.2},
}


def test_the_average_of_glue_is_the_leaderboards() -> None:
    assert round(glue_average(ALBERT, GLUE_NINE), 1) == 89.4
    nine, eight = glue_average(ALBERT, GLUE_NINE), glue_average(ALBERT)
    assert eight * 8 + 91.8 == pytest.approx(nine * 9)
    assert glue_average(ALBERT, ["mnli"]) == pytest.approx(91.15)


def test_the_table_of_glue_and_its_average_fit_together() -> None:
    assert {name for task in GLUE.values() for name in task.metrics} <= METRICS.keys()
    assert GLUE.keys() - {"ax"} == set(GLUE_NINE) == {*GLUE_EIGHT, "wnli"}
    for name, task in GLUE.items():
        assert ALBERT[name].keys() == set(task.metrics)


@pytest.mark.parametrize("lost", ["mnli", "mnli-mismatched", "cola"])
def test_an_average_lacks_no_task(lost: str) -> None:
    found = {name: values for name, values in ALBERT.items() if name != lost}
    with pytest.raises(SettingsError, match=f"without {lost};"):
        glue_average(found)
    assert glue_average(found, ["rte"]) == pytest.approx(89.2)


def test_the_average_of_the_papers_table_2() -> None:
    large = {
        "squad 1.1": {"f1": 90.6, "exact": 83.9},
        "squad 2.0": {"f1": 82.3, "exact": 79.4},
        "mnli": {"accuracy": 83.5},
        "sst-2": {"accuracy": 91.7},
        "race": {"accuracy": 68.5},
    }
    assert round(average_of_tasks(large), 1) == 82.4
    for nothing in ({}, {"mnli": {}}):
        with pytest.raises(SettingsError, match="no average"):
            average_of_tasks(nothing)

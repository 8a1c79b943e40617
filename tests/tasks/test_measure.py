"""Intervals of every kind of task, runs side by side, and submissions that grow task by task."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litebert.base.errors import FormatError
from litebert.base.files import as_text
from litebert.tasks.base import Prediction
from litebert.tasks.files.glue_submission import write_submission
from litebert.tasks.files.race import read_race, write_answers
from litebert.tasks.finetune import REPORT
from litebert.tasks.measure import intervals
from litebert.tasks.registry import build_task
from litebert.tasks.scores.entities import entity_counts, entity_scores, f1_of_counts
from litebert.tasks.scores.intervals import bootstrap_mean, bootstrap_sums
from litebert.tasks.table import glue_of, read_row
from tests.tasks.small import TASKS
from tests.test_cli import run


def truth(kind: str, example: Any, wrong: bool) -> Prediction:
    """The right prediction for an example, or one that is not."""
    if kind == "regress":
        return {"value": -float(example.label) if wrong else float(example.label)}
    if kind == "tag":
        return {"tags": ["O"] * len(example.tags) if wrong else list(example.tags)}
    if kind == "qa":
        text = example.answers[0].text if example.answers else ""
        said = "nothing of the kind" if wrong else text
        return {"text": said, "null_odds": 0.0, "best": [{"text": said}]}
    if kind == "choice":
        return {"choice": (example.answer + wrong) % 3}
    return {"label": {"no": "yes", "yes": "no"}[example.label] if wrong else example.label}


@pytest.mark.parametrize("name", TASKS)
def test_an_interval_holds_the_score_it_is_of(name: str) -> None:
    settings, examples, _ = TASKS[name]
    task = build_task(settings)
    wrong = [number % 3 == 0 for number in range(len(examples))]
    guesses = [
        truth(settings.kind, example, no) for example, no in zip(examples, wrong, strict=True)
    ]
    scores, found = task.score(examples, guesses), intervals(task, examples, guesses)
    assert found.keys() >= {metric.removeprefix("best_") for metric in settings.metrics}
    for metric, interval in found.items():
        assert interval.value == pytest.approx(scores[metric]), metric
        assert interval.low < interval.value < interval.high, metric
    right = [truth(settings.kind, example, False) for example in examples]
    for metric, interval in intervals(task, examples, right).items():
        assert interval.value == pytest.approx(1), metric
        assert interval.high == pytest.approx(1), metric


def test_sums_of_one_column_are_means() -> None:
    scores = np.random.default_rng(1).random(50)
    parts = np.stack([scores, np.ones(50)], 1)
    by_sums = bootstrap_sums(parts, lambda sums: sums[..., 0] / sums[..., 1])
    mean = bootstrap_mean(scores)
    assert (by_sums.value, by_sums.low, by_sums.high) == pytest.approx(
        (mean.value, mean.low, mean.high)
    )


def test_counts_of_entities_add_up_to_their_f1() -> None:
    real = [["B-x", "I-x", "O"], ["O", "B-y"], ["O"]]
    guess = [["B-x", "I-x", "B-y"], ["B-x", "B-y"], ["O"]]
    counts = entity_counts(real, guess)
    assert counts.tolist() == [[1, 2, 1], [1, 2, 1], [0, 0, 0]]
    assert f1_of_counts(counts.sum(0)) == pytest.approx(entity_scores(real, guess).overall.f1)
    assert f1_of_counts(np.zeros(3)) == 0


# ---------------------------------------------------------------------------------- side by side


def report(folder: Path, task: str, *seeds: dict[str, dict[str, float]]) -> Path:
    folder.mkdir()
    content = {"task": task, "collapses": 1, "seeds": [{"scores": scores} for scores in seeds]}
    (folder / REPORT).write_text(as_text(content))
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
    folders = [report(tmp_path / task, task, scores) for task, scores in GLUE_RUNS.items()]
    average, missing = glue_of([read_row(folder) for folder in folders])
    assert average == pytest.approx((0.5 + 0.9 + 0.85 + 0.75 + 0.7 + 0.7 + 0.7 + 0.6) / 8)
    assert missing == []
    some = [read_row(folder) for folder in folders if folder.name not in ("mnli", "qqp")]
    assert glue_of(some) == (None, ["qqp", "mnli", "mnli-mismatched"])
    assert not run(monkeypatch, "scores", *folders)
    out = capsys.readouterr().out
    assert f"average of eight: {average:.4f}" in out
    assert "1 collapsed" in out


def test_seeds_are_summed_up(tmp_path: Path) -> None:
    seeds = [{"dev": {"accuracy": value}} for value in (0.6, 0.7, 0.9)]
    row = read_row(report(tmp_path / "run", "rte", *seeds))
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
        read_row(tmp_path)


# ----------------------------------------------------------------------------------- submissions


def test_a_submission_grows_task_by_task(tmp_path: Path) -> None:
    path = tmp_path / "glue.zip"
    assert "RTE.tsv" not in write_submission(path, {"RTE.tsv": "old"})
    missing = write_submission(path, {"RTE.tsv": "new", "CoLA.tsv": "1"})
    assert "MRPC.tsv" in missing
    assert "CoLA.tsv" not in write_submission(path, {"MRPC.tsv": "2"})
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name).decode() for name in archive.namelist()}
    assert found == {"CoLA.tsv": "1", "MRPC.tsv": "2", "RTE.tsv": "new"}


def test_no_other_file_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("three years of work")
    other = tmp_path / "photos.zip"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("holiday.jpg", "...")
    for file in (path, other):
        before = file.read_bytes()
        with pytest.raises(FormatError, match=f"{file.name}: exists and is no submission"):
            write_submission(file, {"RTE.tsv": "x"})
        assert file.read_bytes() == before


def test_race_s_answers_by_article(tmp_path: Path) -> None:
    articles = [
        {
            "id": f"high{number}.txt", "article": "It rained.", "questions": ["Why?", "When?"],
            "options": [["a", "b", "c", "d"]] * 2, "answers": ["B", "D"],
        }
        for number in (3, 1)
    ]  # fmt: skip
    source = tmp_path / "test_high.jsonl"
    source.write_text("".join(json.dumps(article) + "\n" for article in articles))
    examples = read_race(source, "test")
    write_answers(tmp_path / "out.jsonl", {one.id: one.answer or 0 for one in examples})
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines == [{"id": a["id"], "answers": a["answers"]} for a in articles]

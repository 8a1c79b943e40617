"""Intervals of every kind of task, and submissions that grow task by task."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litebert.base.errors import FormatError
from litebert.base.intervals import bootstrap_mean, bootstrap_sums
from litebert.tasks.classification import LabelPrediction
from litebert.tasks.metrics.entities import entity_counts, entity_scores, f1_of_counts
from litebert.tasks.multiple_choice import ChoicePrediction
from litebert.tasks.published.glue_submission import write_submission
from litebert.tasks.published.race import read_race, write_answers
from litebert.tasks.question_answering import AnswerCandidate, AnswerPrediction
from litebert.tasks.registry import KINDS, build_task
from litebert.tasks.regression import ValuePrediction
from litebert.tasks.tagging import TagsPrediction
from litebert.tasks.task import Prediction
from tests.tasks.small import TASKS


def test_the_registry_names_kinds_as_they_name_themselves() -> None:
    assert {kind.kind: kind for kind in KINDS.values()} == KINDS


def truth(kind: str, example: Any, wrong: bool) -> Prediction:
    """The correct prediction for an example, or one that is not."""
    if kind == "regress":
        return ValuePrediction(example.id, -float(example.label) if wrong else float(example.label))
    if kind == "tag":
        return TagsPrediction(example.id, ("O",) * 5 if wrong else example.tags, ())
    if kind == "qa":
        text = example.answers[0].text if example.answers else ""
        said = "nothing of the kind" if wrong else text
        best = AnswerCandidate(said, 0, 1.0, 1.0)
        return AnswerPrediction(example.id, said, 0, 0.0, (best,))
    if kind == "choice":
        return ChoicePrediction(example.id, (example.answer + wrong) % 3, ())
    said = {"no": "yes", "yes": "no"}[example.label] if wrong else example.label
    return LabelPrediction(example.id, said, {})


@pytest.mark.parametrize("name", TASKS)
def test_an_interval_holds_the_score_it_is_of(name: str) -> None:
    settings, examples, _ = TASKS[name]
    task = build_task(settings)
    wrong = [number % 3 == 0 for number in range(len(examples))]
    predictions = [
        truth(settings.kind, example, no) for example, no in zip(examples, wrong, strict=True)
    ]
    scores, found = task.score(examples, predictions), task.intervals(examples, predictions)
    assert found.keys() >= {metric.removeprefix("best_") for metric in settings.metrics}
    for metric, interval in found.items():
        assert interval.value == pytest.approx(scores[metric]), metric
        assert interval.low < interval.value < interval.high, metric
    correct = [truth(settings.kind, example, False) for example in examples]
    for metric, interval in task.intervals(examples, correct).items():
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
    predicted = [["B-x", "I-x", "B-y"], ["B-x", "B-y"], ["O"]]
    counts = entity_counts(real, predicted)
    assert counts.tolist() == [[1, 2, 1], [1, 2, 1], [0, 0, 0]]
    assert f1_of_counts(counts.sum(0)) == pytest.approx(entity_scores(real, predicted).overall.f1)
    assert f1_of_counts(np.zeros(3)) == 0


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
    predictions = [ChoicePrediction(one.id, one.answer or 0, ()) for one in examples]
    write_answers(tmp_path / "out.jsonl", predictions)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines == [{"id": a["id"], "answers": a["answers"]} for a in articles]

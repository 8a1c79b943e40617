"""SQuAD's scores: normalising by hand, the scripts' rules re-stated, thresholds by brute force."""

from __future__ import annotations

import json
import string
from collections import Counter
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from litebert.base.errors import SettingsError
from litebert.tasks.metrics.squad import (
    Version,
    best_threshold,
    normalize_answer,
    score_questions,
    silence,
    squad_v1,
    squad_v2,
    with_threshold,
)
from litebert.tasks.questions import Answer, QuestionExample, gold_answers

VERSIONS: list[Version] = ["1.1", "2.0"]
words = st.sampled_from(
    ["the", "A", "an", "Cat", "cat.", "dog", "x-ray", ".", "  ", "été", "theme"]
)
texts = st.lists(words, max_size=5).map(" ".join)
questions = st.lists(st.tuples(st.lists(texts, max_size=3), texts), min_size=1, max_size=8)


def exact_match(gold: str, prediction: str) -> float:
    return score_questions({"q": [gold]}, {"q": prediction}, "1.1").exact[0]


def answer_f1(gold: str, prediction: str, version: Version = "2.0") -> float:
    return score_questions({"q": [gold]}, {"q": prediction}, version).f1[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("  \n\t ", ""),
        ("The", ""),
        ("a an the", ""),
        ("...!?", ""),
        ("The  Cat\u00a0sat.", "cat sat"),
        ("theatre Athens another", "theatre athens another"),
        ("x-ray", "xray"),
        ("a-team", "ateam"),  # punctuation goes before articles are looked for
        ("U.S.A.", "usa"),
        ("$1,000.50", "100050"),
        ("«Été» — the “end”", "«été» — “end”"),  # only ASCII punctuation goes
        ("İstanbul", "i\u0307stanbul"),
        ("à la carte", "à la carte"),
        ("東京 the 大阪", "東京 大阪"),
    ],
)
def test_normalising(text: str, expected: str) -> None:
    assert normalize_answer(text) == expected
    assert exact_match(text, expected) == 1.0


def test_all_ascii_punctuation_goes() -> None:
    assert normalize_answer(f"x{string.punctuation}y") == "xy"


@pytest.mark.parametrize(
    ("gold", "prediction", "expected"),
    [
        ("the cat sat", "Cat sat!", 1.0),
        ("cat sat", "cat", 2 / 3),
        ("cat", "the dog", 0.0),
        ("very very good", "very good good", 2 / 3),
        ("good", "very very good", 0.5),
        ("cat", "", 0.0),
        ("", "cat", 0.0),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_f1_of_words(gold: str, prediction: str, expected: float, version: Version) -> None:
    assert answer_f1(gold, prediction, version) == pytest.approx(expected)


@pytest.mark.parametrize(("gold", "prediction"), [("", ""), ("the", ""), (".", "a"), ("", "!")])
def test_two_empty_texts_agree_in_2_0_alone(gold: str, prediction: str) -> None:
    assert exact_match(gold, prediction) == 1.0
    assert (answer_f1(gold, prediction, "2.0"), answer_f1(gold, prediction, "1.1")) == (1.0, 0.0)


def slow_f1(gold: str, prediction: str, version: Version) -> float:
    """Precision, recall and their harmonic mean, as the scripts write it."""
    left, right = normalize_answer(gold).split(), normalize_answer(prediction).split()
    if version == "2.0" and (len(left) == 0 or len(right) == 0):
        return float(left == right)
    same = sum((Counter(left) & Counter(right)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(right), same / len(left)
    return 2 * precision * recall / (precision + recall)


@given(questions)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_the_best_gold_counts(rows: list[tuple[list[str], str]]) -> None:
    golds = {f"q{number}": row[0] for number, row in enumerate(rows)}
    predictions = {f"q{number}": row[1] for number, row in enumerate(rows)}
    scores = score_questions(golds, predictions)
    for number, (answers, prediction) in enumerate(rows):
        kept = [answer for answer in answers if normalize_answer(answer)] or [""]
        assert scores.ids[number] == f"q{number}"
        assert scores.exact[number] == max(exact_match(gold, prediction) for gold in kept)
        assert scores.f1[number] == pytest.approx(max(slow_f1(g, prediction, "2.0") for g in kept))
        assert scores.answerable[number] == bool(answers)


@given(st.lists(st.tuples(st.lists(texts, min_size=1, max_size=3), texts), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_version_1_1(rows: list[tuple[list[str], str]]) -> None:
    golds = {str(number): row[0] for number, row in enumerate(rows)}
    predictions = {str(number): row[1] for number, row in enumerate(rows)} | {"another": "x"}
    exact = [max(exact_match(gold, prediction) for gold in answers) for answers, prediction in rows]
    f1 = [max(slow_f1(gold, prediction, "1.1") for gold in answers) for answers, prediction in rows]
    expected = {"exact": 100 * np.mean(exact), "f1": 100 * np.mean(f1), "total": len(rows)}
    assert squad_v1(golds, predictions) == pytest.approx(expected)


GOLDS = {"a": ["Paris", "the city of Paris"], "b": ["1066"], "c": [], "d": [], "e": ["."]}
PREDICTIONS = {"a": "city Paris", "b": "1066.", "c": "", "d": "London", "e": ""}


def test_version_2_0_by_hand() -> None:
    found = squad_v2(GOLDS, PREDICTIONS)
    assert found == pytest.approx(
        {
            "exact": 60.0, "f1": 100 * (0.8 + 1 + 1 + 0 + 1) / 5, "total": 5,
            "HasAns_exact": 200 / 3, "HasAns_f1": 280 / 3, "HasAns_total": 3,
            "NoAns_exact": 50.0, "NoAns_f1": 50.0, "NoAns_total": 2,
        }
    )  # fmt: skip


def test_a_side_without_questions_is_not_reported() -> None:
    assert squad_v2({"a": ["x"]}, {"a": "x"}).keys() == {
        "exact", "f1", "total", "HasAns_exact", "HasAns_f1", "HasAns_total"
    }  # fmt: skip
    assert squad_v2({"a": []}, {"a": ""})["NoAns_f1"] == 100.0


def test_a_threshold_is_what_is_just_still_answered() -> None:
    odds = {"a": 0.5, "b": -1.0, "c": 3.0, "d": 0.6, "e": 2.0}
    found = squad_v2(GOLDS, PREDICTIONS, odds, 0.5)
    assert (found["NoAns_exact"], found["HasAns_f1"]) == pytest.approx((100.0, 180 / 3))
    assert silence(PREDICTIONS, odds, 0.5) == PREDICTIONS | {"d": "", "c": "", "e": ""}
    assert (found["best_f1"], found["best_f1_thresh"]) == pytest.approx((100 * 3.8 / 5, 0.5))
    lower = squad_v2(GOLDS, PREDICTIONS, odds, 0.4)
    assert lower["HasAns_f1"] == pytest.approx(100 / 3)
    assert lower["best_f1"] == found["best_f1"]  # found on the predictions as they were


def official_best(scores: list[float], answerable: list[bool], odds: list[float]) -> list[float]:
    """The official walk, where no two odds are equal: its best total and threshold."""
    total = best = float(answerable.count(False))
    threshold = 0.0
    for number in sorted(range(len(odds)), key=odds.__getitem__):
        total += scores[number] if answerable[number] else scores[number] - 1
        if total > best:
            best, threshold = total, odds[number]
    return [best / len(scores), threshold]


# Quarters, so that sums are exact and ties of totals are true ties.
quarters = st.integers(0, 4).map(lambda value: value / 4)
rows_of_odds = st.lists(
    st.tuples(quarters, st.booleans(), st.integers(-3, 6)), min_size=1, max_size=15
)


@given(rows_of_odds)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_the_best_threshold_is_that_of_brute_force(rows: list[tuple]) -> None:
    scores, answerable, odds = (np.array(column) for column in zip(*rows, strict=True))
    odds = odds.astype(np.float64)

    def mean(threshold: float) -> float:
        return float(np.where(odds > threshold, ~answerable, scores).mean())

    value, threshold = best_threshold(scores, answerable, odds)
    tried = {place: mean(place) for place in [-100.0, *odds]}
    assert value == pytest.approx(max(tried.values()))
    assert value == pytest.approx(mean(threshold))
    lowest = min(place for place, found in tried.items() if found == max(tried.values()))
    if lowest == -100:
        assert threshold < odds.min()
    else:
        assert threshold == lowest
    assert all(mean(place) < value for place in odds if place < threshold)


@given(rows_of_odds)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_the_best_threshold_is_the_official_one_for_different_probabilities(
    rows: list[tuple],
) -> None:
    scores, answerable, _ = (list(column) for column in zip(*rows, strict=True))
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    chances = ((order + 1) / (len(rows) + 1)).tolist()
    found = best_threshold(np.array(scores), np.array(answerable), np.array(chances))
    assert list(found) == pytest.approx(official_best(scores, answerable, chances))


def test_answering_nothing_can_be_best() -> None:
    wrong, unanswerable = np.zeros(2), np.zeros(2, bool)
    assert best_threshold(wrong, unanswerable, np.array([0.2, 0.9])) == (1.0, 0.0)
    value, threshold = best_threshold(wrong, unanswerable, np.array([-1e30, 4.0]))
    assert value == 1.0
    assert -1.001e30 < threshold < -1e30


@given(questions, st.lists(st.integers(-3, 3), min_size=8, max_size=8))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_best_and_applied_thresholds_agree(
    rows: list[tuple[list[str], str]], odds: list[int]
) -> None:
    golds = {str(number): row[0] for number, row in enumerate(rows)}
    predictions = {str(number): row[1] for number, row in enumerate(rows)}
    no_answer = {str(number): float(odds[number]) for number in range(len(rows))}
    report = squad_v2(golds, predictions, no_answer)
    for name in ("exact", "f1"):
        threshold = report[f"best_{name}_thresh"]
        applied = squad_v2(golds, predictions, no_answer, threshold)
        assert applied[name] == pytest.approx(report[f"best_{name}"])
        assert report[f"best_{name}"] >= report[name] - 1e-9
    scores = with_threshold(score_questions(golds, predictions), no_answer, 1e9)
    assert scores.f1.tolist() == score_questions(golds, predictions).f1.tolist()


def test_what_is_missing_is_said() -> None:
    with pytest.raises(
        SettingsError, match="1 of 5 questions have no prediction, the first of them d"
    ):
        squad_v2(GOLDS, dict.fromkeys("abce", ""))
    with pytest.raises(SettingsError, match="4 of 5 questions have no no-answer score"):
        squad_v2(GOLDS, PREDICTIONS, {"a": 0.0})
    with pytest.raises(SettingsError, match="0 of 0 questions"):
        squad_v1({}, {})
    with pytest.raises(SettingsError, match="question c has no gold answer"):
        squad_v1(GOLDS, PREDICTIONS)
    with pytest.raises(SettingsError, match=r"threshold = 0\.5 needs"):
        squad_v2(GOLDS, PREDICTIONS, threshold=0.5)
    with pytest.raises(SettingsError, match="infinite or not a number"):
        squad_v2(GOLDS, PREDICTIONS, dict.fromkeys(GOLDS, float("nan")))


def test_golds_of_examples() -> None:
    answered = QuestionExample("1", "who?", "A cat.", (Answer("cat", 2), Answer("A cat", 0)))
    silent = QuestionExample("2", "why?", "A cat.", impossible=True)
    assert gold_answers([answered, silent]) == {"1": ("cat", "A cat"), "2": ()}


@pytest.mark.parametrize(("version", "total"), [("1.1", 10570), ("2.0", 11873)])
def test_gold_answers_are_perfect(real_data: Path, version: Version, total: int) -> None:
    path = real_data / "squad" / f"dev-v{version}.json"
    if not path.exists():
        pytest.skip(f"no {path.name} in the real data")
    golds = {
        question["id"]: [answer["text"] for answer in question["answers"]]
        for article in json.loads(path.read_text(encoding="utf-8"))["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    }
    # A few golds are a full stop, which is empty once normalised: the scripts take another.
    predictions = {key: max(texts, key=len, default="") for key, texts in golds.items()}
    found = squad_v1(golds, predictions) if version == "1.1" else squad_v2(golds, predictions)
    assert (found["exact"], found["f1"], found["total"]) == (100.0, 100.0, total)
    predictions[next(key for key, texts in golds.items() if texts)] += " and more"
    again = squad_v1(golds, predictions) if version == "1.1" else squad_v2(golds, predictions)
    assert again["exact"] == pytest.approx(100 - 100 / total)
    assert again["exact"] < again["f1"] < 100

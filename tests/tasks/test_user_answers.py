"""Questions and choices in the user's own tables: shapes of answers, and every complaint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from litebert.tasks.multiple_choice import ChoiceExample
from litebert.tasks.questions import Answer, QuestionExample
from tests.tasks.own_tables import complaint, read_own, rows, save

PASSAGE = " An oak and an ash. The oak fell."


@pytest.mark.parametrize(
    "row",
    [
        {"answer": "ash"},
        {"answer": "ash", "answer_start": 15},
        {"answer": " ash  "},
        {"answers": ["ash"]},
        {"answers": ["ash"], "answer_start": [15]},
        {"answers": {"text": ["ash"], "answer_start": [15]}},
        {"answers": [{"text": "ash", "answer_start": 15}]},
        {"answer": "ash", "is_impossible": "False"},
    ],
)
def test_shapes_of_answers(tmp_path: Path, row: dict[str, Any]) -> None:
    said: list[str] = []
    found = rows(tmp_path, "qa", {"question": "?", "context": PASSAGE} | row, say=said.append)
    assert found == [QuestionExample("0", "?", PASSAGE, (Answer("ash", 15),), False)]
    assert said == []


def test_answers_in_a_csv(tmp_path: Path) -> None:
    path = save(tmp_path, "question,context,answer,answer_start\n?,the oak,oak,4\n")
    assert read_own(path, "qa").examples == [
        QuestionExample("0", "?", "the oak", (Answer("oak", 4),), False)
    ]


def test_an_answer_at_the_very_start(tmp_path: Path) -> None:
    found = rows(tmp_path, "qa", {"question": "?", "context": "oak", "answer": "oak"})
    assert found == [QuestionExample("0", "?", "oak", (Answer("oak", 0),), False)]


def test_an_answer_in_several_places(tmp_path: Path) -> None:
    said: list[str] = []
    both = [{"question": "?", "passage": PASSAGE, "answer": one} for one in ("oak", "ash")]
    found = rows(tmp_path, "qa", *both, say=said.append)
    assert isinstance(found[0], QuestionExample)
    assert found[0].answers == (Answer("oak", 4),)
    assert said == [
        f"{tmp_path / 'mine.jsonl'}, line 1: the answer 'oak' is in its passage several times (1 "
        "such in this file); the first place is taken: give answer_start to choose another"
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"answers": {"text": [], "answer_start": []}},
        {"answers": []},
        {"answer": "", "is_impossible": True},
        {"answer": None, "is_impossible": "1"},
    ],
)
def test_no_answer(tmp_path: Path, row: dict[str, Any]) -> None:
    found = rows(tmp_path, "qa", {"question": "?", "context": PASSAGE} | row)
    assert found == [QuestionExample("0", "?", PASSAGE, (), True)]


def test_questions_to_be_answered(tmp_path: Path) -> None:
    found = rows(tmp_path, "qa", {"question": "?", "context": PASSAGE}, needs_labels=False)
    assert found == [QuestionExample("0", "?", PASSAGE, (), None)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"answer": "elm"}, "the answer 'elm' is not in its passage"),
        ({"answer": "ash", "answer_start": 14}, "'ash' is not at character 14 of its passage"),
        ({"answer": "ash", "answer_start": -4}, "place of an answer is '-4', expected a whole"),
        ({"answer": "ash", "answer_start": True}, "place of an answer is True, expected a whole"),
        ({"answer": "ash", "answer_start": "9" * 5000}, "expected a whole number"),
        ({"answer": ["ash", "oak"], "answer_start": [15]}, "2 answers and 1 places of answers"),
        ({"answer": 3}, "an answer is not text but a number"),
        ({"answer": ["ash", " "]}, "an answer is empty"),
        ({"answer": ""}, "'answer' is empty; where there is no answer, say so"),
        ({"answer": "", "is_impossible": False}, "'answer' is empty; where there is no answer"),
        ({"answer": "ash", "is_impossible": True}, "marked as impossible to answer, and has an"),
        ({"answer": "ash", "is_impossible": "maybe"}, "is 'maybe', expected true or false"),
        ({"answer": "ash", "context": "\n"}, "'context' is empty"),
        ({"answer": "ash", "question": None}, "'question' is empty"),
    ],
)
def test_what_is_wrong_with_answers(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    good = {"question": "?", "context": PASSAGE, "answer": "ash"}
    path = save(tmp_path, [good, good | row], "mine.jsonl")
    said = complaint(path, "qa")
    assert said.startswith(f"{path}, line 2: ")
    assert message in said


CHOICE = {"question": "Which?", "options": ["oak", "ash", "elm"]}


@pytest.mark.parametrize(
    ("answers", "places", "way"),
    [
        (["elm", "oak"], [2, 0], "its text"),
        (["C", "a"], [2, 0], "its letter"),
        ([2, 0], [2, 0], "its number from 0"),
        (["3", "1"], [2, 0], "its number from 1"),
    ],
)
def test_ways_to_tell_the_correct_option(
    tmp_path: Path, answers: list[Any], places: list[int], way: str
) -> None:
    said: list[str] = []
    content = [CHOICE | {"answer": one} for one in answers]
    assert rows(tmp_path, "choice", *content, say=said.append) == [
        ChoiceExample(str(number), "", "Which?", ("oak", "ash", "elm"), place)
        for number, place in enumerate(places)
    ]
    assert said == [f"{tmp_path / 'mine.jsonl'}: 'answer' tells the correct option by {way}"]


def test_options_in_columns_or_as_json(tmp_path: Path) -> None:
    expected = [ChoiceExample("0", "A wood.", "Which?", ("oak", "ash"), 1)]
    text = "option_b,Option A,article,question,label\nash,oak,A wood.,Which?,B\n"
    assert read_own(save(tmp_path, text), "choice").examples == expected
    for marks in ("12", "01"):
        text = (
            f"ending{marks[0]},ending{marks[1]},context,question,answer\noak,ash,A wood.,Which?,B\n"
        )
        assert read_own(save(tmp_path, text), "choice").examples == expected
    text = 'context,question,choices,answer\nA wood.,Which?,"[""oak"", ""ash""]",ash\n'
    assert read_own(save(tmp_path, text), "choice").examples == expected
    text = "context,question,y,x,answer\nA wood.,Which?,ash,oak,B\n"
    for told in (("x", "y"), "x,y"):
        found = read_own(save(tmp_path, text), "choice", {"options": told})
        assert found.examples == expected


def test_choices_to_be_made(tmp_path: Path) -> None:
    expected = [ChoiceExample("0", "", "Which?", ("oak", "ash", "elm"), None)]
    assert rows(tmp_path, "choice", CHOICE, needs_labels=False) == expected
    assert rows(tmp_path, "choice", CHOICE | {"answer": None}, needs_labels=False) == expected


@pytest.mark.parametrize(
    ("answers", "options", "ways"),
    [
        ([1, 2], ["oak", "ash", "elm"], "its number from 0 or by its number from 1"),
        (["b"], ["b", "c"], "its text or by its letter"),
    ],
)
def test_unclear_ways(tmp_path: Path, answers: list[Any], options: list[str], ways: str) -> None:
    content = [{"question": "?", "options": options, "answer": one} for one in answers]
    path = save(tmp_path, content, "mine.jsonl")
    assert f"{path}: the correct options could be told by {ways}; write letters" in complaint(
        path, "choice"
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"answer": "D"}, "'answer' is 'D', which is none of the 3 options by its letter"),
        ({"answer": 3}, "'answer' is '3', which is none of the 3 options by its letter"),
        ({"answer": ""}, "'answer' is empty; every row needs its answer"),
        ({"options": ["oak", "ash"]}, "2 options, the first row 3"),
        ({"options": ["oak"]}, "1 options; there must be two or more"),
        ({"options": ["oak", "", "elm"]}, "option 2 is empty or not text"),
        ({"options": "oak, ash, elm"}, "'options' is not a list of options but text"),
        ({"question": ""}, "'question' is empty"),
    ],
)
def test_what_is_wrong_with_choices(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    good = CHOICE | {"answer": "A"}
    path = save(tmp_path, [good, good | {"answer": "B"}, good | row], "mine.jsonl")
    said = complaint(path, "choice")
    assert said.startswith(f"{path}, line 3: ")
    assert message in said


def test_no_row_makes_sense(tmp_path: Path) -> None:
    path = save(tmp_path, [CHOICE | {"answer": "birch"}], "mine.jsonl")
    assert complaint(path, "choice") == (
        f"{path}, line 1: 'answer' is 'birch', which is none of the 3 options by text, letter or "
        "number"
    )

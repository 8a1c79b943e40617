"""SQuAD: both versions, answers out of place, hostile files, and what the scorers read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from litebert.base.errors import FileError, FormatError, LitebertError, SettingsError
from litebert.tasks.questions import (
    Answer,
    QuestionExample,
    nearest,
    read_squad,
    write_predictions,
)

PASSAGE = "The mill on the hill was built in 1720. The mill burnt down in 1805."


def question(id: str = "q1", text: str = "When did it burn?", **more: Any) -> dict[str, Any]:
    return {"id": id, "question": text, "answers": [answer("1805", 63)], **more}


def answer(text: str, start: int) -> dict[str, Any]:
    return {"text": text, "answer_start": start}


def squad(*questions: dict[str, Any], **more: Any) -> dict[str, Any]:
    paragraph = {"context": PASSAGE, "qas": list(questions)}
    return {"data": [{"title": "The_Mill", "paragraphs": [paragraph]}], **more}


def save(folder: Path, content: Any, name: str = "dev.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_answers_are_where_they_say(tmp_path: Path) -> None:
    two = question(answers=[answer("1805", 63), answer("The mill", 0)])
    examples = read_squad(save(tmp_path, squad(two, version="1.1")))
    answers = (Answer("1805", 63), Answer("The mill", 0))
    assert examples == [QuestionExample("q1", "When did it burn?", PASSAGE, answers, False)]


def test_impossible_questions(tmp_path: Path) -> None:
    none = question(
        "q2", " Who built it? ", answers=[], is_impossible=True, plausible_answers=[answer("x", 9)]
    )
    path = save(tmp_path, squad(question(is_impossible=False), none, version="v2.0"))
    first, second = read_squad(path, "2.0")
    assert (first.impossible, second.impossible) == (False, True)
    assert second == QuestionExample("q2", "Who built it?", PASSAGE, (), True)


def test_the_version_asked_for(tmp_path: Path) -> None:
    path = save(tmp_path, squad(question(), version="v2.0"))
    with pytest.raises(FormatError, match=r"dev.json: holds SQuAD 2.0, 1.1 was asked for"):
        read_squad(path, "1.1")
    with pytest.raises(SettingsError, match=r"no SQuAD version '3.0'"):
        read_squad(path, "3.0")
    nameless = save(tmp_path, squad(question(answers=[], is_impossible=True)))
    assert read_squad(nameless)[0].impossible
    with pytest.raises(
        FormatError, match=r"question 'q1': impossible to answer, as only SQuAD 2.0"
    ):
        read_squad(nameless, "1.1")
    claimed = save(tmp_path, squad(question(answers=[], is_impossible=True), version="1.1"))
    with pytest.raises(FormatError, match=r"impossible to answer, as only SQuAD 2.0 has it"):
        read_squad(claimed)


def test_a_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "dev.json.gz"
    path.write_bytes(gzip.compress(json.dumps(squad(question())).encode()))
    assert read_squad(path)[0].answers == (Answer("1805", 63),)


def test_without_answers_to_predict_them(tmp_path: Path) -> None:
    bare = question()
    del bare["answers"]
    path = save(tmp_path, squad(bare, question("q2", answers=[])))
    assert [one.impossible for one in read_squad(path, needs_answers=False)] == [None, None]
    with pytest.raises(FormatError, match="the key 'answers' is missing"):
        read_squad(path)


def test_answers_out_of_place(tmp_path: Path) -> None:
    off = question("q2", answers=[answer("mill", 41), answer("mill", 9)])
    path = save(tmp_path, squad(question(), off))
    with pytest.raises(FormatError) as error:
        read_squad(path)
    assert str(error.value) == (
        f"{path}, article 'The_Mill', paragraph 1, question 'q2': the answer 'mill' is not at its "
        "offset, but elsewhere in its paragraph (2 such in this file); `--repair` moves them to "
        "the nearest place"
    )
    said: list[str] = []
    examples = read_squad(path, repair=True, say=said.append)
    assert examples[1].answers == (Answer("mill", 44), Answer("mill", 4))
    assert said == [f"{path}: moved 2 answers to the nearest place where they are found"]


def test_nothing_is_said_of_a_sound_file(tmp_path: Path) -> None:
    said: list[str] = []
    read_squad(save(tmp_path, squad(question())), repair=True, say=said.append)
    assert said == []


@example("abba", "a", 1)
@example("abba", "a", 2)
@example("aba", "a", 1)
@example("ab", "b", 0)
@example("ba", "b", 1)
@given(st.text("ab", max_size=12), st.text("ab", min_size=1, max_size=3), st.integers(-3, 20))
def test_nearest_is_the_nearest(passage: str, text: str, start: int) -> None:
    places = [i for i in range(len(passage)) if passage.startswith(text, i)]
    clipped = max(0, min(start, len(passage)))
    assert nearest(text, passage, start) == min(
        places, key=lambda place: (abs(place - clipped), place), default=None
    )


@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (squad(question(answers=[answer("1805 ", 63)])), "'1805 ' is nowhere in its paragraph"),
        (squad(question(answers=[answer(" ", 3)])), "an answer: 'text' is empty"),
        (squad(question(answers=[answer("1805", True)])), "expected a whole number, found true or"),
        (squad(question(answers=[{"text": "1805"}])), "the key 'answer_start' is missing"),
        (squad(question(answers=["1805"])), "an answer: expected an object, found text"),
        (squad(question(answers=[])), "question 'q1': no answer, and not marked"),
        (squad(question(answers=[], is_impossible=False)), "marked as possible to answer, and has"),
        (squad(question(is_impossible=True)), "marked as impossible to answer, and has an answer"),
        (
            squad(question(is_impossible="no")),
            "'is_impossible': expected true or false, found text",
        ),
        (squad(question(), question()), "question 'q1': the id occurs twice"),
        (squad(question(text=" ")), "'question' is empty"),
        (squad({"id": "q1", "answers": [], "is_impossible": True}), "'question' is missing"),
        (squad({"question": "?"}), "paragraph 1, a question: the key 'id' is missing"),
        ({"data": [{"paragraphs": [{"context": "x"}]}]}, "article 1, paragraph 1: the key 'qas'"),
        ({"data": [{"title": "T"}]}, "article 'T': the key 'paragraphs' is missing"),
        ({"data": [3]}, "article 1: expected an object, found a whole number"),
        ({"data": {}}, "'data': expected a list, found an object"),
        ({}, "the key 'data' is missing"),
        ([], "expected an object, found a list"),
        ('{"data": [', "not JSON (Expecting value at character 10)"),
        ("[" * 100_000, "not JSON of any sane size"),
        ('{"data": ' + "9" * 5000 + "}", "not JSON of any sane size"),
        ('{"data": ["\\ud800"]}', "holds half a surrogate pair"),
    ],
)
def test_hostile_files_get_one_sentence(
    tmp_path: Path, content: Any, message: str, repair: bool
) -> None:
    path = save(tmp_path, content)
    with pytest.raises(FormatError) as error:
        read_squad(path, repair=repair)
    assert message in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)


def replace_one(value: Any, data: st.DataObject) -> Any:
    """A value with something else in a random place, or without one of its parts."""
    if not isinstance(value, dict | list) or not value or data.draw(st.integers(0, 6)) == 0:
        return data.draw(VALUES)
    key = data.draw(st.sampled_from(sorted(value) if isinstance(value, dict) else [0]))
    changed = value.copy()
    changed[key] = replace_one(value[key], data)
    if data.draw(st.integers(0, 9)) == 0:
        del changed[key]
    return changed


@given(st.data())
def test_any_damage_gives_examples_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    sound = squad(question(is_impossible=False), version="v2.0")
    path = save(tmp_path_factory.getbasetemp(), replace_one(sound, data), "any.json")
    said = ""
    try:
        read_squad(path)
    except LitebertError as error:
        said = str(error)
    assert not said or (said.startswith(str(path)) and "\n" not in said)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none.json: no such file"):
        read_squad(tmp_path / "none.json")


def test_what_the_scorers_read(tmp_path: Path) -> None:
    write_predictions(tmp_path, {"q1": "1805", "q2": "é"})
    assert json.loads((tmp_path / "predictions.json").read_text()) == {"q1": "1805", "q2": "é"}
    assert not (tmp_path / "null_odds.json").exists()
    write_predictions(tmp_path, {"q1": ""}, {"q1": 2.5})
    assert json.loads((tmp_path / "predictions.json").read_text()) == {"q1": ""}
    assert json.loads((tmp_path / "null_odds.json").read_text()) == {"q1": 2.5}


@pytest.mark.parametrize(
    ("name", "version", "size", "impossible", "answers"),
    [
        ("dev-v1.1.json", "1.1", 10_570, 0, 34_726),
        ("dev-v2.0.json", "2.0", 11_873, 5_945, 20_302),
        ("train-v1.1.json.gz", "1.1", 87_433, 0, 87_433),
    ],
)
def test_published_sizes(
    real_data: Path, name: str, version: str, size: int, impossible: int, answers: int
) -> None:
    examples = read_squad(real_data / "squad" / name, version)
    assert len(examples) == size
    assert sum(one.impossible is True for one in examples) == impossible
    assert sum(len(one.answers) for one in examples) == answers

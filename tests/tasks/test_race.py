"""RACE: the published folders, JSON lines, levels, and what is wrong with an article."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from litebert.base.errors import FileError, FormatError, SettingsError
from litebert.tasks.multiple_choice import ChoiceExample
from litebert.tasks.published.race import read_race

OPTIONS = ["a boat", "a cart", "a sledge", "a kite"]


def article(id: str = "middle1.txt", **more: Any) -> dict[str, Any]:
    return {
        "article": f"The story of {id}.",
        "questions": ["They came by _ .", "What did they leave?"],
        "options": [OPTIONS, OPTIONS[::-1]],
        "answers": ["C", "A"],
        "id": id,
        **more,
    }


def save(path: Path, *articles: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(one) + "\n" for one in articles)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.fixture
def published(tmp_path: Path) -> Path:
    for level, number in (("middle", 2), ("middle", 10), ("high", 1)):
        path = tmp_path / "dev" / level / f"{number}.txt"
        save(path, article(f"{level}{number}.txt"))
    return tmp_path


def test_an_example_for_each_question(published: Path) -> None:
    examples = read_race(published, "dev", "high")
    passage = "The story of high1.txt."
    assert examples == [
        ChoiceExample("high1.txt-0", passage, "They came by _ .", tuple(OPTIONS), 2, "high"),
        ChoiceExample(
            "high1.txt-1", passage, "What did they leave?", tuple(OPTIONS[::-1]), 0, "high"
        ),
    ]


def test_folders_in_an_order_of_their_own(published: Path) -> None:
    ids = [one.id for one in read_race(published, "dev")][::2]
    assert ids == ["middle2.txt-0", "middle10.txt-0", "high1.txt-0"]
    (published / "elsewhere").mkdir()
    (published / "dev").rename(published / "elsewhere" / "dev")
    (published / "elsewhere").rename(published / "RACE")
    assert [one.id for one in read_race(published, "dev")][::2] == ids


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_json_lines(tmp_path: Path, suffix: str) -> None:
    save(tmp_path / f"test_middle.jsonl{suffix}", article("middle1.txt"), article("middle2.txt"))
    save(tmp_path / f"test_high.jsonl{suffix}", article("7"))
    levels = [one.level for one in read_race(tmp_path, "test")]
    assert levels == ["middle"] * 4 + ["high"] * 2
    assert len(read_race(tmp_path, "test", "middle")) == 4


def test_one_file(tmp_path: Path) -> None:
    path = save(tmp_path / "mine.jsonl", article("middle1.txt"), article("high1.txt"))
    assert [one.level for one in read_race(path)] == ["middle", "middle", "high", "high"]
    assert [one.id for one in read_race(path, level="high")] == ["high1.txt-0", "high1.txt-1"]
    path = save(tmp_path / "mine.jsonl", article("17"))
    assert [one.level for one in read_race(path)] == [None, None]
    with pytest.raises(FormatError, match="the id '17-0' does not tell its level"):
        read_race(path, level="high")


def test_without_answers(tmp_path: Path) -> None:
    bare = article()
    del bare["answers"]
    path = save(tmp_path / "bare.jsonl", bare)
    assert [one.answer for one in read_race(path, needs_answers=False)] == [None, None]
    with pytest.raises(FormatError, match=r"bare.jsonl, line 1: the key 'answers' is missing"):
        read_race(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": [OPTIONS, OPTIONS[:3]]}, "line 2, question 2: 3 options, RACE has 4"),
        ({"options": [OPTIONS]}, "line 2: 2 questions, 1 lists of options and 2 answers"),
        ({"options": [OPTIONS, ["a", "b", " ", "d"]]}, "line 2, question 2, option C: empty"),
        ({"options": [OPTIONS, "abcd"]}, "question 2, options: expected a list, found text"),
        ({"answers": ["A", "E"]}, "line 2, question 2: the answer 'E' is not one of A, B, C, D"),
        ({"answers": ["A", "AB"]}, "the answer 'AB' is not one of A, B, C, D"),
        ({"answers": ["A", 1]}, "question 2, answer: expected text, found a whole number"),
        ({"questions": ["?", ""]}, "line 2, question 2: empty"),
        ({"article": "\n"}, "line 2: 'article' is empty"),
        ({"id": "middle1.txt"}, "line 2: the id 'middle1.txt' occurs twice"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = save(tmp_path / "train_middle.jsonl", article(), article("middle2.txt") | change)
    with pytest.raises(FormatError) as error:
        read_race(tmp_path, "train", "middle")
    assert str(error.value).startswith(f"{path}, ")
    assert message in str(error.value)


def test_a_published_file_that_is_cut_short(published: Path) -> None:
    path = published / "dev" / "high" / "1.txt"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(FormatError, match=r"1.txt: not JSON"):
        read_race(published, "dev")


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="RACE has no 'middel'; did you mean 'middle'"):
        read_race(tmp_path, "dev", "middel")
    with pytest.raises(SettingsError, match="RACE has no 'deb'; did you mean 'dev'"):
        read_race(tmp_path, "deb")
    with pytest.raises(FileError, match=r"neither dev/middle/\*.txt nor dev_middle.jsonl"):
        read_race(tmp_path, "dev")
    with pytest.raises(FileError, match="nowhere: no such file"):
        read_race(tmp_path / "nowhere", "dev")


@pytest.mark.parametrize(
    ("split", "middle", "high"),
    [("train", 25_421, 62_445), ("dev", 1_436, 3_451), ("test", 1_436, 3_498)],
)
def test_published_sizes(real_data: Path, split: str, middle: int, high: int) -> None:
    examples = read_race(real_data / "race", split)
    assert sum(one.level == "middle" for one in examples) == middle
    assert sum(one.level == "high" for one in examples) == high
    assert len(examples) == middle + high == len({one.id for one in examples})

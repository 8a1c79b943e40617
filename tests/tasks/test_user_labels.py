"""Pairs, scores and tags in the user's own tables, and every complaint about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from litebert.tasks.tagged import TaggedExample
from litebert.tasks.texts import TextExample
from tests.tasks.own_tables import complaint, read_own, rows, save


def test_pairs(tmp_path: Path) -> None:
    assert rows(tmp_path, "pair", {"premise": "a", "hypothesis": " b ", "label": 2}) == [
        TextExample("0", "a", "b", "2")
    ]


@pytest.mark.parametrize(("text", "number"), [("1", 1.0), (" -2.5e1 ", -25.0), (".5", 0.5)])
def test_scores(tmp_path: Path, text: str, number: float) -> None:
    path = save(tmp_path, f"text,score\nfine,{text}\n")
    assert read_own(path, "regress").examples == [TextExample("0", "fine", None, number)]


@pytest.mark.parametrize("text", ["good", "nan", "1_000", "1e999", "٣", "0x1"])
def test_what_is_no_score(tmp_path: Path, text: str) -> None:
    path = save(tmp_path, f"text,score\nfine,3\nfine,{text}\n")
    assert complaint(path, "regress") == f"{path}, line 3: 'score' is {text!r}, expected a number"


@pytest.mark.parametrize(
    ("words", "tags"),
    [
        (["an", "oak"], ["O", "B-TREE"]),
        ("an oak", "O  B-TREE"),
        ('["an", "oak"]', '["O", "B-TREE"]'),
    ],
)
def test_words_and_tags(tmp_path: Path, words: Any, tags: Any) -> None:
    expected = [TaggedExample("0", ("an", "oak"), ("O", "B-TREE"))]
    assert rows(tmp_path, "tag", {"words": words, "tags": tags}) == expected


def test_numbered_tags_and_bracketed_words(tmp_path: Path) -> None:
    assert rows(tmp_path, "tag", {"words": "[ laughs ] 3", "tags": "[0, 1, 0, 2]"}) == [
        TaggedExample("0", ("[", "laughs", "]", "3"), ("0", "1", "0", "2"))
    ]


def test_words_without_tags(tmp_path: Path) -> None:
    bare = rows(tmp_path, "tag", {"words": ["an", "oak"]}, needs_labels=False)
    assert bare == [TaggedExample("0", ("an", "oak"))]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"words": ["a", "b"], "tags": ["O"]}, "2 words in 'words', 1 tags in 'tags'"),
        ({"words": ["a", "b"], "tags": None}, "2 words in 'words', 0 tags in 'tags'"),
        ({"words": [], "tags": []}, "'words' is empty"),
        ({"words": ["a", " "], "tags": ["O", "O"]}, "'words', number 2: empty"),
        ({"words": ["a", {}], "tags": ["O", "O"]}, "number 2 is neither text nor a number but an"),
        ({"words": {"a": 1}, "tags": ["O"]}, "'words' is neither a list nor text but an object"),
        ({"words": "['a', 'b']", "tags": "O O"}, "looks like a list that Python has printed"),
        ({"words": "a b", "tags": "[0 1]"}, "'tags' looks like a list that Python has printed"),
    ],
)
def test_what_is_wrong_with_tags(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    good = {"words": ["a"], "tags": ["O"]}
    path = save(tmp_path, [good, row], "mine.jsonl")
    said = complaint(path, "tag")
    assert said.startswith(f"{path}, line 2: ")
    assert message in said

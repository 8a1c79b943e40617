"""The columns of the user's own tables: told, guessed, unclear; and their ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from litebert.base.errors import SettingsError
from litebert.tasks.registry import KINDS
from litebert.tasks.texts import TextExample
from tests.tasks.own_tables import Found, complaint, read_own, save


@pytest.mark.parametrize(
    ("kind", "header", "guessed"),
    [
        ("classify", "Sentence,Class", {"text": "Sentence", "label": "Class"}),
        ("classify", "text,label,source", {"text": "text", "label": "label"}),
        ("classify", "idx,tweet,category", {"id": "idx", "text": "tweet", "label": "category"}),
        ("pair", "premise,hypothesis,label", ("premise", "hypothesis", "label")),
        ("pair", "id,Question1,Question2,target", ("Question1", "Question2", "target", "id")),
        ("pair", "text-a,text-b,label", ("text-a", "text-b", "label")),
        ("regress", "review,score", {"text": "review", "label": "score"}),
        ("regress", "sentence1,sentence2,score", ("sentence1", "sentence2", "score")),
        ("tag", "tokens,ner_tags", {"words": "tokens", "tags": "ner_tags"}),
    ],
)
def test_obvious_columns(tmp_path: Path, kind: str, header: str, guessed: Any) -> None:
    if isinstance(guessed, tuple):
        guessed = dict(zip(("text_a", "text_b", "label", "id"), guessed, strict=False))
    values = ",".join("3" for _ in header.split(","))
    found = read_own(save(tmp_path, f"{header}\n{values}\n"), kind)
    assert found.guessed == guessed == found.columns


@pytest.mark.parametrize(
    ("kind", "header", "message"),
    [
        ("classify", "text,review,label", "several columns could be the text: 'text', 'review'"),
        ("classify", "text,label,score", "several columns could be the label: 'label', 'score'"),
        ("classify", "body,head,label", "no column is obviously the text; there are 'body', 'h"),
        ("classify", "text,mood", "no column is obviously the label; there are 'text', 'mood'"),
        ("pair", "text_a,label", "no column is obviously the text_a"),
        (
            "pair",
            "text1,text2,premise,hypothesis,label",
            "several columns could be the text_a: 'text1', 'text2', 'premise', 'hypothesis'",
        ),
        ("choice", "question,choice1,answer", "several columns could be the options: 'choice1'"),
        ("choice", "question,option_a,option_c,answer", "could be the options: 'option_a', 'opt"),
        ("choice", "question,options,option_a,option_b", "'options', 'option_a', 'option_b'"),
        ("choice", "options,answer", "neither a question nor a passage"),
    ],
)
def test_unclear_columns(tmp_path: Path, kind: str, header: str, message: str) -> None:
    values = ",".join("x" for _ in header.split(","))
    path = save(tmp_path, f"{header}\n{values}\n")
    said = complaint(path, kind)
    assert said.startswith(f"{path}: ")
    assert message in said
    assert "`--column " in said


SHOP = [("soap", "home"), ("a pan", "kitchen"), ("a brush", "home"), ("a pot", "kitchen")]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("item,aisle", "{0},{1}"),
        ("aisle,item", "{1},{0}"),
        ("number,item,aisle", "{2},{0},{1}"),
        ("item,label", "{0},{1}"),
        ("text,aisle", "{0},{1}"),
    ],
)
def test_columns_whose_names_say_nothing_are_told_by_content(
    tmp_path: Path, header: str, row: str
) -> None:
    content = "\n".join([header, *(row.format(*one, n) for n, one in enumerate(SHOP))])
    said: list[str] = []
    found = read_own(save(tmp_path, content), "classify", say=said.append)
    assert [(one.first, one.label) for one in found.examples] == SHOP
    assert any("columns guessed by their content: " in line and "--column" in line for line in said)


@pytest.mark.parametrize(
    "content",
    [
        "item,aisle\nsoap,home\na pan,kitchen\n",  # nothing repeats
        "item,aisle,shop\nsoap,a,x\na pan,a,x\na pot,b,y\nplate,b,y\n",  # two that may be it
    ],
)
def test_content_that_says_nothing_is_no_guess(tmp_path: Path, content: str) -> None:
    assert "no column is obviously the text" in complaint(save(tmp_path, content), "classify")


def test_columns_that_are_told(tmp_path: Path) -> None:
    path = save(tmp_path, "text,review,mood,id\na,b,c,7\n")
    found = read_own(path, "classify", {"text": "review", "label": "mood"})
    assert found == Found(
        [TextExample("7", "b", None, "c")],
        {"text": "review", "label": "mood", "id": "id"},
        {"id": "id"},
    )
    assert complaint(path, "classify", columns={"text": "reviews"}) == (
        f"{path}: no column 'reviews'; did you mean 'review'?"
    )
    with pytest.raises(SettingsError, match="words = 'text' has no meaning for 'classify'"):
        read_own(path, "classify", {"words": "text"})
    with pytest.raises(SettingsError, match="text_a and text_b go together"):
        read_own(path, "pair", {"text_a": "text"})
    both = {"text_a": "review", "text_b": "text", "label": "mood"}
    assert read_own(path, "pair", both).examples == [TextExample("7", "b", "a", "c")]
    with pytest.raises(SettingsError, match=r"texts = .review. .*; did you mean .text."):
        read_own(path, "classify", {"texts": "review"})


def test_a_told_text_makes_a_score_of_one_text(tmp_path: Path) -> None:
    path = save(tmp_path, "sentence1,sentence2,score\na,b,2\n")
    told = read_own(path, "regress", {"text": "sentence2"}).examples
    assert told == [TextExample("0", "b", None, 2.0)]


def test_texts_alone_to_be_classified(tmp_path: Path) -> None:
    path = save(tmp_path, 'text\n"a; b"\nc\n')
    assert read_own(path, "classify", needs_labels=False).examples == [
        TextExample("0", "a; b"),
        TextExample("1", "c"),
    ]


def test_labels_that_are_not_needed_are_not_looked_for_in_vain(tmp_path: Path) -> None:
    path = save(tmp_path, "text,label,score\na,x,y\n")
    found = read_own(path, "classify", needs_labels=False)
    assert found.examples == [TextExample("0", "a", None, None)]
    assert found.guessed == {"text": "text"}


def test_ids(tmp_path: Path) -> None:
    said: list[str] = []
    path = save(tmp_path, "id,text,label\nu1,a,x\nu1,b,x\n")
    found = read_own(path, "classify", say=said.append)
    assert [one.id for one in found.examples] == ["0", "1"]
    assert "id" not in found.guessed
    assert "id" not in found.columns
    assert said == [
        f"{path}, line 3: the id in 'id' 'u1' occurs twice (before: {path}, line 2); rows are "
        "counted from 0 instead"
    ]
    assert "line 3: the id in 'id' 'u1' occurs twice" in complaint(
        path, "classify", columns={"id": "id"}
    )
    path = save(tmp_path, "id,text,label\n,b,x\n")
    assert "line 2: the id in 'id' is empty" in complaint(path, "classify", columns={"id": "id"})


def test_an_unknown_kind(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no kind of task 'clasify'; did you mean 'classify'"):
        read_own(save(tmp_path, "text,label\na,b\n"), "clasify")
    assert "qa" in KINDS

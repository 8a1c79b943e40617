"""The user's own tables: every format and kind, columns told and guessed, and every complaint."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given

from litebert.base.errors import FileError, LitebertError, SettingsError
from litebert.tasks.multiple_choice import ChoiceExample
from litebert.tasks.questions import Answer, QuestionExample
from litebert.tasks.readers import text_file
from litebert.tasks.readers.column_mapping import ColumnMapping, GivenColumns
from litebert.tasks.readers.text_file import Say, quiet
from litebert.tasks.registry import KINDS, find_kind
from litebert.tasks.tagged import TaggedExample
from litebert.tasks.texts import TextExample


@dataclass(frozen=True)
class Found:
    """The examples of a table, the columns they came from, and those that nobody named."""

    examples: list[Any]
    columns: dict[str, str]
    guessed: dict[str, str]


def read_own(
    path: Path, kind: str, columns: GivenColumns | None = None, *, needs_labels: bool = True,
    say: Say = quiet,
) -> Found:  # fmt: skip
    given = ColumnMapping.build(columns)
    examples, found = find_kind(kind).read_table(path, given, labelled=needs_labels, say=say)
    return Found(examples, found.shown(), found.without(*given.columns).shown())


def save(folder: Path, content: str | list[dict[str, Any]], name: str = "mine.csv") -> Path:
    path = folder / name
    if name.endswith(".parquet"):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(content), path)
    elif isinstance(content, str):
        path.write_bytes(content.encode())
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in content))
    return path


def rows(folder: Path, kind: str, *content: dict[str, Any], **options: Any) -> list[Any]:
    """Examples out of JSON lines."""
    return read_own(save(folder, list(content), "mine.jsonl"), kind, **options).examples


def complaint(path: Path, kind: str, **options: Any) -> str:
    with pytest.raises(LitebertError) as error:
        read_own(path, kind, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


# Formats


def test_csv_with_quotes_commas_newlines_and_windows_line_ends(tmp_path: Path) -> None:
    text = (
        '\ufeffreview,sentiment\r\n"good, ""very"" good",pos\r\n\r\n"two\nlines",neg\r\nplain,\r\n'
    )
    path = save(tmp_path, text)
    found = read_own(path, "classify", needs_labels=False)
    assert found.examples == [
        TextExample("0", 'good, "very" good', None, "pos"),
        TextExample("1", "two\nlines", None, "neg"),
        TextExample("2", "plain", None, None),
    ]
    assert found.guessed == {"text": "review", "label": "sentiment"}
    said = complaint(path, "classify")
    assert said == f"{path}, line 6: 'sentiment' is empty; every row needs its label"


@given(st.lists(st.text("ab,\"\n 'é\u2028", min_size=1).filter(str.strip), min_size=1, max_size=5))
def test_csv_as_the_csv_module_writes_it(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text", "label"], *([text, "x"] for text in texts)])
    examples = read_own(path, "classify").examples
    assert [getattr(one, "first", None) for one in examples] == [text.strip() for text in texts]


def test_tsv_knows_no_quotes(tmp_path: Path) -> None:
    path = save(tmp_path, 'text\tlabel\r\n"half, a quote\t"a"\r\n', "mine.tsv")
    assert read_own(path, "classify").examples == [TextExample("0", '"half, a quote', None, '"a"')]


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.compress)],
)
def test_compressed_files(tmp_path: Path, suffix: str, compress: Any) -> None:
    path = tmp_path / f"mine.jsonl{suffix}"
    path.write_bytes(compress(b'{"text": "fine", "label": "a"}\n'))
    assert read_own(path, "classify").examples == [TextExample("0", "fine", None, "a")]


def test_labels_are_as_they_are_written(tmp_path: Path) -> None:
    lines = ['"a "', "1", "1.50", "-2e3", "true", "10000000000000000000000"]
    text = "".join(f'{{"text": "x", "label": {line}}}\n' for line in lines)
    examples = read_own(save(tmp_path, text, "mine.jsonl"), "classify").examples
    labels = [one.label for one in examples if isinstance(one, TextExample)]
    assert labels == ["a ", "1", "1.50", "-2e3", "true", "10000000000000000000000"]


def test_parquet(tmp_path: Path) -> None:
    content = [{"text": "good", "label": 1}, {"text": "bad", "label": 0}]
    path = save(tmp_path, content, "mine.parquet")
    assert read_own(path, "classify").examples == [
        TextExample("0", "good", None, "1"),
        TextExample("1", "bad", None, "0"),
    ]
    path = save(tmp_path, [{"text": "good", "label": 1}, {"text": "", "label": 0}], "b.parquet")
    assert complaint(path, "classify") == f"{path}, row 2: 'text' is empty"
    path.write_bytes(b"PAR1 and nothing else")
    assert "b.parquet: not readable as Parquet" in complaint(path, "classify")


def test_nested_parquet(tmp_path: Path) -> None:
    answers = {"text": ["oak"], "answer_start": [5]}
    content = [{"question": "What?", "context": "It's oak.", "answers": answers}]
    assert read_own(save(tmp_path, content, "mine.parquet"), "qa").examples == [
        QuestionExample("0", "What?", "It's oak.", (Answer("oak", 5),), False)
    ]
    content = [{"tokens": ["an", "oak"], "ner_tags": [0, 3]}]
    assert read_own(save(tmp_path, content, "mine.parquet"), "tag").examples == [
        TaggedExample("0", ("an", "oak"), ("0", "3"))
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "text,label\na,b,c\n", "line 2: 3 fields, the header has 2"),
        ("a.csv", 'text,label\n"a,b\nc,d\n', "line 2: a quote is left open"),
        ("a.csv", 'text,label\n\na "b" c,d\n', "line 3: a quote out of place"),
        ("a.csv", "text,text\na,b\n", "line 1: 2 columns are named 'text'"),
        ("a.csv", 'text;label\n"a;b\nc;d\n', "line 2: a quote is left open"),
        ("a.csv", "text;label\na;b\nc\n", "line 3: 1 fields, the header has 2"),
        ("a.json", '["a", {"text": "b"}]', "item 1: expected an object, found text"),
        ("a.csv", "text,label\n", "no rows in it"),
        ("a.csv", "", "no rows in it"),
        ("a.tsv", "text\tlabel\na\n", "line 2: 1 fields, the header has 2"),
        ("a.jsonl", '{"text": "a"}\n[1]\n', "line 2: expected an object, found a list"),
        ("a.jsonl", '{"text": "a"}\n\n{"text"\n', "line 3: not JSON"),
        ("a.jsonl", '{"text": "\\udc00", "label": "x"}\n', "line 1: holds half a surrogate pair"),
        ("a.jsonl", '{"text": 3, "label": "x"}\n', "line 1: 'text' is not text but a number"),
        ("a.jsonl", '{"text": "a", "label": [1]}', "line 1: 'label' is neither text nor a number"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"label": 2}\n', "line 2: 'text' is empty"),
        ("a.csv", "text,label\n ,b\n", "line 2: 'text' is empty"),
        ("a.txt", "some text\n", "a text a line, without labels; give a table"),
    ],
)
def test_bad_tables(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = save(tmp_path, text, name)
    said = complaint(path, "classify")
    assert said.startswith(str(path))
    assert message in said


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no\.csv: no such file"):
        read_own(tmp_path / "no.csv", "classify")
    with pytest.raises(FileError, match="a folder; name one file"):
        read_own(tmp_path, "classify")


def test_files_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = [{"text": "word " * 20, "label": "a"}]
    monkeypatch.setattr(text_file, "LARGEST_FILE", 100)
    path = save(tmp_path, content, "mine.jsonl")
    assert f"{path}: more than 100 bytes of text" in complaint(path, "classify")
    path = save(tmp_path, content, "mine.parquet")
    assert f"{path}: more than 100 bytes" in complaint(path, "classify")
    path = save(tmp_path, "text,label\n" + "a" * 86 + ",b\n")
    assert path.stat().st_size == 100
    assert len(read_own(path, "classify").examples) == 1


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path, [{"text": "a", "label": "b"}], "mine.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install 'litebert[parquet]'" in complaint(path, "classify")


# Columns


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
        ("classify", "body,label", "no column is obviously the text; there are 'body', 'label'"),
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


# Kinds


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


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "answer_start"]), inner)
    ),
    max_leaves=5,
)
GOOD: dict[str, dict[str, Any]] = {
    "classify": {"id": 1, "text": "fine", "label": "a"},
    "pair": {"premise": "fine", "hypothesis": "good", "label": 1},
    "regress": {"text": "fine", "score": 2.5},
    "tag": {"words": ["an", "oak"], "tags": "O O"},
    "qa": {"question": "?", "context": "ab", "answer": "b", "answer_start": 1, "impossible": 0},
    "choice": {"question": "?", "passage": "x", "options": ["a", "b"], "answer": "A"},
}


@given(st.sampled_from(sorted(KINDS)), st.booleans(), st.data())
def test_any_value_gives_examples_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, kind: str, needed: bool, data: st.DataObject
) -> None:
    row = GOOD[kind]
    damage = data.draw(st.dictionaries(st.sampled_from(sorted(row)), VALUES, max_size=2))
    path = save(tmp_path_factory.getbasetemp(), [row, row | damage], "any.jsonl")
    said = ""
    try:
        assert len(read_own(path, kind, needs_labels=needed).examples) == 2
    except LitebertError as error:
        said = str(error)
    assert said.startswith(str(path)) if said else True
    assert damage or not said

"""The user's own tables: every format, and any value at all, give examples or one sentence."""

from __future__ import annotations

import csv
import gzip
import lzma
import sys
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import zstandard
from hypothesis import given

from litebert.base.errors import FileError, LitebertError
from litebert.tasks.questions import Answer, QuestionExample
from litebert.tasks.readers import text_file
from litebert.tasks.registry import KINDS
from litebert.tasks.tagged import TaggedExample
from litebert.tasks.texts import TextExample
from tests.tasks.own_tables import complaint, read_own, save


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


def test_labels_are_as_they_are_written_but_for_white_space(tmp_path: Path) -> None:
    lines = ['"a "', "1", "1.50", "-2e3", "true", "10000000000000000000000"]
    text = "".join(f'{{"text": "x", "label": {line}}}\n' for line in lines)
    examples = read_own(save(tmp_path, text, "mine.jsonl"), "classify").examples
    labels = [one.label for one in examples if isinstance(one, TextExample)]
    assert labels == ["a", "1", "1.50", "-2e3", "true", "10000000000000000000000"]


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

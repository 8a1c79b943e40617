"""Files of examples as people have them: without header, plain, lists, columns, folders, pipes."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from litebert.base.errors import LitebertError
from litebert.tasks.data import open_data, read_split
from litebert.tasks.readers.text_file import quiet
from litebert.tasks.registry import build_task, find_kind
from litebert.tasks.source import DataSource
from tests.tasks.small import TASKS


def read(
    path: Path | str, kind: str = "classify", columns: Any = (), *, labelled: bool = True,
    say: Any = quiet,
) -> list[Any]:  # fmt: skip
    source = DataSource.build(path, columns=columns)
    assert source.data is not None
    return find_kind(kind).read_file(source.data, source, labelled=labelled, say=say)


def save(path: Path, content: str) -> Path:
    path.write_bytes(content.encode())
    return path


def pairs(examples: list[Any]) -> list[tuple[str, Any]]:
    return [(one.first, one.label) for one in examples]


FILMS = [("a fine film", "pos"), ("two hours too long", "neg"), ("very fine", "pos")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "a fine film,pos\ntwo hours too long,neg\nvery fine,pos\n"),
        ("a.csv", '\ufeff"a fine film","pos"\r\ntwo hours too long,neg\r\nvery fine,pos'),
        ("a.csv", "a fine film;pos\ntwo hours too long;neg\nvery fine;pos\n"),
        ("a.csv", "7,a fine film,pos\n9,two hours too long,neg\n8,very fine,pos\n"),
        ("a.csv", '"pos";7;"a fine film"\nneg;9;two hours too long\npos;8;very fine\n'),
        ("a.tsv", "pos\ta fine film\nneg\ttwo hours too long\npos\tvery fine\n"),
        ("a.tsv", "pos\ta fine film\n\ufeffneg\ttwo hours too long\npos\tvery fine\n"),
        ("a.txt", "pos\ta fine film\nneg\ttwo hours too long\npos\tvery fine\n"),
        ("a", "pos\ta fine film\nneg\ttwo hours too long\npos\tvery fine\n"),
    ],
)
def test_a_table_without_a_header_is_told_and_said(tmp_path: Path, name: str, content: str) -> None:
    said: list[str] = []
    assert pairs(read(save(tmp_path / name, content), say=said.append)) == FILMS
    assert any("no header, so the first line is data" in line for line in said)
    assert any("columns guessed by their content: " in line for line in said)


def test_semicolons_of_spreadsheets(tmp_path: Path) -> None:
    content = '\ufefflabel;text\r\npos;"a ""fine"", long; film"\r\nneg;too long, really\r\n'
    said: list[str] = []
    found = pairs(read(save(tmp_path / "a.csv", content), say=said.append))
    assert found == [('a "fine", long; film', "pos"), ("too long, really", "neg")]
    assert any("semicolons stand between its fields" in line for line in said)


@pytest.mark.parametrize(
    "content",
    ["sep=;\nlabel;text\npos;fine\nneg;dull\n", "pos;fine, long\nneg;dull\npos;short\nneg;flat\n"],
)
def test_semicolons_that_are_told_and_those_beside_commas(tmp_path: Path, content: str) -> None:
    found = pairs(read(save(tmp_path / "a.csv", content)))
    assert [label for _, label in found[:2]] == ["pos", "neg"]
    assert found[1][0] == "dull"


def test_a_text_a_line_in_json(tmp_path: Path) -> None:
    path = save(tmp_path / "a.jsonl", '"a fine film"\n"two hours"\n')
    assert pairs(read(path, labelled=False)) == [("a fine film", None), ("two hours", None)]


def test_a_list_of_texts_is_read_to_predict_for(tmp_path: Path) -> None:
    path = save(tmp_path / "a.json", '["a fine film", "two hours; too long"]')
    found = pairs(read(path, labelled=False))
    assert found == [("a fine film", None), ("two hours; too long", None)]


@pytest.mark.parametrize(
    ("header", "rows", "columns", "count"),
    [
        ("text,label", "x,y\n", (), 1),
        ("body,stars", "fine,4\nbad,1\n", ("text=body", "label=stars"), 2),
        ("text,label", "x,y\n", ("text=0", "label=1"), 1),  # by number, also with a header
        ("7,some,comment", "8,other,remark\n", ("text=1", "label=2"), 2),
        ("comment,this is", "question,is it\ncomment,it is\n", ("text=1", "label=0"), 3),
        (",text,label", "0,x,y\n", (), 1),  # pandas writes its index so
        ("text,label,How would you rate your stay with us on a scale of ten?", "x,y,3\n", (), 1),
    ],
)
def test_which_first_line_is_a_header(
    tmp_path: Path, header: str, rows: str, columns: Any, count: int
) -> None:
    assert len(read(save(tmp_path / "a.csv", f"{header}\n{rows}"), columns=columns)) == count


def test_pairs_and_numbers_without_a_header(tmp_path: Path) -> None:
    path = save(tmp_path / "a.tsv", "a plane\ta jet\t4.5\na man\ta dog\t0.5\n")
    found = [(one.first, one.second, one.label) for one in read(path, "pair")]
    assert found == [("a plane", "a jet", "4.5"), ("a man", "a dog", "0.5")]
    scored = read(path, "regress", ["text_a=0", "text_b=1", "label=2"])
    assert [one.label for one in scored] == [4.5, 0.5]


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        ("a.csv", "1,a title,a text\n2,b title,b text\n", (), "no header, and 3 columns ('1', 'a"),
        ("a.csv", "1,a title\n2,b\n", ("text=7",), "no column '7'; known: 0, 1"),
        ("a.tsv", "1\tgood\n2\n", (), "line 2: 1 fields, the first line has 2"),
        ("a.txt", "a text\n", (), "a text a line, without labels; give a table"),
        (
            "a.json",
            '[{"text": "a", "label": "x"}, 3]',
            (),
            "item 2: expected an object, found a nu",
        ),
        (
            "a.json",
            '[{"text": "a", "label": "x"},\n{"text"]',
            (),
            "not JSON (Expecting ':' delimiter",
        ),
        ("a.json", '{"data": {"text": "a"}}', (), "no column is obviously the text"),
        ("a.conll", "a O\n", (), "columns of words, as `--task tag` reads them"),
        ("a.docx", "PK\x03\x04", (), "not text: it looks like a ZIP archive"),
    ],
)
def test_bad_ones(tmp_path: Path, name: str, content: str, columns: Any, message: str) -> None:
    path = save(tmp_path / name, content)
    with pytest.raises(LitebertError) as error:
        read(path, columns=columns)
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)


ROWS = [{"text": text, "label": label} for text, label in FILMS]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", json.dumps(ROWS)),
        ("a.json", json.dumps(ROWS, indent=2)),
        ("a.json", json.dumps({"version": "1", "data": ROWS})),
        ("a.json", json.dumps({"data": ROWS}, indent=1)),
        ("a.json", "\n".join(map(json.dumps, ROWS))),
        ("a.ndjson", "\n".join(map(json.dumps, ROWS))),
        ("a.jsonl", json.dumps(ROWS)),
        ("lines", "\ufeff" + "\n".join(map(json.dumps, ROWS))),
    ],
)
def test_lists_of_objects(tmp_path: Path, name: str, content: str) -> None:
    assert pairs(read(save(tmp_path / name, content))) == FILMS
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    assert pairs(read(tmp_path / f"{name}.gz")) == FILMS


def test_a_text_a_line(tmp_path: Path) -> None:
    said: list[str] = []
    path = save(tmp_path / "a.txt", "\ufeffa fine film, really\r\n\n too long \n")
    found = read(path, labelled=False, say=said.append)
    assert [(one.first, one.where) for one in found] == [
        ("a fine film, really", f"{path}, line 1"), ("too long", f"{path}, line 3"),
    ]  # fmt: skip
    assert said == [f"{path}: 1 blank lines are left out"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def give(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    give("a fine film\ntoo long\n")
    assert [one.first for one in read("-", labelled=False)] == ["a fine film", "too long"]
    give("pos\ta fine film\nneg\ttoo long\npos\tfine")
    assert len(read("-")) == 3
    give(json.dumps(ROWS))
    assert pairs(read("-")) == FILMS
    give("EU B-ORG\nrejects O\n\nIt O\n")
    assert [one.tags for one in read("-", "tag")] == [("B-ORG", "O"), ("O",)]
    with pytest.raises(LitebertError, match=r"standard input .* can be read once"):
        DataSource.build(train="-", dev="-")


# Columns of words

CONLL = "-DOCSTART- -X- O O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\nPeter NNP I-NP B-PER\n"


@pytest.mark.parametrize("name", ["a.conll", "a.bio", "a.iob", "a.iob2", "a.txt", "a.tsv", "a"])
@pytest.mark.parametrize("separator", [" ", "\t"])
def test_columns_of_words(tmp_path: Path, name: str, separator: str) -> None:
    path = save(tmp_path / name, "\ufeff" + CONLL.replace(" ", separator))
    found = read(path, "tag")
    assert [one.words for one in found] == [("EU", "rejects"), ("Peter",)]
    assert [one.tags for one in found] == [("B-ORG", "O"), ("B-PER",)]
    speech = read(path, "tag", ["tags=1"])
    assert speech[0].tags == ("NNP", "VBZ")


def test_comments_and_other_columns(tmp_path: Path) -> None:
    said: list[str] = []
    text = "# sent_id = 1\n# text = # one\n1\t#\t#\tSYM\n2\tone\tone\tNUM\n\n# x\n1\tso\tso\tADV\n"
    path = save(tmp_path / "a.conll", text)
    found = read(path, "tag", {"words": "1", "tags": "3"}, say=said.append)
    assert [(one.words, one.tags) for one in found] == [
        (("#", "one"), ("SYM", "NUM")), (("so",), ("ADV",)),
    ]  # fmt: skip
    assert said == [f"{path}: 3 lines of comments are left out"]
    tags = save(tmp_path / "b.bio", "#tag O\n# O\nwon O\n")
    assert read(tags, "tag")[0].words == ("#tag", "#", "won")
    with pytest.raises(LitebertError, match="columns of words have no names; give a number"):
        read(path, "tag", ["words=form"])
    with pytest.raises(LitebertError, match="4 columns, numbered from 0; there is no 9"):
        read(path, "tag", ["tags=9"])


def test_sentences_to_be_tagged(tmp_path: Path) -> None:
    path = save(tmp_path / "a.txt", "Angela Merkel visited Paris.\nIt rained (a lot).\n")
    found = read(path, "tag", labelled=False)
    assert found[0].words == ("Angela", "Merkel", "visited", "Paris", ".")
    assert found[1].words == ("It", "rained", "(", "a", "lot", ")", ".")
    words = save(tmp_path / "b.txt", "It\nrained\n\nSo\n")
    assert [one.words for one in read(words, "tag", labelled=False)] == [("It", "rained"), ("So",)]


def test_a_table_of_questions_in_json(tmp_path: Path) -> None:
    row = {"question": "What?", "context": "It's oak.", "answers": {"text": ["oak"]}}
    for content in ([row], {"data": [row]}):
        path = save(tmp_path / "a.json", json.dumps(content))
        assert read(path, "qa")[0].answers[0].start == 5


# Folders


@pytest.mark.parametrize(
    "names",
    [
        ("train.csv", "valid.csv"),
        ("my-train.csv", "my-dev.csv"),
        ("training.csv", "val.csv"),
        ("a.train.csv", "a.validation.csv"),
    ],
)
@pytest.mark.parametrize("option", ["data", "train"])
def test_the_files_of_a_folder(tmp_path: Path, names: tuple[str, str], option: str) -> None:
    said: list[str] = []
    for name, count in zip(names, (4, 2), strict=True):
        rows = "".join(f"text {i},{'ab'[i % 2]}\n" for i in range(count))
        save(tmp_path / name, "text,label\n" + rows)
    save(tmp_path / "README.md", "train and dev")
    found = open_data("classify", DataSource.build(**{option: tmp_path}), said.append)
    assert (len(found.train), len(found.dev["dev"])) == (4, 2)
    assert said[:2] == [f"{tmp_path}: {names[0]} is train", f"{tmp_path}: {names[1]} is dev"]


def test_folders_that_leave_it_open(tmp_path: Path) -> None:
    with pytest.raises(LitebertError, match="no file named train or training"):
        open_data("classify", DataSource.build(train=tmp_path))
    for name in ("train.csv", "train.tsv"):
        save(tmp_path / name, "text,label\na,b\n")
    with pytest.raises(LitebertError, match=r"several files could be train: .train.csv., .train.t"):
        open_data("classify", DataSource.build(train=tmp_path))


def test_conll_2003_calls_its_dev_set_valid(tmp_path: Path) -> None:
    save(tmp_path / "train.txt", CONLL)
    save(tmp_path / "valid.txt", "EU NNP B-NP B-ORG\n")
    found = open_data("ner", DataSource.build(tmp_path))
    assert (len(found.train), len(found.dev["dev"])) == (2, 1)


# Examples that are given themselves


@pytest.mark.parametrize(
    ("kind", "values", "inputs"),
    [
        ("classify", ["a ||| b"], {"text": "a ||| b"}),
        ("classify", [{"review": "a"}], {"text": "a"}),
        ("pair", [("a", "b")], {"text_a": "a", "text_b": "b"}),
        ("pair", ["a ||| b"], {"text_a": "a", "text_b": "b"}),
        ("regress", ["a"], {"text": "a"}),
        ("regress", [["a", "b"]], {"text_a": "a", "text_b": "b"}),
        ("tag", ["So, Paris."], {"words": ("So", ",", "Paris", ".")}),
        ("tag", [["So", "what"]], {"words": ("So", "what")}),
        ("qa", ["Who? ||| It is I."], {"question": "Who?", "passage": "It is I."}),
        (
            "choice",
            [{"question": "Who?", "options": ["I", "you", "they"]}],
            {"question": "Who?", "options": ("I", "you", "they")},
        ),
    ],
)
def test_examples_that_are_given(kind: str, values: list[Any], inputs: dict[str, Any]) -> None:
    task = build_task(TASKS[kind][0])
    (example,) = read_split(task, DataSource.build(values), labelled=False)
    assert task.inputs_of(example) == inputs


def test_texts_alone_cannot_be_scored() -> None:
    with pytest.raises(LitebertError, match="texts alone have no labels; give a dict each"):
        read_split(build_task(TASKS["classify"][0]), DataSource.build(["a"]), labelled=True)


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("classify", [], "no texts are given"),
        ("classify", ["a", " "], "input 2 of 2 is empty"),
        ("classify", ["a", {"text": "b"}], "some are rows and some are not"),
        (
            "pair",
            ["a"],
            "the input is one text; the model compares two: give a pair (a, b), on the",
        ),
        ("pair", ["a ||| b ||| c"], "the input has 3 texts; a pair has two"),
        ("qa", ["a"], 'expected {"question": ..., "passage": ...}, not str'),
        ("choice", ["a"], 'expected {"options": ..., "passage": ..., "question": ...}, not str'),
    ],
)
def test_examples_that_do_not_do(kind: str, values: list[Any], message: str) -> None:
    task = build_task(TASKS[kind][0])
    with pytest.raises(LitebertError) as error:
        read_split(task, DataSource.build(values), labelled=False)
    assert message in str(error.value)

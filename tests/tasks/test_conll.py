"""CoNLL's columns: sentences, separators, WikiANN's prefix, and rows that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from litebert.base.errors import FormatError
from litebert.tasks.readers.conll import read_conll
from litebert.tasks.readers.text_file import Say, quiet
from litebert.tasks.source import DataSource
from litebert.tasks.tagged import TaggedExample
from litebert.tasks.tagging import Tagging

CONLL = """-DOCSTART- -X- -X- O

Ada NNP B-NP B-PER
wrote VBD B-VP O

-DOCSTART- -X- -X- O

Basel  NNP  B-NP  B-LOC
"""


def read(path: Path, *, needs_tags: bool = True, say: Say = quiet) -> list[TaggedExample]:
    return Tagging.read_file(path, DataSource(), labelled=needs_tags, say=say)


def save(folder: Path, text: str) -> Path:
    path = folder / "train.txt"
    path.write_bytes(text.encode())
    return path


def test_words_first_and_tags_last(tmp_path: Path) -> None:
    assert read(save(tmp_path, CONLL)) == [
        TaggedExample("0", ("Ada", "wrote"), ("B-PER", "O")),
        TaggedExample("1", ("Basel",), ("B-LOC",)),
    ]


def test_tabs_and_windows_line_ends_and_a_mark_of_utf_8(tmp_path: Path) -> None:
    text = "\ufeffNew York\tB-LOC\r\n.\u2028\tO\r\n \r\n\r\nend\tO"
    assert read(save(tmp_path, text)) == [
        TaggedExample("0", ("New York", ".\u2028"), ("B-LOC", "O")),
        TaggedExample("1", ("end",), ("O",)),
    ]


def test_a_document_start_ends_a_sentence(tmp_path: Path) -> None:
    text = "one O\n-DOCSTART- O\ntwo O\n"
    assert [one.words for one in read(save(tmp_path, text))] == [("one",), ("two",)]


def test_words_alone_to_be_tagged(tmp_path: Path) -> None:
    path = save(tmp_path, "Ada\nwrote\n\nBasel\n")
    assert read(path, needs_tags=False) == [
        TaggedExample("0", ("Ada", "wrote")),
        TaggedExample("1", ("Basel",)),
    ]
    with pytest.raises(FormatError, match=r"train.txt: one column only"):
        read(path)


def test_the_language_before_every_word_is_removed(tmp_path: Path) -> None:
    said: list[str] = []
    path = save(tmp_path, "en:Ada\tB-PER\nen::\tO\n\nen:en:x\tO\n")
    words = [one.words for one in read(path, say=said.append)]
    assert words == [("Ada", ":"), ("en:x",)]
    assert said == [f"{path}: removed 'en:' from the start of every word"]


@pytest.mark.parametrize("other", ["de:wrote", "wrote", "en:"])
def test_a_language_before_some_words_stays(tmp_path: Path, other: str) -> None:
    said: list[str] = []
    path = save(tmp_path, f"en:Ada\tB-PER\n{other}\tO\n")
    assert read(path, say=said.append)[0].words == ("en:Ada", other)
    assert said == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Ada NNP O\n\nwrote O\n", "line 3: 2 columns, the first row has 3"),
        ("Ada\tO\nwrote\tVBD\tO\n", "line 2: 3 columns, the first row has 2"),
        ("Ada\tO\n\tO\n", "line 2: the word is empty"),
        ("Ada\tO\nwrote\t\n", "line 2: the tag is empty"),
        ("\n-DOCSTART- O\n\n", "no sentence in it"),
        ("", "no sentence in it"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = save(tmp_path, text)
    with pytest.raises(FormatError) as error:
        read(path)
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("split", "sentences", "words"),
    [("train", 20_000, 160_394), ("dev", 10_000, 80_536), ("test", 10_000, 80_326)],
)
def test_published_sizes(real_data: Path, split: str, sentences: int, words: int) -> None:
    said: list[str] = []
    examples = read_conll(real_data / "ner" / "WikiANN" / "en" / split, say=said.append)
    assert len(examples) == sentences
    assert sum(len(one.words) for one in examples) == words
    assert len(said) == 1
    tags = {tag for one in examples for tag in one.tags or ()}
    kinds = ("PER", "ORG", "LOC")
    assert tags == {"O", *(f"{start}-{kind}" for start in "BI" for kind in kinds)}

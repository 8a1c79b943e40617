"""Markup found and stripped; WikiExtractor's files, lists of JSON and tables without a header."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from litebert.base.errors import FormatError
from litebert.reading.chunks import ReadSettings, split_chunks
from litebert.reading.markup import find_markup, strip_markup
from litebert.reading.records import Skipped, read_documents
from litebert.reading.remarks import remarks_on
from litebert.reading.sources import find_sources


def documents(path: Path, chunk_bytes: int = 2**20, **options: Any) -> list[str | None]:
    settings = ReadSettings.build(options, "test")
    return [
        document.text
        for source in find_sources([str(path)], settings.format)
        for chunk in split_chunks(source, settings, chunk_bytes)
        for document in read_documents(chunk, settings, Skipped())
    ]


def said(path: Path, **options: Any) -> list[str]:
    settings = ReadSettings.build(options, "test")
    return list(remarks_on(find_sources([str(path)], settings.format), settings))


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("a [[political philosophy|philosophy]] and a [[link]]", "a philosophy and a link"),
        ("It&nbsp;is &amp; was", "It is & was"),
        ("one<br/>two<BR>three", "one\ntwo\nthree"),
        ('so<ref name="x">a {{cite web}}</ref> it<ref name="y"/> is', "so it is"),
        ("an &lt;ref&gt;escaped&lt;/ref&gt; one &lt;br&gt;", "an one"),
        ("{{Infobox | a = {{small}} }}text", "text"),
        ("[[File:a.jpg|thumb|A [[link]] in it]]text", "text"),
        ("'''bold''' [http://a.b a link] &lt;!-- x --&gt;", "bold a link"),
        ("== History ==\n[[a]]", "History\na"),
        ("<div class='x'>in a <span>box</span></div>", "in a box"),
        ("a < b, <s>, <x@y.org>, [1], [CLS], AT&T, 'so'", None),
        ("if a<b and c>d then", None),
    ],
)
def test_markup(text: str, stripped: str | None) -> None:
    assert strip_markup(text) == (text if stripped is None else stripped)
    assert bool(find_markup(text)) == (stripped is not None)
    assert not find_markup(strip_markup(text))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a<ref name=x/>b<ref>c</ref>d", "abd"),
        ("a<REF name='x'>b</ref >c</ref>d", "acd"),
        ("a<ref>b<math>c</ref>d</math>e", "ade"),
        ("a<!-- b -->c<!-- d", "ac<!-- d"),
        ("a<ref>" + "b" * 30_000 + "</ref>c", "a" + "b" * 30_000 + "c"),
        ("a<!--" + "b" * 30_000 + "-->c<!--d-->e", "a<!--" + "b" * 30_000 + "-->ce"),
    ],
)
def test_elements_go_with_what_they_hold(text: str, left: str) -> None:
    assert strip_markup(text) == left


def test_a_text_of_opening_tags_takes_no_time() -> None:
    assert strip_markup("<ref>" * 20_000) == ""
    strip_markup("[[" * 20_000 + "{{" * 20_000 + "<!--" * 1000)


WIKI = """<doc id="12" url="https://x?curid=12" title="Anarchism &amp; co">
Anarchism & co

Anarchism is a [[philosophy]].

History&nbsp;of it.
</doc>
<doc id="13" url="u" title="B">
B

Second one.
</doc>
"""


@pytest.mark.parametrize("name", ["wiki_00", "wiki_00.txt", "wiki_00.gz"])
@pytest.mark.parametrize("chunk_bytes", [1, 40, 2**20])
def test_wikiextractor(tmp_path: Path, name: str, chunk_bytes: int) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(WIKI.encode()) if name.endswith("gz") else WIKI.encode())
    expected = ["Anarchism is a philosophy.\n\nHistory of it.", "Second one."]
    assert documents(path, chunk_bytes) == expected
    (remark,) = said(path)
    assert "WikiExtractor's format; its tags" in remark


def test_wikiextractor_with_json(tmp_path: Path) -> None:
    path = tmp_path / "wiki_00"
    path.write_text(json.dumps({"id": "1", "url": "u", "title": "B", "text": "So."}) + "\n")
    assert documents(path) == ["So."]


def test_markup_elsewhere_is_warned_about_and_stripped_on_request(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("A [[link]] here.\n\nAnd&nbsp;there.\n\nNothing.\n")
    (warning,) = said(path)
    assert warning == (
        "warning: 2 of the first 3 documents hold wiki or HTML markup (`[[link]]`, `&nbsp;`); "
        "--strip-markup takes it out"
    )
    assert documents(path) == ["A [[link]] here.", "And&nbsp;there.", "Nothing."]
    assert documents(path, strip_markup=True) == ["A link here.", "And there.", "Nothing."]
    assert said(path, strip_markup=True) == []


ITEMS = [{"text": "one, [two]"}, {"id": 3, "text": 'a "quote"\nand a line'}, {"text": "é"}]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("whole", [ITEMS, {"version": "1.0", "data": ITEMS}, {"data": ITEMS}])
@pytest.mark.parametrize("chunk_bytes", [1, 2**20])
def test_lists_of_json(tmp_path: Path, whole: Any, indent: int | None, chunk_bytes: int) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(whole, indent=indent).encode())
    assert documents(path, chunk_bytes) == [item["text"] for item in ITEMS]


def test_an_empty_list(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[ ]")
    assert documents(tmp_path / "a.json") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"text": "a"}, {"text": "b', "item 2: not JSON (Unterminated string"),
        ('[{"text": "a"} {"text": "b"}]', "item 1: not JSON (neither a comma nor the end"),
        ('[{"text": "a"}, {"no": 1}]', "line 2 (byte 14): no field 'text'"),
    ],
)
def test_bad_lists(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(FormatError) as error:
        documents(tmp_path / "a.json")
    assert str(error.value).startswith(str(tmp_path / "a.json"))
    assert message in str(error.value)


def test_semicolons_and_lists_of_texts_as_tasks_read_them(tmp_path: Path) -> None:
    table, texts, lines = (tmp_path / name for name in ("a.csv", "b.json", "c.jsonl"))
    table.write_text('Text;Label\nfine, long;1\n"a; b";0\n')
    texts.write_text('["one", "two [3]"]')
    lines.write_text('"one"\n"two"\n')
    for chunk_bytes in (1, 2**20):
        assert documents(table, chunk_bytes, field="Text") == ["fine, long", "a; b"]
        assert documents(texts, chunk_bytes) == ["one", "two [3]"]
        assert documents(lines, chunk_bytes) == ["one", "two"]


@pytest.mark.parametrize("start", ["sep=;\n", "\ufeffSEP=;\r\n"])
def test_a_line_that_says_what_stands_between_fields(start: str, tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    for chunk_bytes in (1, 2**20):
        table.write_text(f"{start}text;label\na, b;1\nc, d;0\n", newline="")
        assert documents(table, chunk_bytes, field="text") == ["a, b", "c, d"]
        table.write_text(f"{start}3;one, two\n4;three\n", newline="")
        assert documents(table, chunk_bytes, field="1") == ["one, two", "three"]
    table.write_text(f'{start}text;label\nfine;1\n"open;1\n')
    with pytest.raises(FormatError, match="line 4"):
        documents(table, field="text")


def test_columns_by_number(tmp_path: Path) -> None:
    long = "A text that is as long as texts are, and no name of a column."
    for suffix, between in ((".csv", ","), (".tsv", "\t")):
        path = tmp_path / f"a{suffix}"
        path.write_text(f"3{between}{long.replace(',', ';')}\n4{between}b\n")
        assert documents(path, field="1") == [long.replace(",", ";"), "b"]
        assert said(path, field="1")[0].startswith(f"{path}: no header, so its first line is text")
        path.write_text(f"n{between}body\n4{between}b\n")
        assert documents(path, field="1") == documents(path, field="body") == ["b"]
        with pytest.raises(FormatError, match=r"no column .text.; .* or --field NUMBER from 0"):
            documents(path)
        with pytest.raises(FormatError, match=r"no column .7."):
            documents(path, field="7")


def test_marks_of_utf_8_within_joined_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\ufeffone\n\n\ufefftwo\n")
    assert documents(tmp_path / "a.txt") == ["one", "two"]

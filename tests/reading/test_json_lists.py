"""A list in JSON or an object a line: neither is silently read as the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from litebert.base.errors import LitebertError
from litebert.reading.json_list import is_json_list
from litebert.reading.sources import find_sources
from litebert.reading.tables import parse_header

TAGGED = {"text": "The ferry is late.", "data": ["tag one", "tag two"]}


@pytest.mark.parametrize(
    ("content", "is_list"),
    [
        (json.dumps(["One.", "Two."]), True),
        (json.dumps([{"text": "One."}], indent=1), True),
        (json.dumps({"version": "1", "data": [{"text": "One."}]}, indent=1), True),
        (json.dumps(["One.", "Two."]) + "\n" + json.dumps(["Three."]), False),
        (json.dumps(TAGGED) + "\n" + json.dumps(TAGGED), False),
        (json.dumps({"data": ["One."]}) + "\n\n" + json.dumps({"data": ["Two."]}), False),
    ],
)
def test_what_goes_on_after_a_whole_line_is_no_list(content: str, is_list: bool) -> None:
    assert is_json_list(content.encode()) == is_list


def test_objects_a_line_keep_their_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text((json.dumps(TAGGED) + "\n") * 3)
    (source,) = find_sources([str(path)])
    assert source.format == "jsonl"


@pytest.mark.parametrize("end", ["", "}"])
def test_a_line_after_a_list_is_an_error(end: str, tmp_path: Path) -> None:
    from litebert.reading.json_list import json_items
    from litebert.reading.streams import open_stream

    start = '{"data": ' if end else ""
    path = tmp_path / "a.json"
    path.write_text(f'{start}["One.", "Two."]{end}\n')
    assert len(list(json_items(open_stream(str(path))))) == 2
    path.write_text(f'{start}["One.",\n "Two."]{end}\n["Three."]\n')
    with pytest.raises(LitebertError, match="after the list of 2 items comes another line"):
        list(json_items(open_stream(str(path))))


def test_a_semicolon_in_the_first_text_is_no_separator() -> None:
    rest = b"Bad\nNot so good\nFine; really\nGood\n"
    header = parse_header("t.csv", b"Great film; loved it\n", "csv", "0", rest)
    assert (header.comma, header.columns) == (",", ("0",))
    spread = parse_header("t.csv", b"7;Great film\n", "csv", "1", b"8;Bad\n9;Good\n")
    assert (spread.comma, spread.columns) == (";", ("0", "1"))

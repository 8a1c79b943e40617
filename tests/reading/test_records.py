"""Reading chunks back: the same documents as a plain reader finds, however the input is cut."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import hypothesis.strategies as st
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings

from litebert.reading import boundaries, decoders
from tests.reading.whole_inputs import COMPRESSORS, read, texts


@contextmanager
def small_buffers(size: int) -> Iterator[None]:
    """Pieces of a few bytes, so that everything falls on an edge sooner or later."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boundaries, "_SCAN", size)
        patch.setattr(decoders, "BUFFER_BYTES", size)
        patch.setattr(decoders, "_INPUT", size)
        patch.setattr(decoders, "_ZSTD_INPUT", size)
        yield


# A plain reader: everything in memory, one line after another.


def plain_documents(content: bytes, as_sentences: bool) -> list[str | list[str]]:
    documents: list[list[str]] = [[]]
    for line in content.decode("utf-8-sig").split("\n"):
        if line.strip(" \t\r\f\v"):
            documents[-1].append(line.removesuffix("\r"))
        else:
            documents.append([])
    if as_sentences:
        stripped = [[line.strip() for line in lines if line.strip()] for lines in documents]
        return [lines for lines in stripped if lines]
    return [text for lines in documents if (text := "\n".join(lines).strip())]


def plain_rows(content: bytes, format: str) -> list[str]:
    quoting: dict[str, object] = {"quoting": csv.QUOTE_NONE, "delimiter": "\t"}
    lines = io.StringIO(content.decode("utf-8-sig"), newline="")
    rows = csv.DictReader(lines, **(quoting if format == "tsv" else {}))  # pyright: ignore
    return [text for row in rows if (text := row["text"].replace("\r\n", "\n").strip())]


WORDS = st.text(st.sampled_from("ab é한\U0001f600\u3000\u2028"), max_size=6)
LINES = st.one_of(WORDS, st.sampled_from(["", "", " ", "\t", "\r"]))
LINE_ENDS = st.sampled_from(["\n", "\r\n"])
CELLS = st.text(st.sampled_from("ab,\"\n한;' "), max_size=6)
CHUNK_BYTES = st.integers(1, 60)
SUFFIXES = st.sampled_from(list(COMPRESSORS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sources")


def check(
    folder: Path, name: str, content: bytes, expected: object, chunk_bytes: int, **options: str
) -> None:
    """A file, its compressed copies and a pipe all give what the plain reader gave."""
    for suffix, compress in COMPRESSORS.items():
        path = folder / (name + suffix)
        path.write_bytes(compress(content))
        with small_buffers(1 + chunk_bytes % 5):
            documents, skipped = read(path, chunk_bytes, **options)
        assert texts(documents) == expected
        assert not skipped.messages
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        documents, _ = read("-", chunk_bytes, **{"format": path.suffixes[0][1:], **options})
    assert texts(documents) == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(LINES, max_size=12), LINE_ENDS, st.booleans(), st.booleans(), CHUNK_BYTES)
def test_blank_lines_end_documents(
    folder: Path, lines: list[str], line_end: str, bom: bool, as_sentences: bool, chunk_bytes: int
) -> None:
    content = ("\ufeff" if bom else "").encode() + line_end.join(lines).encode()
    format = "sentences" if as_sentences else "paragraphs"
    expected = plain_documents(content, as_sentences)
    check(folder, "a.txt", content, expected, chunk_bytes, format=format)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(WORDS, st.lists(WORDS, max_size=3), st.none()), max_size=8),
    LINE_ENDS, st.booleans(), st.booleans(), CHUNK_BYTES,
)  # fmt: skip
def test_jsonl(
    folder: Path, values: list[object], line_end: str, ascii: bool, last: bool, chunk_bytes: int
) -> None:
    lines = [  # None stands for a blank line
        "" if value is None else json.dumps({"id": 1, "text": value}, ensure_ascii=ascii)
        for value in values
    ]
    content = (line_end.join(lines) + (line_end if last else "")).encode()
    expected: list[object] = []
    for value in values:
        if isinstance(value, str) and value.strip():
            expected.append(value.strip())
        if isinstance(value, list) and "".join(value).strip():
            expected.append([one.strip() for one in value if one.strip()])
    check(folder, "a.jsonl", content, expected, chunk_bytes)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), max_size=8), LINE_ENDS, st.booleans(), CHUNK_BYTES)
def test_csv(
    folder: Path, rows: list[tuple[str, str]], line_end: str, bom: bool, chunk_bytes: int
) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=line_end).writerows([("a\nname", "text"), *rows])
    content = out.getvalue().encode("utf-8-sig" if bom else "utf-8")
    check(folder, "a.csv", content, plain_rows(content, "csv"), chunk_bytes)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), max_size=8), LINE_ENDS, CHUNK_BYTES)
def test_tsv(folder: Path, rows: list[tuple[str, str]], line_end: str, chunk_bytes: int) -> None:
    lines = ["text\tid", *("\t".join(row).replace("\n", " ") for row in rows)]
    content = line_end.join(lines).encode()
    expected = [text for line in lines[1:] if (text := line.split("\t")[0].strip())]
    check(folder, "a.tsv", content, expected, chunk_bytes)


@settings(max_examples=20, deadline=None)
@given(WORDS, CHUNK_BYTES)
def test_a_whole_file_is_a_document(folder: Path, text: str, chunk_bytes: int) -> None:
    content = f"{text}\n\n{text}".encode()
    check(folder, "a.txt", content, [content.decode().strip()] if text.strip() else [],
          chunk_bytes, format="file")  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(st.lists(st.one_of(WORDS, st.lists(WORDS, max_size=2)), max_size=9), st.integers(1, 4),
       st.sampled_from([1, 200, 10_000]))  # fmt: skip
def test_parquet(folder: Path, values: list[str | list[str]], rows: int, chunk_bytes: int) -> None:
    for kind in (str, list):
        cells = [value for value in values if isinstance(value, kind)]
        inner = pyarrow.string() if kind is str else pyarrow.list_(pyarrow.string())
        table = pyarrow.table({"id": range(len(cells)), "text": pyarrow.array(cells, inner)})
        pyarrow.parquet.write_table(table, folder / "a.parquet", row_group_size=rows)
        documents, skipped = read(folder / "a.parquet", chunk_bytes)
        stripped = [
            cell.strip() if isinstance(cell, str) else [one.strip() for one in cell if one.strip()]
            for cell in cells
        ]
        assert texts(documents) == [one for one in stripped if one]
        assert skipped.counts.get("empty document", 0) == len(cells) - len(documents)

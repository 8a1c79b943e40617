"""Finding and boundaries sources: order, formats, the same chunks for the same content."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import re
import sys
import threading
import zipfile
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy
import pytest
import zstandard
from hypothesis import given, settings

from litebert.base.errors import FileError, FormatError, MissingExtraError, SettingsError
from litebert.reading.chunks import ReadSettings, check_source, split_chunks
from litebert.reading.records import Skipped, read_documents
from litebert.reading.sources import Source, find_sources

AUTO = ReadSettings()


def write(path: Path, content: bytes = b"words\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def names(inputs: list[str], format: str = "auto") -> list[str]:
    return [source.name for source in find_sources(inputs, format)]


def texts(source: Source, reading: ReadSettings = AUTO, chunk_bytes: int = 2**24) -> list[object]:
    return [
        document.text or document.sentences
        for chunk in split_chunks(source, reading, chunk_bytes)
        for document in read_documents(chunk, reading, Skipped())
    ]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a little of everything, which is also where we are."""
    for name in ("b/c.txt", "b-/d.jsonl.gz", "b.csv", "Z", "a.parquet", "c.TXT.XZ", "x/y/z.text"):
        write(tmp_path / "in" / name)
    for name in (".hidden.txt", ".git/e.txt", "picture.png", "notes.md", "a.txt.bz2"):
        write(tmp_path / "in" / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_is_read_in_the_order_of_its_paths(tree: Path) -> None:
    expected = ["Z", "a.parquet", "b/c.txt", "b-/d.jsonl.gz", "b.csv", "c.TXT.XZ", "x/y/z.text"]
    assert names(["in"]) == [f"in/{name}" for name in expected]
    assert names([str(tree / "in")]) == [f"{tree}/in/{name}" for name in expected]
    sources = find_sources(["in"])
    assert [source.number for source in sources] == list(range(7))
    assert [source.format for source in sources] == [
        "paragraphs", "parquet", "paragraphs", "jsonl", "csv", "paragraphs", "paragraphs",
    ]  # fmt: skip
    assert sources[0].size == 6


def test_a_format_that_is_set_chooses_the_files_of_a_folder(tree: Path) -> None:
    assert names(["in"], "jsonl") == ["in/b-/d.jsonl.gz"]
    assert names(["in"], "sentences") == ["in/Z", "in/b/c.txt", "in/c.TXT.XZ", "in/x/y/z.text"]
    with pytest.raises(FileError, match=r"in/x: no readable file for format 'csv'"):
        names(["in/x"], "csv")


def test_files_are_read_whatever_their_extension(tree: Path) -> None:
    [notes, hidden] = find_sources(["in/notes.md", "in/.hidden.txt"])
    assert (notes.format, hidden.format) == ("paragraphs", "paragraphs")
    [table] = find_sources(["in/notes.md"], "csv")
    assert table.format == "csv"


def test_globs(tree: Path) -> None:
    assert names(["in/*.csv", "in/b/*"]) == ["in/b.csv", "in/b/c.txt"]
    assert names(["in/**/*.text"]) == ["in/x/y/z.text"]
    assert len(names(["in/**"])) == 10
    write(tree / "in/odd[1].txt")
    assert names(["in/odd[1].txt"]) == ["in/odd[1].txt"]
    with pytest.raises(FileError, match=re.escape("in/*.xml: no file matches this pattern")):
        names(["in/*.xml"])


def test_the_order_of_arguments_is_kept(tree: Path) -> None:
    assert names(["in/x", "-", "in/Z", "hf:a/b:train@c"]) == [
        "in/x/y/z.text", "-", "in/Z", "hf:a/b:train@c",
    ]  # fmt: skip


@pytest.mark.parametrize("twice", [["in", "in/b/../Z"], ["-", "-"], ["in/Z", "./in/Z"]])
def test_a_file_named_twice(tree: Path, twice: list[str]) -> None:
    with pytest.raises(SettingsError, match="given twice"):
        names(twice)


def test_inputs_that_are_not_there(tree: Path) -> None:
    (tree / "void").mkdir()
    for inputs, message in (
        (["in/nothing.txt"], "in/nothing.txt: no such file or folder"),
        (["void"], "void: no readable file in this folder"),
        ([], "no input"),
        (["hf:"], "name a dataset"),
    ):
        with pytest.raises((FileError, SettingsError), match=message):
            names(inputs)
    with pytest.raises(SettingsError, match="standard input cannot be read as parquet"):
        names(["-"], "parquet")
    write(tree / "a.parquet.gz")
    with pytest.raises(FormatError, match="decompress it first"):
        names(["a.parquet.gz"])


def test_a_source_that_is_removed_in_between(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt")
    [source] = find_sources([str(path)])
    path.unlink()
    with pytest.raises(FileError, match="no such file"):
        list(split_chunks(source, AUTO))


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.tsv", "a.txt.gz", "a.csv.xz"])
def test_an_empty_file_has_no_units(tmp_path: Path, name: str) -> None:
    [source] = find_sources([str(write(tmp_path / name, b""))])
    check_source(source, AUTO)
    assert list(split_chunks(source, AUTO)) == []
    write(tmp_path / name, gzip.compress(b"", mtime=0) if name.endswith("gz") else b"")
    assert list(split_chunks(source, AUTO)) == []


def test_a_table_with_nothing_but_a_header_has_no_units(tmp_path: Path) -> None:
    [source] = find_sources([str(write(tmp_path / "a.csv", b"text"))])
    assert list(split_chunks(source, AUTO)) == []


def test_unit_bytes_must_be_positive(tmp_path: Path) -> None:
    [source] = find_sources([str(write(tmp_path / "a.txt"))])
    with pytest.raises(SettingsError, match="chunk_bytes = 0"):
        list(split_chunks(source, AUTO, 0))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["a,b", "a,b", "", " ", '"a\n\nb",c', "ab"]), max_size=30),
    st.sampled_from(["paragraphs", "jsonl", "csv", "tsv", "file"]),
    st.integers(1, 40),
)
def test_a_file_and_its_compressed_copy_are_cut_alike(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], format: str, chunk_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    content = "\n".join(["text,id\ttext", *lines]).encode()
    reading = ReadSettings(format=format, field="id\ttext" if format == "csv" else "text")  # pyright: ignore
    write(folder / "a", content)
    write(folder / "a.gz", gzip.compress(content, mtime=0))
    plain, packed = find_sources([str(folder / "a"), str(folder / "a.gz")], format)
    ranges = [
        (chunk.first_byte, chunk.end_byte) for chunk in split_chunks(plain, reading, chunk_bytes)
    ]
    chunks = list(split_chunks(packed, reading, chunk_bytes))
    assert [(chunk.first_byte, chunk.end_byte) for chunk in chunks] == ranges
    assert all(chunk.text == content[chunk.first_byte : chunk.end_byte] for chunk in chunks)
    assert all(chunk.first_line == 1 + content[: chunk.first_byte].count(b"\n") for chunk in chunks)
    assert [chunk.number for chunk in chunks] == list(range(len(chunks)))
    assert all(left[1] == right[0] for left, right in pairwise(ranges))
    if format in ("jsonl", "tsv"):  # a boundary is never far
        assert all(stop - start <= 2 * chunk_bytes + 20 for start, stop in ranges)


def test_progress_ends_at_the_size_of_the_file(tmp_path: Path) -> None:
    content = b"".join(b"line %d\n\n" % number for number in range(1000))
    write(tmp_path / "a.txt", content)
    write(tmp_path / "b.txt.gz", gzip.compress(content, mtime=0))
    write(tmp_path / "c.txt.zst", zstandard.compress(content))
    for source in find_sources([str(tmp_path)]):
        consumed = [chunk.consumed for chunk in split_chunks(source, AUTO, 1000)]
        assert len(consumed) == 10
        assert consumed == sorted(consumed)
        assert consumed[-1] == source.size


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", "words")
    return out.getvalue()


def array() -> bytes:
    out = io.BytesIO()
    numpy.save(out, numpy.arange(3))
    return out.getvalue()


BINARIES = {
    "gzip": (gzip.compress(b"words", mtime=0), "it looks like gzip data"),
    "bzip2": (bz2.compress(b"words"), "it looks like bzip2 data"),
    "zip": (zipped(), "it looks like a ZIP archive"),
    "png": (b"\x89PNG\r\n\x1a\n\0\0", "it looks like a PNG image"),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3", "it looks like a PDF document"),
    "sqlite": (b"SQLite format 3\0\x10", "it looks like an SQLite database"),
    "array": (array(), "it looks like a NumPy array"),
    "utf-16": ("words".encode("utf-16"), "UTF-16 text, not UTF-8"),
    "utf-32": ("words".encode("utf-32"), "UTF-32 text, not UTF-8"),
    "utf-16, unmarked": ("words".encode("utf-16-le"), "a NUL byte at byte 1 says binary data"),
}


@pytest.mark.parametrize("name", BINARIES)
@pytest.mark.parametrize("file", ["a.txt", "a.jsonl", "a.csv", "a.txt.xz"])
def test_binary_files_are_named(tmp_path: Path, name: str, file: str) -> None:
    content, message = BINARIES[name]
    path = write(tmp_path / file, content)
    if file.endswith("xz"):
        path = write(tmp_path / "a.txt.zst", zstandard.compress(content))
    skip = ReadSettings(on_error="skip")
    [source] = find_sources([str(path)])
    for look in (check_source, lambda *given: next(split_chunks(*given))):
        with pytest.raises(FormatError, match=message) as caught:
            look(source, skip)
        assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.gz", b"plain words", "named .gz, but it looks like uncompressed data"),
        ("a.xz", gzip.compress(b"words", mtime=0), "named .xz, but it looks like gzip data"),
        ("a.csv", b"id,body\n1,a\n", "no column 'text'; there are 'id', 'body' (choose with"),
        ("a.csv", b"text,text\n", "two columns are named 'text'"),
        ("a.csv", b'id,"text\n1,a\n', "line 1: the header has a quote inside a field"),
        ("a.csv", b"text," + b"a" * 2**21, "line 1: the header is longer than 1 MiB"),
        ("a.tsv", b"text,id\n1,a\n", "no column 'text'; there are 'text,id'"),
        ("a.tsv", b"t\xff\n", "line 1 (byte 1): not valid UTF-8"),
        ("a.csv", b"x," * 99_999, "and 99,988 more"),
    ],
)
def test_files_that_are_not_what_they_should_be(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = write(tmp_path / name, content)
    skip = ReadSettings(on_error="skip")
    [source] = find_sources([str(path)])
    for look in (check_source, lambda *given: next(split_chunks(*given))):
        with pytest.raises(FormatError, match=re.escape(message)) as caught:
            look(source, skip)
        assert len(str(caught.value)) < 600


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"one\n\ntwo\nthree")))
    [source] = find_sources(["-"])
    assert (source.format, source.size) == ("paragraphs", None)
    assert texts(source, chunk_bytes=1) == ["one", "two\nthree"]


def test_a_named_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    [source] = find_sources([str(pipe)])
    check_source(source, AUTO)  # must not swallow anything
    feeder = threading.Thread(target=pipe.write_bytes, args=(b'{"text": "a"}\n{"text": "b"}\n',))
    feeder.start()
    assert texts(source, chunk_bytes=1) == ["a", "b"]
    feeder.join()


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        ("zstandard", "a.txt.zst", r"reading .zst files needs .* 'litebert\[zstd\]'"),
        ("pyarrow", "a.parquet", r"reading Parquet files needs .* 'litebert\[parquet\]'"),
        ("datasets", "hf:words", r"reading Hugging Face datasets needs .* 'litebert\[datasets\]'"),
    ],
)
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="zstd is in the standard library")
def test_missing_extras(
    tree: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str, message: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    if not name.startswith("hf:"):
        write(tree / name, zstandard.compress(b"words"))
    [source] = find_sources([name])
    with pytest.raises(MissingExtraError, match=message):
        list(split_chunks(source, AUTO))


class TestDatasets:
    """A local folder stands for the hub: nothing here needs the network."""

    @pytest.fixture(autouse=True)
    def offline(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        datasets = pytest.importorskip("datasets")
        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
        datasets.disable_progress_bars()

    def test_a_folder_of_files(self, tmp_path: Path) -> None:
        values = ["one é", ["two", "three"], " "]
        lines = [json.dumps({"id": 1, "text": [v] if isinstance(v, str) else v}) for v in values]
        write(tmp_path / "words/train.jsonl", "\n".join(lines).encode())
        [source] = find_sources([f"hf:{tmp_path}/words:train"])
        assert (source.format, source.size) == ("jsonl", None)
        assert texts(source, chunk_bytes=1) == [["one é"], ["two", "three"]]
        with pytest.raises(FormatError, match="no column 'body'; there are 'id', 'text'"):
            list(split_chunks(source, ReadSettings(field="body")))
        [wrong] = find_sources([f"hf:{tmp_path}/words:test"])
        with pytest.raises(FileError, match="cannot be read as a dataset"):
            list(split_chunks(wrong, AUTO))

    def test_a_saved_dataset(self, tmp_path: Path) -> None:
        import datasets

        saved = datasets.Dataset.from_dict({"text": ["one\ntwo", "three"], "id": [1, 2]})
        saved.save_to_disk(tmp_path / "saved")
        datasets.DatasetDict(dev=saved).save_to_disk(tmp_path / "split")
        for name in ("saved", "split:dev"):
            [source] = find_sources([f"hf:{tmp_path}/{name}"])
            assert texts(source) == ["one\ntwo", "three"]

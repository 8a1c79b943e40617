"""Bad records, archives and files: refused with line and byte, or skipped and counted."""

from __future__ import annotations

import gzip
import json
import random
import tracemalloc
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from litebert.base.errors import FileError, FormatError
from litebert.reading import boundaries, records
from litebert.reading.chunks import ReadSettings, split_chunks
from litebert.reading.records import Skipped, read_documents
from litebert.reading.sources import find_sources
from tests.reading.whole_inputs import COMPRESSORS, MIB, read, texts


def refusal(path: Path, chunk_bytes: int = 16 * MIB, **options: str) -> str:
    with pytest.raises(FileError) as caught:
        read(path, chunk_bytes, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(COMPRESSORS[path.suffix if path.suffix in COMPRESSORS else ""](content))
    return path


BAD_LINES = {
    b"not json": "not JSON (Expecting value at character 0)",
    b'{"text": "a"': "not JSON",
    b'{"text": "a"} {"text": "b"}': "not JSON (more than one value at character 13)",
    b"[" * 99_999: "not JSON",
    b'{"text": ' + b"1" * 9999 + b"}": "not JSON",
    b"[1, 2]": "not a JSON object but a list",
    b"12": "not a JSON object but a number",
    b'{"title": "a", "body": "b"}': "no field 'text'; there are 'title', 'body'",
    b"{}": "no field 'text'; there are none",
    b'{"text": 5}': "field 'text' is not text but a number",
    b'{"text": null}': "field 'text' is not text but null",
    b'{"text": ["a", 1]}': "field 'text' is not text but a list",
    b'{"text": "\\ud800 half"}': "half a surrogate pair",
    b'{"text": ["a", "\\uDC01"]}': "half a surrogate pair",
    b'{"text": "\xff"}': "not valid UTF-8 (0xff)",
    b'{"text": "\0"}': "a NUL byte",
}


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: line[:20].decode(errors="replace"))
def test_a_bad_json_line(tmp_path: Path, line: bytes, suffix: str) -> None:
    good = b'{"text": "' + b"good " * 1000 + b'"}\n'  # the bad line is not in the file's head
    path = write(tmp_path / f"a.jsonl{suffix}", good * 2 + line + b"\n" + good)
    for chunk_bytes in (1, 16 * MIB):
        message = refusal(path, chunk_bytes)
        assert BAD_LINES[line] in message
        assert ", line 3 (byte 10,0" in message
        documents, skipped = read(path, chunk_bytes, on_error="skip")
        assert len(documents) == 3
        assert sum(skipped.counts.values()) == 1
        assert all(", line 3" in text for text in skipped.messages.values())


def test_whole_surrogate_pairs_are_characters(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'{"text": "\\ud83d\\ude00"}')
    assert texts(read(path)[0]) == ["\U0001f600"]


@pytest.mark.parametrize("format", ["paragraphs", "sentences", "file"])
@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_invalid_utf8_says_line_and_byte(tmp_path: Path, suffix: str, format: str) -> None:
    path = write(tmp_path / f"a.txt{suffix}", b"one\n\ntwo\nth\xe9ree\n\nfour\n")
    for chunk_bytes in (1, 100):
        message = refusal(path, chunk_bytes, format=format)
        assert "line 4 (byte 11): not valid UTF-8 (0xe9)" in message
        documents, skipped = read(path, chunk_bytes, format=format, on_error="skip")
        assert len(documents) == (0 if format == "file" else 2)
        assert skipped.counts == {"not valid UTF-8": 1}


def test_line_numbers_of_far_units_are_left_out_when_skipping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "_CHEAP_TO_COUNT", 2)
    path = write(tmp_path / "a.txt", b"one\n\ntwo\n\n\xff\n")
    _, skipped = read(path, 1, on_error="skip")
    assert skipped.messages["not valid UTF-8"].startswith(f"{path}, byte 10:")


BAD_ROWS = {
    b"1": "wrong number of fields: 1, the header 2",
    b"1,2,3": "wrong number of fields: 3",
    b'5" pipe,a "b" c': "a quote is left open",
    b'a "b" c,1': "a quote out of place",
    b'1,"a"b': "a quote out of place",
    b'1,"open': "a quote is left open",
}


@pytest.mark.parametrize("row", BAD_ROWS, ids=bytes.decode)
def test_a_bad_csv_row(tmp_path: Path, row: bytes) -> None:
    path = write(tmp_path / "a.csv", b'text,id\n"two\nlines",1\n' + row + b"\n")
    for chunk_bytes in (1, 100):
        assert BAD_ROWS[row] in refusal(path, chunk_bytes)
        assert ", line 4 (byte 22)" in refusal(path, chunk_bytes)
        documents, skipped = read(path, chunk_bytes, on_error="skip")
        assert texts(documents) == ["two\nlines"]
        assert sum(skipped.counts.values()) == 1


def test_a_bad_tsv_row(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", b'text\tid\n"\t1\na "quote"\t2\n3\n')
    assert "line 4 (byte 24): wrong number of fields: 1, the header 2" in refusal(path)
    assert texts(read(path, on_error="skip")[0]) == ['"', 'a "quote"']


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
@pytest.mark.parametrize("chunk_bytes", [1, 64, 100_000])
def test_a_record_beyond_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, chunk_bytes: int
) -> None:
    monkeypatch.setattr(boundaries, "LARGEST_RECORD", 1000)
    line = b'{"text": "%s"}\n'
    content = line % b"a" + line % (b"b" * 5000) + line % b"c" + line % (b"d" * 900)
    path = write(tmp_path / f"a.jsonl{suffix}", content)
    assert "line 2 (byte 14): a line longer than 1,000 bytes" in refusal(path, chunk_bytes)
    documents, skipped = read(path, chunk_bytes, on_error="skip")
    assert texts(documents) == ["a", "c", "d" * 900]
    assert skipped.counts == {"a line longer than 1,000 bytes": 1}


@pytest.mark.parametrize("format", ["paragraphs", "sentences", "file", "csv"])
@pytest.mark.parametrize("chunk_bytes", [1, 64, 100_000])
def test_other_records_beyond_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, chunk_bytes: int
) -> None:
    monkeypatch.setattr(boundaries, "LARGEST_RECORD", 1000)
    content = {"csv": b'text\na\n"' + b"b\n\n" * 5000 + b'"\nc\n'}.get(
        format, b"text\na\n\n" + b"b\n" * 5000 + b"\nc\n"
    )
    path = write(tmp_path / "a", content)
    reason = f"a {'record' if format == 'csv' else 'document'} longer than 1,000 bytes"
    assert reason in refusal(path, chunk_bytes, format=format)
    documents, skipped = read(path, chunk_bytes, format=format, on_error="skip")
    assert len(documents) == (0 if format == "file" else 2)
    assert skipped.counts == {reason: 1}
    line = {"csv": "line 3 (byte 7)", "file": "line 1 (byte 0)"}.get(format, "line 4 (byte 8)")
    assert line in next(iter(skipped.messages.values()))


def test_a_huge_line_costs_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"text": "first"}\n{"text": "')
        for _ in range(200):
            file.write(b"endless " * (MIB // 8))
        file.write(b'"}\n{"text": "last"}\n')
    tracemalloc.start()
    try:
        documents, skipped = read(path, on_error="skip")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert texts(documents) == ["first", "last"]
    assert skipped.counts == {"a line longer than 67,108,864 bytes": 1}
    assert peak < 110 * MIB
    assert "line 2 (byte 18): a line longer than 67,108,864 bytes" in refusal(path)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_truncated_archive(tmp_path: Path, suffix: str) -> None:
    generator = random.Random(1)
    lines = [json.dumps({"text": f"{generator.getrandbits(200):x}"}) for _ in range(8000)]
    whole = COMPRESSORS[suffix]("\n".join(lines).encode())
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(whole[: len(whole) * 2 // 3])
    for chunk_bytes in (50_000, 16 * MIB):
        message = refusal(path, chunk_bytes)
        assert "damaged or cut short, nothing readable after byte " in message
        documents, skipped = read(path, chunk_bytes, on_error="skip")
        assert texts(documents) == [json.loads(line)["text"] for line in lines][: len(documents)]
        assert len(documents) > 500
        assert skipped.counts == {"damaged archive": 1}


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_flipped_bit_in_an_archive(tmp_path: Path, suffix: str) -> None:
    generator = random.Random(2)
    content = "\n\n".join(f"{generator.getrandbits(200):x}" for _ in range(2000)).encode()
    compress = {".zst": zstandard.ZstdCompressor(write_checksum=True).compress}
    whole = bytearray(compress.get(suffix, COMPRESSORS[suffix])(content))
    whole[len(whole) // 2] ^= 64
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(whole)
    assert "damaged or cut short" in refusal(path)
    _, skipped = read(path, on_error="skip")
    assert skipped.counts["damaged archive"] == 1


def test_a_file_that_shrinks_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", b"one\n\ntwo\n")
    reading = ReadSettings()
    [chunk] = split_chunks(find_sources([str(path)])[0], reading)
    path.write_bytes(b"one")
    with pytest.raises(FileError, match="became shorter"):
        list(read_documents(chunk, reading, Skipped()))


def test_empty_documents_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'{"text": " "}\n\n{"text": []}\n{"text": "a"}\n')
    documents, skipped = read(path)
    assert texts(documents) == ["a"]
    assert skipped.counts == {"empty document": 2}
    assert not skipped.messages


def parquet(path: Path, **columns: object) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=2)
    return path


def test_bad_parquet_cells(tmp_path: Path) -> None:
    torn = pyarrow.array([b"a", b"b", b"\xff", b"c"]).view(pyarrow.string())
    path = parquet(tmp_path / "a.parquet", text=torn)
    assert "row 3: not valid UTF-8" in refusal(path, 1)
    assert texts(read(path, on_error="skip")[0]) == ["a", "b", "c"]
    path = parquet(tmp_path / "b.parquet", text=["a", None, "c"])
    assert "row 2: field 'text' is not text but null" in refusal(path)
    documents, skipped = read(path, on_error="skip")
    assert texts(documents) == ["a", "c"]
    assert skipped.counts == {"field 'text' is not text": 1}


def test_bad_parquet_files(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", text=["a" * 99], other=[1])
    assert "no column 'words'; there are 'text', 'other'" in refusal(path, field="words")
    assert "column 'other' holds int64, not text" in refusal(path, field="other")
    path.write_bytes(path.read_bytes()[:-9])
    assert "not readable as Parquet" in refusal(path, on_error="skip")


def test_dictionary_columns_of_parquet(tmp_path: Path) -> None:
    column = pyarrow.array(["a", "b", "a"]).dictionary_encode()
    assert texts(read(parquet(tmp_path / "a.parquet", text=column))[0]) == ["a", "b", "a"]


def test_skipped_adds_up() -> None:
    first, second = Skipped({"a": 1}, {"a": "first"}), Skipped({"a": 2, "b": 1}, {"a": "second"})
    first.merge(second)
    assert first == Skipped({"a": 3, "b": 1}, {"a": "first"})


def test_errors_of_bad_records_are_format_errors(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="pass --on-error skip"):
        read(write(tmp_path / "a.txt", b"\xff words"))

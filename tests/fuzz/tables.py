"""Tables as doors: rows in every format, archives, and the files of tasks."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pyarrow
import pyarrow.parquet
import zstandard

from litebert.base.errors import LitebertError
from litebert.base.files import json_text, write_json
from litebert.tasks.data import open_data
from litebert.tasks.source import DataSource


def build_tables(folder: Path) -> None:
    rows = [{"text": f"word {i}", "label": str(i % 2)} for i in range(12)]
    csv = "text,label\n" + "".join(f'"{row["text"]}",{row["label"]}\n' for row in rows)
    (folder / "rows.csv").write_text(csv)
    (folder / "rows.tsv").write_text(csv.replace(",", "\t").replace('"', ""))
    lines = "".join(json_text(row).replace("\n", " ") + "\n" for row in rows)
    (folder / "rows.jsonl").write_text(lines)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "rows.parquet")


def build_archives(folder: Path) -> None:
    text = b"text,label\n" + b"".join(b"word %d,%d\n" % (i, i % 2) for i in range(12))
    (folder / "rows.csv.gz").write_bytes(gzip.compress(text))
    (folder / "rows.csv.xz").write_bytes(lzma.compress(text))
    (folder / "rows.csv.zst").write_bytes(zstandard.compress(text))


def use_tables(folder: Path, out: Path) -> None:
    """Every table, also as what it is not."""
    problems = []
    for path in sorted(folder.glob("rows.*")):
        for kind in ("classify", "regress"):
            try:
                open_data(kind, DataSource.build(train=path))
            except LitebertError as error:
                problems.append(error)
    if problems:
        raise max(problems, key=lambda error: len(str(error)))


def build_task_files(folder: Path) -> None:
    answer = {"text": "cat", "answer_start": 4}
    questions = [
        {
            "id": str(i),
            "question": f"who {i}?",
            "answers": [answer][i % 2 :],
            "is_impossible": i % 2 == 1,
        }
        for i in range(6)
    ]
    context = {"context": "the cat sat on a mat", "qas": questions}
    squad = {"version": "v2.0", "data": [{"title": "t", "paragraphs": [context]}]}
    write_json(folder / "squad.json", squad)
    (folder / "words.txt").write_text("".join(f"the O\ncat{i} B-x\nsat I-x\n\n" for i in range(6)))
    choice = [
        {"context": f"c {i}", "question": "q", "options": ["a", "b", "c"], "answer": i % 3}
        for i in range(6)
    ]
    lines = "".join(json_text(row).replace("\n", " ") + "\n" for row in choice)
    (folder / "choice.jsonl").write_text(lines)
    (folder / "SST-2").mkdir()
    for split in ("train", "dev"):
        rows = "".join(f"a {i} \t{i % 2}\n" for i in range(8))
        (folder / "SST-2" / f"{split}.tsv").write_text("sentence\tlabel\n" + rows)


def use_task_files(folder: Path, out: Path) -> None:
    problems = []
    for task, source in (
        ("qa", DataSource.build(train=folder / "squad.json")),
        ("tag", DataSource.build(train=folder / "words.txt")),
        ("choice", DataSource.build(train=folder / "choice.jsonl")),
        ("sst-2", DataSource.build(data=folder / "SST-2")),
    ):
        try:
            open_data(task, source)
        except LitebertError as error:
            problems.append(error)
    if problems:
        raise problems[0]

"""The same few documents in every format that `prepare` reads, and stores compared byte by byte."""

from __future__ import annotations

import filecmp
import gzip
import json
import lzma
from pathlib import Path

import pyarrow
import pyarrow.parquet
import zstandard

from tests.corpus.stores import make_documents

TEXTS = [" ".join(document) for document in make_documents(3, 60, (2, 6), (4, 12))]
LINES = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS).encode()


def write_formats(folder: Path) -> list[Path]:
    """A file of every format and compression."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "a.txt": "\n\n".join(TEXTS).encode(),
        "b.jsonl": LINES,
        "c.jsonl.gz": gzip.compress(LINES, mtime=0),
        "d.jsonl.xz": lzma.compress(LINES),
        "e.jsonl.zst": zstandard.compress(LINES),
        "f.json": json.dumps([{"text": text} for text in TEXTS]).encode(),
        "g.csv": ("text\n" + "".join(f'"{text}"\n' for text in TEXTS)).encode(),
        "h.tsv": ("text\n" + "".join(f"{text}\n" for text in TEXTS)).encode(),
        "i.wiki.txt": "".join(
            f'<doc id="{n}" url="u" title="t">\nt\n\n{text}\n</doc>\n'
            for n, text in enumerate(TEXTS)
        ).encode(),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    pyarrow.parquet.write_table(
        pyarrow.table({"text": TEXTS}), folder / "j.parquet", row_group_size=7
    )
    return sorted(folder.iterdir())


def assert_equal_folders(one: Path, other: Path) -> None:
    """Two folders hold the same files with the same bytes."""
    names = [
        sorted(p.relative_to(f).as_posix() for p in f.rglob("*") if p.is_file())
        for f in (one, other)
    ]
    assert names[0] == names[1]
    assert filecmp.cmpfiles(one, other, names[0], shallow=False)[1:] == ([], [])

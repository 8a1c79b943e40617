"""Corpora as doors: raw texts to be prepared, and stores that were."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow
import pyarrow.parquet

import litebert
from litebert.corpus.store import open_store
from tests.corpus.stores import make_documents, make_store, write_wordpiece


def build_store(folder: Path) -> None:
    tokenizer = write_wordpiece(folder / "tokenizer")
    make_store(folder / "store", make_documents(0, 12, (1, 4), (1, 6)), tokenizer, held_out=0.2)


def use_store(folder: Path, out: Path) -> None:
    store = open_store(folder / "store")
    store.require_all_parts()
    for number in range(len(store.paths)):
        shard = store.shard(number)
        for block in range(len(shard.blocks) - 1):
            store.block_ids(number, block)
        store.in_split(number, slice(None), "train")
    assert store.tokenizer.vocab_size == store.info.vocab_size
    store.check()


def inspect_command(folder: Path, out: Path) -> list[str]:
    return ["inspect", str(folder / "store")]


def build_corpus(folder: Path) -> None:
    write_wordpiece(folder / "tokenizer")
    (folder / "a.txt").write_text("One two. Three four.\n\nFive six seven.\n" * 5)
    (folder / "b.jsonl").write_text('{"text": "Eight nine."}\n{"text": "Ten."}\n' * 4)
    rows = pyarrow.Table.from_pylist([{"text": "Eleven. Twelve."}] * 4)
    pyarrow.parquet.write_table(rows, folder / "c.parquet")
    (folder / "d.txt.gz").write_bytes(gzip.compress(b"Zipped words. More of them.\n\nEnd.\n"))


def use_corpus(folder: Path, out: Path) -> None:
    texts = [str(path) for path in sorted(folder.glob("?.*"))]
    litebert.prepare(texts, folder / "tokenizer", out, num_workers=1)

"""Every document of one input, plain or compressed, read through its chunks."""

from __future__ import annotations

import gzip
import lzma
import pickle
from collections.abc import Callable
from pathlib import Path

import zstandard

from litebert.reading.chunks import ReadSettings, split_chunks
from litebert.reading.records import Document, Skipped, read_documents
from litebert.reading.sources import find_sources

MIB = 2**20


def two_members(content: bytes) -> bytes:
    half = len(content) // 2
    return (
        gzip.compress(content[:half], mtime=0) + gzip.compress(content[half:], mtime=0) + b"\0" * 8
    )


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": two_members,
    ".xz": lambda content: lzma.compress(content[:9]) + lzma.compress(content[9:]),
    ".zst": lambda content: zstandard.compress(content[:9]) + zstandard.compress(content[9:]),
}


def read(
    name: Path | str, chunk_bytes: int = 16 * MIB, **options: str
) -> tuple[list[Document], Skipped]:
    """All documents of one input, every chunk through a pickle as on its way to a worker."""
    reading = ReadSettings.build(options, "test")
    skipped = Skipped()
    documents: list[Document] = []
    for source in find_sources([str(name)], reading.format):
        for chunk in split_chunks(source, reading, chunk_bytes):
            part = Skipped()
            documents += read_documents(pickle.loads(pickle.dumps(chunk)), reading, part)
            skipped.merge(part)
    return documents, skipped


def texts(documents: list[Document]) -> list[str | list[str] | None]:
    return [document.text if document.sentences is None else document.sentences
            for document in documents]  # fmt: skip

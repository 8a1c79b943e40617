"""A shard: the token ids of one work unit, with where sentences, documents and blocks begin.

A safetensors file, so that any tool can open it, holding

    ids        uint16 or uint32 [tokens]    by size of the vocabulary
    sentences  uint32 [sentences + 1]       first token of each sentence, and the end
    documents  uint32 [documents + 1]       first sentence of each document, and the end
    keys       uint64 [documents]           hash of the document's raw text: its name everywhere
    blocks     uint32 [blocks + 1]          first document of each block, and the end
    checks     uint32 [blocks + 1]          CRC-32 of each block's ids, and of the other arrays

A block is a run of documents of 128 thousand tokens or more: what the loader shuffles and reads
at once. Its checksum is verified on every reading, so damage is never trained on.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from litebert.base.errors import FileError, FormatError
from litebert.base.files import open_regular
from litebert.base.ragged import offsets

BLOCK_TOKENS = 2**17
LARGEST_HEADER = 2**20
ARRAYS = {
    "ids": ("U16", "U32"), "sentences": ("U32",), "documents": ("U32",),
    "keys": ("U64",), "blocks": ("U32",), "checks": ("U32",),
}  # fmt: skip
DTYPES = {"U16": "<u2", "U32": "<u4", "U64": "<u8"}


@dataclass(frozen=True)
class Shard:
    """The arrays of one shard, in memory or mapped from disk."""

    name: str
    ids: NDArray[np.unsignedinteger]
    sentences: NDArray[np.uint32]
    documents: NDArray[np.uint32]
    keys: NDArray[np.uint64]
    blocks: NDArray[np.uint32]
    checks: NDArray[np.uint32]

    def block_ids(self, block: int) -> NDArray[np.unsignedinteger]:
        """A block's ids, compared with their checksum."""
        first, last = self.sentences[self.documents[self.blocks[block : block + 2]]].tolist()
        ids = self.ids[first:last]
        if zlib.crc32(ids.data) != int(self.checks[block]):
            raise FileError(
                f"{self.name}: block {block} does not match its checksum; the file is damaged: "
                "copy the store again, or remove it and prepare it anew"
            )
        return ids


def build_shard(
    name: str, ids: NDArray[np.unsignedinteger], sentence_lengths: NDArray[np.integer],
    document_lengths: NDArray[np.integer], keys: NDArray[np.uint64],
) -> Shard:  # fmt: skip
    """A shard from its ids, tokens a sentence, sentences a document, and the documents' keys."""
    sentences = offsets(sentence_lengths).astype(np.uint32)
    documents = offsets(document_lengths).astype(np.uint32)
    blocks = np.array(list(_cut_blocks(sentences[documents])), dtype=np.uint32)
    edges = sentences[documents[blocks]].tolist()
    checks = [zlib.crc32(ids[a:b].data) for a, b in pairwise(edges)]
    checks.append(_index_check(sentences, documents, keys, blocks))
    return Shard(
        name, ids, sentences, documents, keys, blocks, np.array(checks, dtype=np.uint32)
    )  # fmt: skip


def _index_check(*arrays: NDArray) -> int:
    check = 0
    for array in arrays:
        check = zlib.crc32(np.ascontiguousarray(array).data, check)
    return check


def _cut_blocks(document_tokens: NDArray[np.uint32]) -> Iterator[int]:
    """The documents at which blocks begin, and the end."""
    yield 0
    begin = 0
    for document, token in enumerate(document_tokens.tolist()):
        last = document == len(document_tokens) - 1
        if document and (last or token - begin >= BLOCK_TOKENS):
            yield document
            begin = token


def shard_bytes(shard: Shard) -> bytes:
    """A shard as a file's content."""
    return save({name: np.ascontiguousarray(getattr(shard, name)) for name in ARRAYS})


def open_shard(path: Path) -> Shard:
    """Map a shard from disk, and check that its parts fit together."""
    try:
        with open_regular(path) as stream:
            size = int.from_bytes(stream.read(8), "little")
            if not 0 < size <= LARGEST_HEADER:
                raise FormatError(f"{path}: not a shard of litebert's")
            header = json.loads(stream.read(size))
        content = np.memmap(path, dtype=np.uint8, mode="r")
        data = content[8 + size :]
        arrays = {name: _array(data, header[name], kinds) for name, kinds in ARRAYS.items()}
        shard = Shard(str(path), **arrays)
        _check_offsets(shard)
        return shard
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error})") from None
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise FileError(
            f"{path}: damaged ({error}); copy the store again, or remove it and prepare it anew"
        ) from None


def _array(data: NDArray[np.uint8], entry: dict, kinds: tuple[str, ...]) -> NDArray:
    if entry["dtype"] not in kinds:
        raise ValueError(f"numbers of type {entry['dtype']}")
    begin, end = entry["data_offsets"]
    if not 0 <= begin <= end <= len(data):
        raise ValueError("an array beyond the end of the file")
    array = data[begin:end].view(DTYPES[entry["dtype"]])
    if [len(array)] != entry["shape"]:
        raise ValueError("an array of another length than its header says")
    return array


def _check_offsets(shard: Shard) -> None:
    """Each level of offsets starts at 0, never falls, and ends where the level below does."""
    levels = (
        (shard.blocks, len(shard.documents) - 1),
        (shard.documents, len(shard.sentences) - 1),
        (shard.sentences, len(shard.ids)),
    )
    for level, end in levels:
        whole = len(level) > 0 and level[0] == 0 and level[-1] == end
        if not whole or (level[1:] < level[:-1]).any():
            raise ValueError("offsets that do not fit together")
    if len(shard.keys) != len(shard.documents) - 1 or len(shard.checks) != len(shard.blocks):
        raise ValueError("arrays of different lengths")
    found = _index_check(shard.sentences, shard.documents, shard.keys, shard.blocks)
    if found != int(shard.checks[-1]):
        raise ValueError("offsets that do not match their checksum")

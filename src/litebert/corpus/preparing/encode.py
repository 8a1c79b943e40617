"""Chunks of raw text to a shard of ids: the work of `litebert prepare` that runs in parallel.

Read documents, split them into sentences, encode the sentences, a few thousand at a time. The
result is a pure function of the chunks, the tokenizer and the settings.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from litebert.base.ragged import IntArray, row_ids
from litebert.corpus.preparing.work_units import PrepareSettings
from litebert.corpus.shard import Shard, build_shard
from litebert.corpus.store import Counts
from litebert.reading.chunks import Chunk
from litebert.reading.records import EMPTY, Document, Skipped, read_documents
from litebert.text.sentences import split_sentences
from litebert.text.tokenizer import Tokenizer

DOCUMENTS_AT_ONCE = 1024
TIMED_AT_ONCE = 64  # documents read between two readings of the clock
CHARACTERS_AT_ONCE = 2**19
LONGEST_SENTENCE = 2000  # characters; in English about 450 tokens
DROPPED = "listed in --drop"
STAGES = ("read", "hash", "split", "encode")


@dataclass
class EncodedShard:
    """A shard, what it holds, and where the time went (seconds by stage)."""

    shard: Shard
    counts: Counts
    messages: dict[str, str]
    seconds: dict[str, float]


def encode_chunks(
    chunks: Iterable[Chunk], tokenizer: Tokenizer, settings: PrepareSettings, name: str
) -> EncodedShard:
    """Turn chunks into a shard."""
    skipped = Skipped()
    seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)
    parts = [_Part.empty(tokenizer)]
    size = 0
    found = chain.from_iterable(read_documents(chunk, settings, skipped) for chunk in chunks)
    for group in _groups(_timed(found, seconds, "read")):
        keys = _keys(group, seconds)
        wanted = [place for place, key in enumerate(keys) if key not in settings.drop]
        if len(wanted) < len(group):
            skipped.add(DROPPED, len(group) - len(wanted))
            group, keys = [group[n] for n in wanted], [keys[n] for n in wanted]
        part, size_here = _encode_documents(group, keys, tokenizer, settings.language, seconds)
        parts.append(part)
        size += size_here
        if lost := len(group) - len(part.keys):
            skipped.add(EMPTY, lost)
    shard = build_shard(
        name,
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.sentences for part in parts]),
        np.concatenate([part.documents for part in parts]),
        np.concatenate([part.keys for part in parts]),
    )
    counts = Counts(
        documents=len(shard.keys),
        sentences=len(shard.sentences) - 1,
        tokens=len(shard.ids),
        blocks=len(shard.blocks) - 1,
        unknown_tokens=int(np.count_nonzero(shard.ids == tokenizer.special.unk)),
        text_bytes=size,
        skipped=dict(sorted(skipped.counts.items())),
    )
    return EncodedShard(shard, counts, skipped.messages, seconds)


@dataclass(frozen=True)
class _Part:
    """Some documents of a shard: ids, tokens a sentence, sentences a document, keys."""

    ids: NDArray[np.unsignedinteger]
    sentences: IntArray
    documents: IntArray
    keys: NDArray[np.uint64]

    @classmethod
    def empty(cls, tokenizer: Tokenizer) -> _Part:
        nothing = np.zeros(0, dtype=np.int64)
        return cls(nothing.astype(_id_type(tokenizer)), nothing, nothing, nothing.astype(np.uint64))


def _id_type(tokenizer: Tokenizer) -> type[np.unsignedinteger]:
    return np.uint16 if tokenizer.vocab_size <= 2**16 else np.uint32


def _groups(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Documents to encode together: enough for the tokenizer, few enough for the memory."""
    group, size = [], 0
    for document in documents:
        group.append(document)
        size += len(document.text or "") + sum(map(len, document.sentences or ()))
        if len(group) >= DOCUMENTS_AT_ONCE or size >= CHARACTERS_AT_ONCE:
            yield group
            group, size = [], 0
    if group:
        yield group


def _keys(group: list[Document], seconds: dict[str, float]) -> list[int]:
    """The names of documents: hashes of their raw text."""
    began = time.perf_counter()
    sums = [hashlib.blake2b(_raw(document), digest_size=8).digest() for document in group]
    seconds["hash"] += time.perf_counter() - began
    return [int.from_bytes(digest, "little") for digest in sums]


def _encode_documents(
    group: list[Document], keys: list[int], tokenizer: Tokenizer, language: str,
    seconds: dict[str, float],
) -> tuple[_Part, int]:  # fmt: skip
    hashed = time.perf_counter()
    sentences = [_sentences(document, language, tokenizer.kind) for document in group]
    split = time.perf_counter()
    ids, lengths = tokenizer.encode_batch([one for document in sentences for one in document])
    owner = row_ids([len(document) for document in sentences])
    said = lengths > 0  # nothing may be left of a sentence after normalization
    documents = np.bincount(owner[said], minlength=len(group))
    kept = documents > 0
    part = _Part(
        ids.astype(_id_type(tokenizer)),
        lengths[said],
        documents[kept],
        np.array(keys, dtype=np.uint64)[kept],
    )
    seconds["split"] += split - hashed
    seconds["encode"] += time.perf_counter() - split
    return part, sum(len(_raw(document)) for document in group)


def _raw(document: Document) -> bytes:
    text = document.text if document.text is not None else "\n".join(document.sentences or ())
    return text.encode()


def document_sentences(document: Document, language: str) -> list[str]:
    """The sentences of a document."""
    if document.text is not None:
        return split_sentences(document.text, language)
    return document.sentences or []


def _sentences(document: Document, language: str, kind: str) -> list[str]:
    """Those to encode; for byte-level BPE, whose spaces are letters, with the space before each."""
    found = document_sentences(document, language)
    if any(len(one) > LONGEST_SENTENCE for one in found):
        found = [part for one in found for part in _cut(one)]
    if kind != "bpe":
        return found
    return [one if not place else f" {one}" for place, one in enumerate(found)]


def _cut(sentence: str) -> Iterator[str]:
    """Text without sentence ends in parts that fit in a sample: truncation would lose the rest."""
    start = 0
    while len(sentence) - start > LONGEST_SENTENCE:
        stop = sentence.rfind(" ", start + LONGEST_SENTENCE // 2, start + LONGEST_SENTENCE)
        stop = stop if stop > 0 else start + LONGEST_SENTENCE
        yield sentence[start:stop].strip()
        start = stop
    yield sentence[start:].strip()


def _timed(items: Iterator[Document], seconds: dict[str, float], stage: str) -> Iterator[Document]:
    while True:
        began = time.perf_counter()
        found = list(islice(items, TIMED_AT_ONCE))
        seconds[stage] += time.perf_counter() - began
        if not found:
            return
        yield from found

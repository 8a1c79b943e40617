"""The quality of a corpus: what in it is there twice, said everywhere, of another kind.

    report = litebert.inspect("corpus", quality=True)
    report.quality.outliers                   documents by what is wrong with them

Read shard by shard: a signature of 256 bytes a document and a hash of 8 bytes a sentence stay in
memory. Documents are named by their keys, so that `litebert prepare --drop FILE` can leave out what
is listed here: `write_drop_list`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group
from rich.table import Table
from rich.text import Text

from litebert.base.errors import FormatError
from litebert.base.files import json_text, read_json, write_atomic
from litebert.base.ragged import IntArray, positions_within, row_ids
from litebert.base.randomness import random_bits
from litebert.corpus.near_duplicates import clusters, signatures
from litebert.corpus.store import Store
from litebert.text.language import guess_language
from litebert.text.tokenizer import Tokenizer

LANGUAGE_TOKENS = 200  # of a document's beginning, to guess its language by
SHORT = 16  # tokens of a document
MANY_SYMBOLS, MANY_DIGITS = 0.25, 0.3  # of its characters
REPETITIVE = 0.5  # of its sentences are ones it has had before
FEW_TOKENS = 3  # a shorter sentence is nobody's boilerplate
OFTEN, OFTEN_FRACTION = 10, 0.001  # documents with one sentence, beyond which it is boilerplate
MOSTLY = 0.5  # of a document's tokens
SHOWN, SHOWN_TOKENS = 10, 40
KEPT = ("short", "duplicate")  # said, but not in a list of what to drop


@dataclass(frozen=True)
class RepeatedLine:
    """A sentence that many documents have."""

    text: str
    documents: int


@dataclass(frozen=True)
class Outliers:
    """Documents with one thing wrong with them."""

    documents: int
    tokens: int
    examples: list[str]  # how a few of them begin


@dataclass(frozen=True)
class QualityReport:
    """What a corpus holds that may not be worth training on. A document may be counted twice."""

    documents: int
    tokens: int
    outliers: dict[str, Outliers]  # by what is wrong
    boilerplate: list[RepeatedLine]
    boilerplate_fraction: float  # of tokens
    languages: dict[str, float]  # fraction of documents
    keys: dict[str, list[str]] = field(repr=False, default_factory=dict)  # what to drop, and why


@dataclass
class _Documents:
    """What is known of all documents, a row each."""

    keys: NDArray[np.uint64]
    tokens: IntArray
    where: IntArray  # shard, first token in it
    symbols: NDArray[np.float64]
    digits: NDArray[np.float64]
    languages: list[str]
    signatures: NDArray[np.uint32]
    sentence_owner: IntArray
    sentence_start: IntArray  # in its shard
    sentence_hash: NDArray[np.uint64]
    sentence_tokens: IntArray


def judge_quality(store: Store) -> QualityReport:
    """Go through a store and report."""
    found = _read(store)
    lines, repeated = _boilerplate(store, found)
    total = max(int(found.tokens.sum()), 1)
    in_lines = np.bincount(found.sentence_owner, found.sentence_tokens * repeated, len(found.keys))
    languages = Counter(found.languages)
    clear = [name for name, _ in languages.most_common() if name != "unclear"]
    odd = [language in clear[1:] for language in found.languages]
    wrong: dict[str, NDArray[np.bool_]] = {
        "duplicate": _seen_before(found.keys),
        "near_duplicate": clusters(found.signatures) != np.arange(len(found.keys)),
        "boilerplate": in_lines > MOSTLY * found.tokens,
        "repetitive": _repetitive(found),
        "symbols": found.symbols > MANY_SYMBOLS,
        "digits": found.digits > MANY_DIGITS,
        "other_language": np.array(odd, bool),
        "short": found.tokens < SHORT,
    }
    wrong["near_duplicate"] &= ~wrong["duplicate"]
    return QualityReport(
        documents=len(found.keys),
        tokens=int(found.tokens.sum()),
        outliers={name: _outliers(store, found, which) for name, which in wrong.items()},
        boilerplate=lines,
        boilerplate_fraction=float(in_lines.sum() / total),
        languages={name: n / len(found.keys) for name, n in languages.most_common()},
        keys={
            name: [f"{key:016x}" for key in np.unique(found.keys[which]).tolist()]
            for name, which in wrong.items()
            if name not in KEPT
        },
    )


def write_drop_list(report: QualityReport, path: Path) -> int:
    """Write the keys of what may be left out, by reason; how many documents that is."""
    write_atomic(path, json_text(report.keys).encode())
    return len({key for keys in report.keys.values() for key in keys})


def read_drop_list(path: Path) -> frozenset[int]:
    """The documents that a list names."""
    named: Any = read_json(path)
    try:
        return frozenset(int(key, 16) for keys in named.values() for key in keys)
    except (AttributeError, TypeError, ValueError):
        raise FormatError(
            f"{path}: no list of documents; write one with `litebert inspect --quality --drop`"
        ) from None


def _read(store: Store) -> _Documents:
    characters = _characters(store.tokenizer)
    parts: list[_Documents] = []
    for number in range(len(store.paths)):
        shard = store.shard(number)
        ids = np.concatenate(
            [store.block_ids(number, block) for block in range(len(shard.blocks) - 1)]
            or [np.zeros(0, np.int64)]
        ).astype(np.int64)
        edges = shard.sentences[shard.documents].astype(np.int64)
        tokens, sentences = np.diff(edges), np.diff(shard.sentences.astype(np.int64))
        owner = row_ids(tokens)
        sums = [np.bincount(owner, column[ids], len(tokens)) for column in characters]
        letters = np.maximum(sums[0], 1)
        texts = [
            store.tokenizer.decode(ids[first : first + min(length, LANGUAGE_TOKENS)].tolist())
            for first, length in zip(edges.tolist(), tokens.tolist(), strict=False)
        ]
        hashed = random_bits(ids, positions_within(sentences))
        with np.errstate(over="ignore"):
            whole = np.add.reduceat(hashed, shard.sentences[:-1].astype(np.int64))
        parts.append(
            _Documents(
                keys=np.asarray(shard.keys), tokens=tokens,
                where=np.stack([np.full(len(tokens), number), edges[:-1]], 1),
                symbols=sums[1] / letters, digits=sums[2] / letters,
                languages=[guess_language(text) for text in texts],
                signatures=signatures(ids, tokens),
                sentence_owner=row_ids(np.diff(shard.documents.astype(np.int64))),
                sentence_start=shard.sentences[:-1].astype(np.int64),
                sentence_hash=whole, sentence_tokens=sentences,
            )
        )  # fmt: skip
    return _joined(parts)


def _joined(parts: list[_Documents]) -> _Documents:
    before = 0
    for part in parts:
        part.sentence_owner = part.sentence_owner + before
        before += len(part.keys)
    arrays = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in _Documents.__dataclass_fields__
        if name != "languages"
    }
    return _Documents(**arrays, languages=[name for part in parts for name in part.languages])


def _characters(tokenizer: Tokenizer) -> NDArray[np.float64]:
    """Characters, symbols and digits of every token of the vocabulary."""
    rows = np.zeros((3, tokenizer.vocab_size))
    for number in np.flatnonzero(~tokenizer.special_mask).tolist():
        text = tokenizer.decode([number]).strip()
        digits = sum(letter.isdigit() for letter in text)
        symbols = sum(not letter.isalnum() for letter in text)
        rows[:, number] = len(text), symbols, digits
    return rows


def _seen_before(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    again = np.ones(len(keys), bool)
    again[np.unique(keys, return_index=True)[1]] = False
    return again


def _boilerplate(store: Store, found: _Documents) -> tuple[list[RepeatedLine], NDArray[np.bool_]]:
    """The commonest lines, and which sentences are such."""
    names, places, line = np.unique(found.sentence_hash, return_index=True, return_inverse=True)
    pairs = np.unique(np.stack([line, found.sentence_owner]), axis=1)
    counts = np.bincount(pairs[0], minlength=len(names))
    often = max(OFTEN, OFTEN_FRACTION * len(found.keys))
    common = (counts >= often) & (found.sentence_tokens[places] >= FEW_TOKENS)
    top = np.flatnonzero(common)[np.argsort(-counts[common], kind="stable")][:SHOWN]
    lines = []
    for place, count in zip(places[top].tolist(), counts[top].tolist(), strict=True):
        shard = int(found.where[found.sentence_owner[place], 0])
        start, length = int(found.sentence_start[place]), int(found.sentence_tokens[place])
        lines.append(RepeatedLine(_text(store, shard, start, length), count))
    return lines, common[line]


def _repetitive(found: _Documents) -> NDArray[np.bool_]:
    """Documents that say most of their sentences more than once."""
    pairs = np.stack([found.sentence_owner, found.sentence_hash.astype(np.int64)])
    distinct = np.bincount(np.unique(pairs, axis=1)[0], minlength=len(found.keys))
    count = np.bincount(found.sentence_owner, minlength=len(found.keys))
    return count - distinct > REPETITIVE * count


def _outliers(store: Store, found: _Documents, which: NDArray[np.bool_]) -> Outliers:
    chosen = np.flatnonzero(which)
    first = np.column_stack([found.where, found.tokens])[chosen[:3]].tolist()
    examples = [_text(store, shard, start, length) for shard, start, length in first]
    return Outliers(len(chosen), int(found.tokens[chosen].sum()), examples)


def _text(store: Store, shard: int, start: int, length: int) -> str:
    """Some tokens, decoded."""
    ids = store.shard(shard).ids[start : start + min(length, SHOWN_TOKENS)]
    return printable(store.tokenizer.decode(ids.tolist()))


def printable(text: str) -> str:
    """Text without what a terminal would obey instead of show."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def show_quality(report: QualityReport) -> Group:
    """The report as tables."""
    table = Table("documents that are …", "documents", "tokens", "for example", show_lines=True)
    for name, found in report.outliers.items():
        fraction = found.tokens / max(report.tokens, 1)
        label = name.replace("_", " ")
        example = Text(found.examples[0] if found.examples else "")
        table.add_row(label, f"{found.documents:,}", f"{fraction:.2%}", example)
    lines = Table(
        "documents", f"lines that many have ({report.boilerplate_fraction:.2%} of tokens)"
    )
    for line in report.boilerplate:
        lines.add_row(f"{line.documents:,}", Text(line.text))
    parts = [f"{name} {fraction:.1%}" for name, fraction in report.languages.items()]
    return Group(table, lines, Text(f"languages of documents: {', '.join(parts)}"))

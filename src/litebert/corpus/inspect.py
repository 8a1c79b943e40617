"""What a store holds, for people: sizes, length histograms, unknown tokens, samples.

Read shard by shard, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from litebert.base.batches import Batch
from litebert.base.ragged import IntArray
from litebert.corpus.loader import Loader, LoaderSettings
from litebert.corpus.quality import QualityReport, judge_quality, printable, show_quality
from litebert.corpus.sampling.samples import NO_LABEL
from litebert.corpus.store import Store, open_store

BINS = 24  # lengths by powers of two: 1, 2-3, 4-7, …


@dataclass(frozen=True)
class TokenizerReport:
    """The tokenizer of a store."""

    kind: str
    normalization: str
    vocab_size: int
    checksum: str


@dataclass(frozen=True)
class SampleReport:
    """One sample of an input format; no label where there is nothing to decide."""

    tokens: int
    label: int | None
    segments: list[str]


@dataclass(frozen=True)
class StoreReport:
    """Everything about a store. Lengths are counts by range of tokens: 1, 2-3, 4-7, …"""

    folders: list[str]
    shards: int
    parts: list[int]  # listed, of how many
    tokenizer: TokenizerReport
    text_bytes: int
    documents: int
    sentences: int
    tokens: int
    duplicates: int
    train_documents: int
    train_tokens: int
    held_out_documents: int
    held_out_tokens: int
    unknown_fraction: float
    vocab_used: int  # tokens of the vocabulary that occur
    skipped: dict[str, int]
    sentence_tokens: dict[str, int]
    document_tokens: dict[str, int]
    sample: str  # the beginning of the text
    samples: list[SampleReport]  # of the input format asked for
    quality: QualityReport | None = None  # where it was asked for

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def inspect_store(
    stores: Sequence[Path | str],
    *,
    check: bool = False,
    input_format: str | None = None,
    max_length: int = 128,
    samples: int = 4,
    quality: bool = False,
) -> StoreReport:
    """What a store holds: sizes, lengths, unknown tokens, a sample; how good the text is."""
    store = open_store(*stores)
    if check:
        store.check()
    splits = {"train": np.zeros(2, np.int64), "held_out": np.zeros(2, np.int64)}
    sentences, documents = np.zeros(BINS, np.int64), np.zeros(BINS, np.int64)
    used = np.zeros(store.info.vocab_size, bool)
    for number in range(len(store.paths)):
        shard = store.shard(number)
        tokens = np.diff(shard.sentences[shard.documents].astype(np.int64))
        for split, sums in splits.items():
            kept = store.in_split(number, slice(None), split)  # type: ignore[arg-type]
            sums += [int(kept.sum()), int(tokens[kept].sum())]
        sentences += _histogram(np.diff(shard.sentences.astype(np.int64)))
        documents += _histogram(tokens)
        for block in range(len(shard.blocks) - 1):
            used[np.unique(store.block_ids(number, block))] = True
    total, tokenizer = store.total, store.tokenizer
    counts: dict[str, Any] = total.model_dump(exclude={"blocks", "unknown_tokens"})
    for split, sums in splits.items():
        counts[f"{split}_documents"], counts[f"{split}_tokens"] = sums.tolist()
    return StoreReport(
        **counts,
        folders=[str(folder) for folder in store.folders],
        shards=len(store.paths),
        parts=[len(store.folders), store.info.part[1]],
        tokenizer=TokenizerReport(
            tokenizer.kind, tokenizer.normalization, tokenizer.vocab_size, store.info.tokenizer
        ),
        duplicates=store.duplicates,
        unknown_fraction=total.unknown_tokens / max(total.tokens, 1),
        vocab_used=int(used.sum()),
        sentence_tokens=_named(sentences),
        document_tokens=_named(documents),
        sample=sample_text(store),
        samples=_samples(store, input_format, max_length, samples) if input_format else [],
        quality=judge_quality(store) if quality else None,
    )


def _histogram(lengths: IntArray) -> IntArray:
    return np.bincount(np.frexp(np.maximum(lengths, 1))[1] - 1, minlength=BINS)[:BINS]


def _named(counts: IntArray) -> dict[str, int]:
    """Counts by range of lengths, up to the last that is not empty."""
    last = int(np.flatnonzero(counts).max(initial=-1))
    names = [f"{2**n}-{2 ** (n + 1) - 1}" if n else "1" for n in range(last + 1)]
    return dict(zip(names, counts.tolist(), strict=False))


def sample_text(store: Store, tokens: int = 60) -> str:
    """The beginning of the store's first document, decoded."""
    for number in range(len(store.paths)):
        shard = store.shard(number)
        if len(shard.keys):
            return printable(store.tokenizer.decode(store.block_ids(number, 0)[:tokens].tolist()))
    return ""


def _samples(store: Store, input_format: str, max_length: int, count: int) -> list[SampleReport]:
    wanted = {"input_format": input_format, "max_length": max_length, "batch_size": count}
    batch = next(Loader(store, LoaderSettings.build(wanted, "litebert inspect")))
    return [_sample(batch.slice(number, number + 1), store) for number in range(len(batch))]


def _sample(one: Batch, store: Store) -> SampleReport:
    segment = np.cumsum(one.segment_starts)
    texts = [
        printable(store.tokenizer.decode(one.ids[one.is_text & (segment == number)].tolist()))
        for number in range(1, int(segment.max()) + 1)
    ]
    label = int(one.labels[0])
    return SampleReport(len(one.ids), None if label == NO_LABEL else label, texts)


def show(report: StoreReport) -> Group:
    """The report as tables."""
    facts = Table(show_header=False, box=None)
    tokenizer = report.tokenizer
    rows = {
        "text": f"{report.text_bytes / 1e6:,.1f} MB in {report.shards:,} shards",
        "documents": f"{report.documents:,}",
        "sentences": f"{report.sentences:,}",
        "tokens": f"{report.tokens:,}",
        "training": f"{report.train_documents:,} documents, {report.train_tokens:,} tokens",
        "held out": f"{report.held_out_documents:,} documents, {report.held_out_tokens:,} tokens",
        "duplicates": f"{report.duplicates:,} documents left out",
        "tokenizer": f"{tokenizer.kind}, {tokenizer.normalization}, vocabulary of "
        f"{tokenizer.vocab_size:,} tokens, {report.vocab_used:,} of them used",
        "unknown": f"{report.unknown_fraction:.4%} of tokens",
    }
    for reason, count in report.skipped.items():
        rows[f"skipped: {reason}"] = f"{count:,}"
    if report.parts[0] != report.parts[1]:
        rows["parts"] = f"{report.parts[0]} of {report.parts[1]} listed"
    for name, value in rows.items():
        facts.add_row(name, value)
    return Group(
        facts,
        _bars("sentences by tokens", report.sentence_tokens),
        _bars("documents by tokens", report.document_tokens),
        Text(f"\nsample: {report.sample}"),
        *([_samples_table(report.samples)] if report.samples else []),
        *([show_quality(report.quality)] if report.quality else []),
    )


def _bars(title: str, counts: dict[str, int]) -> Table:
    table = Table(title=f"\n{title}", title_justify="left", show_header=False, box=None)
    largest = max(counts.values(), default=1)
    for name, count in counts.items():
        table.add_row(name, f"{count:,}", "█" * round(40 * count / max(largest, 1)))
    return table


def _samples_table(samples: Sequence[SampleReport]) -> Table:
    table = Table("tokens", "label", "first segment", "second segment", show_lines=True)
    for one in samples:
        label = "-" if one.label is None else str(one.label)
        first, *others = one.segments
        table.add_row(str(one.tokens), label, Text(first), Text(" / ".join(others)))
    return table

"""What a store holds, for people: sizes, length histograms, unknown pieces, a sample.

Read shard by shard, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group
from rich.table import Table
from rich.text import Text

from litebert.base.batch import Batch
from litebert.corpus.arrange import NO_LABEL
from litebert.corpus.loader import Loader, LoaderSettings
from litebert.corpus.store import Store, open_store

BINS = 24  # lengths by powers of two: 1, 2-3, 4-7, …


def inspect(folders: Sequence[Path | str], *, check: bool = False) -> dict[str, Any]:
    """Everything about a store as plain values; with `check` every file's checksum is verified."""
    store = open_store(*folders)
    if check:
        store.check()
    total, tokenizer = store.total, store.tokenizer
    splits = {"train": np.zeros(2, np.int64), "held_out": np.zeros(2, np.int64)}
    sentences, documents = np.zeros(BINS, np.int64), np.zeros(BINS, np.int64)
    used = np.zeros(store.info.vocabulary, bool)
    for number in range(len(store.paths)):
        shard = store.shard(number)
        tokens = np.diff(shard.sentences[shard.documents].astype(np.int64))
        for split, sums in splits.items():
            kept = store.chosen(number, slice(None), split)  # type: ignore[arg-type]
            sums += [int(kept.sum()), int(tokens[kept].sum())]
        sentences += _histogram(np.diff(shard.sentences.astype(np.int64)))
        documents += _histogram(tokens)
        used[np.unique(shard.ids)] = True
    return {
        "folders": [str(folder) for folder in store.folders],
        "shards": len(store.paths),
        "parts": [len(store.folders), store.info.part[1]],
        "tokenizer": {
            "kind": tokenizer.kind,
            "cleaning": tokenizer.cleaning,
            "vocabulary": tokenizer.vocab_size,
            "checksum": store.info.tokenizer,
        },
        "text_bytes": total.bytes,
        "documents": total.documents,
        "sentences": total.sentences,
        "tokens": total.tokens,
        "duplicates": store.duplicates,
        **{f"{split}_documents": int(sums[0]) for split, sums in splits.items()},
        **{f"{split}_tokens": int(sums[1]) for split, sums in splits.items()},
        "unknown_share": total.unknown / max(total.tokens, 1),
        "pieces_used": int(used.sum()),
        "skipped": total.skipped,
        "sentence_tokens": _named(sentences),
        "document_tokens": _named(documents),
        "sample": sample(store),
    }


def _histogram(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.bincount(np.frexp(np.maximum(lengths, 1))[1] - 1, minlength=BINS)[:BINS]


def _named(counts: NDArray[np.int64]) -> dict[str, int]:
    """Counts by range of lengths, up to the last that is not empty."""
    last = int(np.flatnonzero(counts).max(initial=-1))
    names = [f"{2**n}-{2 ** (n + 1) - 1}" if n else "1" for n in range(last + 1)]
    return dict(zip(names, counts.tolist(), strict=False))


def sample(store: Store, pieces: int = 60) -> str:
    """The beginning of the store's first document, decoded."""
    for number in range(len(store.paths)):
        shard = store.shard(number)
        if len(shard.keys):
            return printable(store.tokenizer.decode(shard.ids[:pieces].tolist()))
    return ""


def printable(text: str) -> str:
    """Text without what a terminal would obey instead of show."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def show(report: dict[str, Any]) -> Group:
    """The report as tables."""
    facts = Table(show_header=False, box=None)
    tokenizer = report["tokenizer"]
    rows = {
        "text": f"{report['text_bytes'] / 1e6:,.1f} MB in {report['shards']:,} shards",
        "documents": f"{report['documents']:,}",
        "sentences": f"{report['sentences']:,}",
        "tokens": f"{report['tokens']:,}",
        "training": f"{report['train_documents']:,} documents, {report['train_tokens']:,} tokens",
        "held out": f"{report['held_out_documents']:,} documents, "
        f"{report['held_out_tokens']:,} tokens",
        "duplicates": f"{report['duplicates']:,} documents left out",
        "tokenizer": f"{tokenizer['kind']}, {tokenizer['cleaning']}, "
        f"{tokenizer['vocabulary']:,} pieces, {report['pieces_used']:,} of them used",
        "unknown": f"{report['unknown_share']:.4%} of tokens",
    }
    for reason, count in report["skipped"].items():
        rows[f"skipped: {reason}"] = f"{count:,}"
    if report["parts"][0] != report["parts"][1]:
        rows["parts"] = f"{report['parts'][0]} of {report['parts'][1]} listed"
    for name, value in rows.items():
        facts.add_row(name, value)
    return Group(
        facts,
        _bars("sentences by tokens", report["sentence_tokens"]),
        _bars("documents by tokens", report["document_tokens"]),
        Text(f"\nsample: {report['sample']}"),
    )


def _bars(title: str, counts: dict[str, int]) -> Table:
    table = Table(title=f"\n{title}", title_justify="left", show_header=False, box=None)
    largest = max(counts.values(), default=1)
    for name, count in counts.items():
        table.add_row(name, f"{count:,}", "█" * round(40 * count / max(largest, 1)))
    return table


def show_samples(folders: Sequence[Path | str], settings: LoaderSettings, count: int) -> Table:
    """A few samples of an arrangement, decoded segment by segment."""
    store = open_store(*folders)
    loader = Loader(store, settings.model_copy(update={"batch": count, "by": "sequences"}))
    batch = next(loader)
    table = Table("tokens", "label", "first segment", "second segment", show_lines=True)
    for number in range(len(batch)):
        table.add_row(*_segments(batch, number, store))
    return table


def _segments(batch: Batch, number: int, store: Store) -> tuple[str, str, Text, Text]:
    here = slice(batch.starts[number], batch.starts[number] + batch.lengths[number])
    segment = np.cumsum(batch.begins[here])
    inside = batch.inside[here]
    texts = [
        printable(store.tokenizer.decode(batch.ids[here][inside & (segment == which)].tolist()))
        for which in range(1, int(segment.max()) + 1)
    ]
    label = int(batch.labels[number])
    name = "-" if label == NO_LABEL else str(label)
    return str(batch.lengths[number]), name, Text(texts[0]), Text(" / ".join(texts[1:]))

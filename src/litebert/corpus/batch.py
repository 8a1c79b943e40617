"""Samples of a window put together as a batch, with their special tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from litebert.base.batch import Batch
from litebert.corpus.arrange import Samples
from litebert.corpus.window import Window
from litebert.text.tokenizer import Tokenizer


def assemble(window: Window, samples: Samples, tokenizer: Tokenizer, joint: int = 1) -> Batch:
    """Samples with their special tokens; `joint` separators stand between segments of a pair."""
    special = tokenizer.special
    runs = samples.ends - samples.starts
    owner = np.repeat(np.arange(len(samples)), np.diff(samples.fragments))
    final = np.zeros(len(runs), dtype=bool)
    final[samples.fragments[1:] - 1] = True
    first = np.zeros(len(runs), dtype=bool)
    first[samples.fragments[:-1]] = True
    widths = first + runs + np.where(final, 1, joint)  # [CLS], text, separators
    edges = np.concatenate([[0], np.cumsum(widths)])
    begin = edges[:-1] + first
    count = np.cumsum(runs)
    step = np.arange(count[-1] if len(count) else 0)
    inside_at = np.repeat(begin - (count - runs), runs) + step
    ids = np.full(edges[-1], special.sep, dtype=np.int32)
    ids[edges[:-1][first]] = special.cls
    ids[inside_at] = window.ids[np.repeat(samples.starts - (count - runs), runs) + step]
    inside, begins = np.zeros(len(ids), dtype=bool), np.zeros(len(ids), dtype=bool)
    inside[inside_at] = True
    begins[begin] = True
    return Batch(
        ids=ids,
        types=np.repeat(samples.types, widths) * np.int8(tokenizer.kind != "bytes"),
        inside=inside,
        begins=begins,
        lengths=np.bincount(owner, widths, len(samples)).astype(np.int64),
        labels=samples.labels,
        keys=samples.keys,
    )


def join(batches: Sequence[Batch]) -> Batch:
    """Batches end to end, before masking."""
    columns: dict[str, Any] = {
        column.name: np.concatenate([getattr(batch, column.name) for batch in batches])
        for column in fields(Batch)
        if column.name != "together"
    }
    return Batch(**columns)

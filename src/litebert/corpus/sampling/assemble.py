"""Samples of a window put together as a batch, with their special tokens."""

from __future__ import annotations

import numpy as np

from litebert.base.batches import Batch
from litebert.base.ragged import offsets, ranges
from litebert.corpus.sampling.samples import Samples
from litebert.corpus.sampling.window import Window
from litebert.text.tokenizer import Tokenizer


def assemble(window: Window, samples: Samples, tokenizer: Tokenizer, separators: int = 1) -> Batch:
    """Samples with their special tokens; so many separators stand between segments of a pair."""
    runs = samples.ends - samples.starts
    first, last = np.zeros(len(runs), dtype=bool), np.zeros(len(runs), dtype=bool)
    first[samples.fragments[:-1]] = True
    last[samples.fragments[1:] - 1] = True
    widths = first + runs + np.where(last, 1, separators)  # [CLS], text, separators
    edges = offsets(widths)
    begin = edges[:-1] + first
    text = ranges(begin, runs)
    ids = np.full(edges[-1], tokenizer.special.sep, dtype=np.int32)
    ids[edges[:-1][first]] = tokenizer.special.cls
    ids[text] = window.ids[ranges(samples.starts, runs)]
    is_text, segment_starts = np.zeros(len(ids), dtype=bool), np.zeros(len(ids), dtype=bool)
    is_text[text] = True
    segment_starts[begin] = True
    return Batch(
        ids=ids,
        token_types=np.repeat(samples.token_types, widths) * np.int8(tokenizer.has_token_types),
        is_text=is_text,
        segment_starts=segment_starts,
        lengths=np.diff(edges[samples.fragments]),
        labels=samples.labels,
        keys=samples.keys,
    )

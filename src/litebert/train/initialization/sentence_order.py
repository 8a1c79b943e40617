"""Which of two segments stood first, as far as counting tokens can tell.

Some tokens are likelier in an earlier segment than in the one after it (names that are introduced,
"born", "located"), others in a later one ("although", ";", "further"). How much likelier is a
column of the token table; the segments' heads bring its mean over A less its mean over B to [CLS],
and the pooler and the pair head begin by reading that. It decides 56 % of the pairs, but from
nothing small models do not find it for hours: what masked tokens teach the same weights drowns it
(docs/log/initialization.md).

Shapes: V tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from litebert.base.ragged import ranges
from litebert.corpus.sampling.input_formats import INPUT_FORMATS
from litebert.corpus.sampling.samples import make_samples
from litebert.corpus.statistics import SAMPLE_SEED, sample_windows
from litebert.corpus.store import Store
from litebert.model.model import Model
from litebert.train.initialization.attention import way_of
from litebert.train.initialization.tables import EmbeddingColumns

LENGTH = 128  # of the pairs that are counted
PRIOR = 50.0  # occurrences that every token is taken to have had on both sides
ORDER_LENGTH = 0.3  # the column's root mean square over the text
GAIN = 2.0  # of the segments' heads, over all layers
CONFIDENCE = 0.25  # of the pair head, which is right little more than half of the time


def order_evidence(store: Store) -> Tensor:
    """For each token the log odds of standing in the first of two segments, to unit variance."""
    size = store.info.vocab_size
    counts = np.zeros((2, size))
    for window in sample_windows(store):
        samples = make_samples(window, INPUT_FORMATS["albert"], LENGTH, SAMPLE_SEED, 0)
        asked = np.flatnonzero(samples.labels >= 0)
        for segment in (0, 1):
            fragment = samples.fragments[asked] + segment
            starts, ends = samples.starts[fragment], samples.ends[fragment]
            tokens = window.ids[ranges(starts, ends - starts)].astype(np.int64)
            second = np.repeat(samples.labels[asked] ^ segment, ends - starts)  # as it was written
            for side in (0, 1):
                counts[side] += np.bincount(tokens[second == side], minlength=size)
    odds = np.log(counts[0] + PRIOR) - np.log(counts[1] + PRIOR)
    frequencies = counts.sum(0) / max(counts.sum(), 1)
    odds = np.where(frequencies > 0, odds - (odds * frequencies).sum(), 0.0)  # [MASK] tells nothing
    spread = np.sqrt((odds**2 * frequencies).sum())
    return torch.from_numpy(odds / max(spread, 1e-9)).float()


def initialize_order(model: Model, evidence: Tensor) -> None:
    """Write the evidence into the table, and let heads, pooler and pair head read it."""
    config, column = model.config, EmbeddingColumns(model.config.embedding_size).order
    direction = way_of(model)[:, column]
    (known,) = evidence.nonzero(as_tuple=True)
    model.encoder.embeddings.token.weight[known, column] = ORDER_LENGTH * evidence[known]
    size, gain = config.hidden_size // config.num_attention_heads, GAIN / config.num_hidden_layers
    for attention in model.encoder.attentions:
        parts: Any = attention
        value = parts.query_key_value.weight.chunk(3)[2]
        for head, sign in enumerate((1.0, -1.0)):
            value[head * size] = direction
            parts.output.weight[:, head * size] = sign * gain * direction
    pooler: Any = model.pooler
    pooler.dense.weight[0] = direction
    head: Any = model.heads["sentence_pair"]
    head.dense.weight[:, 0] = torch.tensor([CONFIDENCE, -CONFIDENCE])

"""Small models in double precision, and batches of segments whose masked places are told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from litebert.base.batches import Batch
from litebert.model.config import EncoderConfig
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.objectives.registry import build_objectives
from tests.corpus.stores import SPECIAL

CPU = torch.device("cpu")
VOCABULARY = 23
SIZE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "max_position_embeddings": 48,
    "initializer_range": 0.3,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "albert": {"embedding_size": 8},
    "bert": {"embedding_size": 12, "sharing": "none"},
    "roberta": {"embedding_size": 12, "sharing": "none", "pad_token_id": 1, "hidden_act": "gelu"},
    "electra": {"embedding_size": 8, "sharing": "none"},
}


def make_config(family: str, **changes: Any) -> EncoderConfig:
    return EncoderConfig(**{"family": family, **SIZE, **FAMILIES[family], **changes})


def make_model(config: EncoderConfig, heads: Sequence[str], seed: int = 0) -> Model:
    """A model in double precision whose every parameter is random."""
    model = Model.create(config, heads, seed=seed).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.add_(0.2 * noise)
    return model


def make_batch(
    texts: Sequence[Sequence[int]],
    masked: Sequence[Sequence[int]],
    labels: Sequence[int] | None = None,
    seed: int = 0,
) -> Batch:
    """[CLS] A [SEP] B [SEP] from token counts of segments; `masked` are places in a sequence."""
    chance = np.random.default_rng(seed)
    ids, types, inside, begins, lengths, positions = [], [], [], [], [], []
    for segments, places in zip(texts, masked, strict=True):
        start = len(ids)
        ids, types = [*ids, SPECIAL.cls], [*types, 0]
        inside, begins = [*inside, False], [*begins, False]
        for number, count in enumerate(segments):
            ids += [*chance.integers(5, VOCABULARY, count).tolist(), SPECIAL.sep]
            types += [number] * (count + 1)
            inside += [True] * count + [False]
            begins += [True] + [False] * count
        positions += [start + place for place in places]
        lengths.append(len(ids) - start)
    targets = np.array(ids, dtype=np.int32)[positions]
    hidden = np.array(ids, dtype=np.int32)
    hidden[positions] = SPECIAL.mask
    return Batch(
        ids=hidden,
        token_types=np.array(types, dtype=np.int8),
        is_text=np.array(inside, dtype=bool),
        segment_starts=np.array(begins, dtype=bool),
        lengths=np.array(lengths, dtype=np.int64),
        labels=np.array(labels or [-1] * len(lengths), dtype=np.int8),
        keys=chance.integers(0, 2**64, len(lengths), dtype=np.uint64),
        positions=np.array(positions, dtype=np.int64),
        targets=targets.astype(np.int32),
    )


def some_batch(labels: Sequence[int] | None = None) -> Batch:
    return make_batch(
        [[7, 5], [12], [3, 9], [20]],
        [[2, 3, 10], [1, 6, 7, 8], [], [4, 9, 10, 20]],
        labels or [1, -1, 0, 1],
    )


def make_electra(seed: int = 0, weight: float = 50.0) -> Learner:
    """A discriminator and a generator of half its width, with one set of embeddings."""
    model = make_model(make_config("electra"), ["replaced_token"], seed)
    small = make_config("electra", hidden_size=6, num_attention_heads=1, intermediate_size=10)
    generator = make_model(small, ["masked_lm"], seed + 1)
    return Learner(model, build_objectives(["replaced_token"], weight), generator)

"""Small learners of every family, as the papers have them and initialized from a corpus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from litebert.configs.load import load_preset
from litebert.configs.schema import Preset
from litebert.corpus.statistics import token_counts
from litebert.corpus.store import Store
from litebert.objectives.learner import Learner
from litebert.train.build import build_learner, fit_to_corpus
from litebert.train.initialization.corpus import initialize_from_corpus
from tests.corpus.stores import make_documents, write_bytes, write_pieces, write_wordpiece

WRITERS: dict[str, Callable[[Path], Path]] = {
    "pieces": write_pieces, "wordpiece": write_wordpiece, "bytes": write_bytes,
}  # fmt: skip
DOCUMENTS = make_documents(1, 40, (1, 8), (1, 8))
SMALL = [
    "model.hidden_size=16", "model.num_hidden_layers=2", "model.num_attention_heads=2",
    "model.intermediate_size=20", "model.hidden_dropout_prob=0", "stages=[]",
    "model.attention_probs_dropout_prob=0", "data.max_length=32", "data.batch_size=4",
    "data.dupe_factor=0", "evaluation.sequences=4", "precision=fp32", "budget=1steps",
    "initialization=corpus",
]  # fmt: skip
FAMILIES: dict[str, tuple[str, str, list[str]]] = {
    "albert": ("albert-base", "pieces", ["model.embedding_size=8"]),
    "albert-unshared": ("albert-base", "pieces", ["model.embedding_size=8", "model.sharing=none"]),
    "bert": ("bert-base", "wordpiece", ["model.embedding_size=16"]),
    "roberta": ("roberta-base", "bytes", ["model.embedding_size=16"]),
    "spanbert": ("spanbert-base", "wordpiece", ["model.embedding_size=16"]),
    "electra": ("electra-small", "wordpiece", [
        "model.embedding_size=8", "generator.hidden_size=4", "generator.intermediate_size=8",
    ]),
}  # fmt: skip


def fitted(family: str, stores: dict[str, Store]) -> tuple[Preset, Store]:
    name, kind, overrides = FAMILIES[family]
    store = stores[kind]
    return fit_to_corpus(load_preset(name, [*SMALL, *overrides]), store), store


def fresh(preset: Preset) -> Learner:
    return build_learner(preset, torch.device("cpu"), (None, None), pytest.fail)


def started(family: str, stores: dict[str, Store]) -> tuple[Learner, Learner, Store]:
    """A learner as the paper has it, and one initialized from the corpus."""
    preset, store = fitted(family, stores)
    plain, counted = fresh(preset), fresh(preset)
    initialize_from_corpus(counted, store, token_counts(store))
    return plain, counted, store


def assert_orthogonal(weight: Tensor) -> None:
    """Of a wide matrix the rows, of a tall one the columns."""
    wide = weight @ weight.T if weight.shape[0] <= weight.shape[1] else weight.T @ weight
    torch.testing.assert_close(wide, torch.eye(len(wide)), atol=1e-5, rtol=0)

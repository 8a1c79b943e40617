"""Which segment stood first: what is counted of it, and what the model makes of that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from litebert.configs.load import load_preset
from litebert.configs.schema import Preset
from litebert.corpus.statistics import token_counts
from litebert.corpus.store import Store
from litebert.model.inputs import to_inputs
from litebert.objectives.learner import Learner
from litebert.train.build import fit_to_corpus
from litebert.train.initialization.corpus import initialize_from_corpus
from litebert.train.initialization.sentence_order import order_evidence
from litebert.train.initialization.tables import EmbeddingColumns
from litebert.train.speed import text_batches
from tests.corpus.stores import WORDS, make_store, write_pieces
from tests.train.initialization.learners import SMALL, fresh

EARLY = range(WORDS // 2 - 20)  # words of first sentences; the last forty occur in both


def sentence(words: range, generator: np.random.Generator) -> str:
    chosen = [*generator.choice(words, 6), *generator.choice(range(WORDS - 40, WORDS), 6)]
    return " ".join(f"w{word}q" for word in chosen)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Documents of two sentences, whose words tell which is which."""
    folder: Path = tmp_path_factory.mktemp("order")
    generator = np.random.default_rng(5)
    late = range(EARLY.stop, WORDS - 40)
    documents = [[sentence(words, generator) for words in (EARLY, late)] for _ in range(600)]
    return make_store(folder / "store", documents, write_pieces(folder / "tokenizer"))


def test_evidence_is_the_side_on_which_a_token_stands(store: Store) -> None:
    evidence, counts = order_evidence(store), token_counts(store)
    for word in range(WORDS):
        (token,) = store.tokenizer.encode(f"w{word}q")
        if word >= WORDS - 40:
            assert abs(evidence[token]) < 0.6, "in both"
        else:
            assert evidence[token] * (1 if word in EARLY else -1) > 0.9
    frequencies = torch.from_numpy(counts / counts.sum()).float()
    assert (evidence**2 @ frequencies).item() == pytest.approx(1, abs=0.05)
    assert abs(evidence @ frequencies) < 0.05
    assert not evidence[counts == 0].any(), "[MASK] and what never occurs tell nothing"


def started(store: Store, order: bool) -> tuple[Learner, Preset]:
    overrides = [*SMALL, "model.hidden_size=64", "model.num_attention_heads=4",
                 "model.embedding_size=32"]  # fmt: skip
    preset = fit_to_corpus(load_preset("albert-base", overrides), store)
    learner = fresh(preset)
    initialize_from_corpus(learner, store, token_counts(store), order=order)
    return learner, preset


def test_order_is_told_before_the_first_step(store: Store) -> None:
    learner, preset = started(store, order=True)
    correct, asked = 0, 0
    for batch in text_batches(preset, store, 64, 32):
        with torch.no_grad():
            _, order_term = learner(to_inputs(batch, torch.device("cpu")))
        asked += int((batch.labels >= 0).sum())
        correct += int(order_term.counts[0])
    assert asked > 200
    assert correct / asked > 0.95


def test_nothing_is_counted_of_it_where_objectives_are_compared(store: Store) -> None:
    learner, preset = started(store, order=False)
    column = EmbeddingColumns(preset.model.embedding_size).order
    known = torch.from_numpy(token_counts(store)).nonzero().squeeze(1)
    assert not learner.model.encoder.embeddings.token.weight[known, column].any()

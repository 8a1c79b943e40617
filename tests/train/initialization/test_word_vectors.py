"""Word vectors of a corpus against a literal count and a singular value decomposition."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from litebert.base.randomness import Purpose, random_bits, uniform
from litebert.corpus.statistics import token_counts
from litebert.corpus.store import Store
from litebert.train.initialization import word_vectors as vectors_module
from litebert.train.initialization.word_vectors import word_vectors
from tests.corpus.stores import make_store, write_wordpiece
from tests.train.initialization.learners import DOCUMENTS


def training_ids(store: Store) -> list[list[int]]:
    """The pieces of every document that is not held out, read from the shards one by one."""
    texts = []
    for number in range(len(store.paths)):
        shard = store.shard(number)
        edges = shard.sentences[shard.documents].tolist()
        for key, start, end in zip(shard.keys, edges, edges[1:], strict=False):
            if float(uniform(random_bits(Purpose.HELD_OUT, key))) >= store.info.held_out:
                texts.append(shard.ids[start:end].tolist())
    return texts


def literal_information(texts: list[list[int]], vocabulary: int, contexts: int) -> Tensor:
    """max(0, log p(piece, context) / (p(piece) p'(context))), p' smoothed by a power of 0.75."""
    counts = np.bincount([piece for text in texts for piece in text], minlength=vocabulary)
    frequent = sorted(range(vocabulary), key=lambda piece: (-counts[piece], piece))[:contexts]
    column = {piece: number for number, piece in enumerate(frequent)}
    near: dict[tuple[int, int], float] = defaultdict(float)
    for text in texts:
        for here, piece in enumerate(text):
            for there in range(max(here - 5, 0), min(here + 6, len(text))):
                if there != here and text[there] in column:
                    near[piece, column[text[there]]] += 1 / abs(there - here)
    total = sum(near.values())
    rows, columns = np.zeros(vocabulary), np.zeros(contexts)
    for (piece, context), count in near.items():
        rows[piece] += count
        columns[context] += count
    smooth = columns**0.75 / (columns**0.75).sum()
    information = torch.zeros(vocabulary, contexts, dtype=torch.float64)
    for (piece, context), count in near.items():
        ratio = (count / total) / (rows[piece] / total * smooth[context])
        information[piece, context] = max(0.0, math.log(ratio))
    return information


def literal_gram(information: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Inner products of U_k S_k^(1/2), which no sign or rotation changes; and all of S."""
    left, strength, _ = torch.linalg.svd(information, full_matrices=False)
    chosen = left[:, :size]
    return chosen * strength[:size] @ chosen.T, strength


def assert_same_products(found: Tensor, gram: Tensor) -> None:
    mine = found.double() @ found.double().T
    assert (mine - gram).abs().max() < 2e-3 * gram.abs().max()


@pytest.mark.parametrize("size", [4, 16])
def test_vectors_are_those_of_a_singular_value_decomposition(
    size: int, stores: dict[str, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "CONTEXTS", 1024)  # more than there are pieces
    store = stores["bytes"]
    vocabulary = store.info.vocab_size
    information = literal_information(training_ids(store), vocabulary, vocabulary)
    gram, strength = literal_gram(information, size)
    assert strength[size - 1] > 1.002 * strength[size], "the literal answer is not unique"
    found = word_vectors(store, token_counts(store), size)
    assert found.shape == (vocabulary, size)
    assert found.dtype == torch.float32
    assert_same_products(found, gram)


def test_only_the_most_frequent_pieces_are_contexts(
    stores: dict[str, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "CONTEXTS", 30)
    store = stores["wordpiece"]
    texts = training_ids(store)
    information = literal_information(texts, store.info.vocab_size, 30)
    used = information.abs().sum(1) > 0
    gram, strength = literal_gram(information[used], 12)
    assert strength[11] > 1.002 * strength[12]
    found = word_vectors(store, token_counts(store), 12)
    assert not found[~used].any()
    assert_same_products(found[used], gram)


def test_more_columns_than_the_text_has_to_say(tmp_path: Path) -> None:
    """Past the rank there is nothing to add: no noise is blown up to the size of the rest."""
    documents = [[f"s{one} s{two}"] for one in range(12) for two in range(20, 32)]
    store = make_store(tmp_path / "store", documents, write_wordpiece(tmp_path / "tokenizer"))
    information = literal_information(training_ids(store), store.info.vocab_size, 64)
    used = information.abs().sum(1) > 0
    gram, strength = literal_gram(information[used], 16)
    assert int((strength > 1e-9 * strength[0]).sum()) == 2
    found = word_vectors(store, token_counts(store), 16)
    assert found.isfinite().all()
    assert_same_products(found[used], gram)


def test_more_columns_than_contexts(
    stores: dict[str, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "CONTEXTS", 10)
    found = word_vectors(stores["bytes"], token_counts(stores["bytes"]), 24)
    assert found.shape[1] == 24
    assert not found[:, 10:].any()
    assert found[:, :10].any()


def test_pairs_never_cross_documents(tmp_path: Path) -> None:
    """Documents of one piece each have no pair at all."""
    documents = [[f"s{number % 50}"] for number in range(200)]
    store = make_store(tmp_path / "store", documents, write_wordpiece(tmp_path / "tokenizer"))
    assert not word_vectors(store, token_counts(store), 8).any()


def test_pairs_cross_the_sentences_of_a_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "CONTEXTS", 100)
    documents = [[f"s{number}", f"s{number + 1}"] for number in range(0, 100, 2)]
    store = make_store(tmp_path / "store", documents, write_wordpiece(tmp_path / "tokenizer"))
    found = word_vectors(store, token_counts(store), 100)
    gram = found @ found.T
    pieces = [store.tokenizer.encode(f"s{number}")[0] for number in range(100)]
    assert (gram[pieces, pieces] > 0.1).all()


def test_held_out_documents_are_not_looked_at(stores: dict[str, Store]) -> None:
    store = stores["wordpiece"]
    seen = {piece for text in training_ids(store) for piece in text}
    found = word_vectors(store, token_counts(store), 16)
    known = set(torch.nonzero(found.abs().sum(1)).flatten().tolist())
    assert known <= seen
    everything = {piece for document in DOCUMENTS for sentence in document
                  for piece in store.tokenizer.encode(sentence)}  # fmt: skip
    assert everything - seen


def test_vectors_are_the_same_every_time(stores: dict[str, Store]) -> None:
    store = stores["wordpiece"]
    counts = token_counts(store)
    torch.manual_seed(1)
    one = word_vectors(store, counts, 16)
    torch.manual_seed(2)
    assert torch.equal(one, word_vectors(Store(store.folders), counts, 16))

"""Counts of pieces: those of the training documents, neither more nor less."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from litebert.base.randomness import Purpose, random_bits, uniform
from litebert.corpus import shard, statistics
from litebert.corpus.statistics import sample_windows, token_counts, unigram_loss
from litebert.corpus.store import Store, open_store
from tests.corpus.stores import make_documents, make_store, write_bytes

Documents = list[list[str]]


def plain_counts(store: Store, documents: Documents) -> list[int]:
    """A count of the ids of every sentence of the given documents."""
    found: Counter[int] = Counter()
    for document in documents:
        for sentence in document:
            found.update(store.tokenizer.encode(sentence))
    return [found[piece] for piece in range(store.info.vocab_size)]


def all_keys(store: Store) -> list[int]:
    """The keys of all documents, in the order of the text."""
    return [int(key) for number in range(len(store.paths)) for key in store.shard(number).keys]


def training_documents(store: Store, documents: Documents) -> Documents:
    """Those not held out, and of equal ones the first where they were prepared so."""
    keys, seen, kept = all_keys(store), set(), []
    assert len(keys) == len(documents)
    for key, document in zip(keys, documents, strict=True):
        held_out = (
            float(uniform(random_bits(Purpose.HELD_OUT, np.uint64(key)))) < store.info.held_out
        )
        repeated = store.info.drop_duplicates and key in seen
        seen.add(key)
        if not held_out and not repeated:
            kept.append(document)
    return kept


def with_duplicates() -> Documents:
    documents = make_documents(3, 60)
    return [*documents, *documents[10:30], documents[15]]


@pytest.mark.parametrize("held_out", [0.0, 0.3])
@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("chunk_bytes", [3000, 2**24])
def test_a_plain_count(
    held_out: float, drop: bool, chunk_bytes: int, pieces: Path, tmp_path: Path
) -> None:
    documents = with_duplicates()
    store = make_store(tmp_path / "store", documents, pieces, held_out=held_out,
                       drop_duplicates=drop, chunk_bytes=chunk_bytes)  # fmt: skip
    kept = training_documents(store, documents)
    assert (len(kept) < len(documents)) == (held_out > 0 or drop)
    counts = token_counts(store)
    assert counts.dtype == np.int64
    assert counts.tolist() == plain_counts(store, kept)
    assert counts.tolist() == token_counts(open_store(store.folders[0])).tolist()


def test_held_out_sentences_are_not_seen(pieces: Path, tmp_path: Path) -> None:
    """Every sentence opens with a piece of its own, so leaking one would show."""
    documents = make_documents(0, 80)
    store = make_store(tmp_path / "store", documents, pieces, held_out=0.4)
    kept = training_documents(store, documents)
    first = {store.tokenizer.encode(sentence)[0] for document in kept for sentence in document}
    counts = token_counts(store)
    numbered = [n for n, piece in enumerate(store.tokenizer.tokens) if piece.startswith("▁s")]
    assert {piece for piece in numbered if counts[piece]} == first


def test_no_special_piece_occurs(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", make_documents(0, 20), write_bytes(tmp_path / "bpe"))
    counts = token_counts(store)
    assert not counts[store.tokenizer.special_mask].any()
    assert counts.sum() == store.total.tokens


def test_a_large_text_is_sampled(
    pieces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows until there are tokens enough; always the same ones."""
    monkeypatch.setattr(shard, "BLOCK_TOKENS", 10)
    store = make_store(tmp_path / "store", make_documents(0, 300, (1, 3)), pieces)
    whole = [len(window.ids) for window in sample_windows(store)]
    assert len(whole) > 3
    assert sum(whole) == store.total.tokens
    some = list(sample_windows(store, whole[0] + 1))
    assert [len(window.ids) for window in some] == whole[:2]
    assert [len(window.ids) for window in sample_windows(store, whole[0])] == whole[:1]
    again = list(sample_windows(open_store(store.folders[0]), whole[0] + 1))
    for one, two in zip(some, again, strict=True):
        assert one.ids.tolist() == two.ids.tolist()
    assert list(sample_windows(store, 0)) == []
    assert token_counts(store).tolist() == plain_counts(store, make_documents(0, 300, (1, 3)))
    assert statistics.MAX_TOKENS >= 10_000_000


def test_nothing_to_train_on_counts_nothing(pieces: Path, tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", make_documents(0, 3), pieces, held_out=0.999)
    assert token_counts(store).sum() == 0
    assert unigram_loss(token_counts(store)) == 0


def test_unigram_level_is_the_entropy() -> None:
    assert unigram_loss(np.array([5, 5, 0, 5, 5])) == pytest.approx(math.log(4))
    assert unigram_loss(np.array([0, 9, 0])) == 0
    counts = np.array([1, 2, 5, 0])
    expected = -(1 / 8 * math.log(1 / 8) + 2 / 8 * math.log(2 / 8) + 5 / 8 * math.log(5 / 8))
    assert unigram_loss(counts) == pytest.approx(expected, rel=1e-12)
    assert isinstance(unigram_loss(counts), float)


def test_unigram_level_is_what_guessing_by_frequency_costs() -> None:
    counts = np.random.default_rng(0).integers(0, 50, 400)
    text = np.repeat(np.arange(400), counts)
    shares = counts / counts.sum()
    assert unigram_loss(counts) == pytest.approx(float(-np.log(shares[text]).mean()), rel=1e-12)

"""The loader: every sentence of a split once an epoch, and every token counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from litebert.base.errors import SettingsError
from litebert.corpus.sampling.window import read_window, window_count
from litebert.corpus.store import Store
from litebert.objectives.masking import Masker, Masking
from tests.corpus.input_formats import NAMES
from tests.corpus.loaders import WINDOW, batches_of, interleave, make
from tests.corpus.stores import make_documents, make_store, sentence_numbers

RANDOM_NEXT = ("bert", "segment-pair", "sentence-pair", "albert-google")


def split_texts(store: Store, split: str) -> list[tuple[int, ...]]:
    """The ids of every sentence of a split."""
    found = []
    for number in range(window_count(store, WINDOW)):
        window = read_window(store, split, 0, 0, number, WINDOW)
        cuts = np.split(window.ids, window.sentences[1:-1])
        found += [tuple(cut.tolist()) for cut in cuts if len(cut)]
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("split", ["train", "held_out"])
def test_every_sentence_enters_one_sample_an_epoch(store: Store, name: str, split: str) -> None:
    """Told from the ids alone: each sentence opens with its number."""
    loader = make(
        store, input_format=name, split=split, epochs=1, max_length=512, batch_by="tokens"
    )
    batches = list(loader)
    numbers = sentence_numbers(store.tokenizer)
    found = Counter(
        number
        for batch in batches
        for number in numbers[batch.ids[batch.is_text]].tolist()
        if number >= 0
    )
    wanted = Counter(int(numbers[text[0]]) for text in split_texts(store, split))
    assert set(wanted.values()) == {1}
    assert loader.statistics.truncated_tokens == 0
    if name in RANDOM_NEXT:
        assert set(found) == set(wanted)
        # What is more than once is borrowed, and all of that is counted.
        text = sum(int(batch.is_text.sum()) for batch in batches)
        own = sum(map(len, split_texts(store, split)))
        assert text - own == loader.statistics.random_next_tokens
    else:
        assert found == wanted
        assert loader.statistics.random_next_tokens == 0
    with pytest.raises(StopIteration):
        next(loader)


@pytest.mark.parametrize("name", RANDOM_NEXT)
def test_held_out_samples_borrow_from_held_out_documents_alone(store: Store, name: str) -> None:
    numbers = sentence_numbers(store.tokenizer)
    held_out = {int(numbers[text[0]]) for text in split_texts(store, "held_out")}
    train = {int(numbers[text[0]]) for text in split_texts(store, "train")}
    assert not held_out & train
    for split, own in (("held_out", held_out), ("train", train)):
        for seed in (0, 1):
            for batch in make(store, input_format=name, split=split, seed=seed):
                assert set(numbers[batch.ids].tolist()) - {-1} <= own


def test_the_statistics_count_every_token(store: Store) -> None:
    for name in NAMES:
        loader = make(store, input_format=name, epochs=1, max_length=24)
        batches = list(loader)
        assert loader.statistics.sequences == sum(map(len, batches))
        assert loader.statistics.tokens == sum(len(batch.ids) for batch in batches)
        assert loader.statistics.padded_tokens == sum(
            len(b) * int(b.lengths.max()) for b in batches
        )
        assert loader.statistics.unlabelled == sum(int((b.labels < 0).sum()) for b in batches)
        text = sum(int(batch.is_text.sum()) for batch in batches)
        own = sum(map(len, split_texts(store, "train")))
        if not loader.statistics.random_next_tokens:
            assert text + loader.statistics.truncated_tokens == own, name


def test_a_split_without_text_is_one_clear_error(
    tmp_path: Path, pieces: Path, store: Store
) -> None:
    plain = make_store(tmp_path / "store", make_documents(1, 3), pieces)
    with pytest.raises(SettingsError, match="held-out"):
        make(plain, split="held_out")
    rare = make_store(tmp_path / "b" / "store", make_documents(1, 3), pieces, held_out=1e-12)
    with pytest.raises(SettingsError, match="held_out"):
        next(make(rare, split="held_out", epochs=None))
    assert list(make(rare, split="held_out", epochs=1)) == []


def test_a_store_of_one_short_document(tmp_path: Path, pieces: Path) -> None:
    tiny = make_store(tmp_path / "store", [["s1"]], pieces)
    for name in NAMES:
        for by in ("sequences", "tokens"):
            masker = Masker(Masking(), tiny.tokenizer)
            found = batches_of(make(tiny, masker, input_format=name, batch_by=by, epochs=1))
            assert [len(sample[2]) for batch in found for sample in batch] == [3]
            options = {"input_format": name, "batch_by": by, "epochs": 1, "world_size": 4}
            shares = [batches_of(make(tiny, masker, rank=rank, **options)) for rank in range(4)]
            assert interleave(shares) == found

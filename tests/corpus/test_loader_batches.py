"""The loader's batches: full, within their budget, padded and back."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from litebert.base.batches import bucket_by_length, pad
from litebert.base.errors import LitebertError, SettingsError
from litebert.corpus.loader import Loader, LoaderSettings
from litebert.corpus.preparing.prepare import prepare
from litebert.corpus.sampling.assemble import assemble
from litebert.corpus.sampling.input_formats import INPUT_FORMATS
from litebert.corpus.store import Store
from litebert.objectives.masking import Masker, Masking
from tests.corpus.input_formats import NAMES
from tests.corpus.loaders import batches_of, make, split_samples
from tests.corpus.stores import binomial_error, make_documents, make_store, write_bytes


def test_batches_by_sequences_are_full_until_the_end(store: Store) -> None:
    sizes = [len(batch) for batch in make(store, batch_size=10)]
    assert set(sizes[:-1]) == {10}
    assert 0 < sizes[-1] <= 10


@pytest.mark.parametrize(
    ("name", "batch", "length"),
    [*((name, 4, 48) for name in NAMES), ("albert", 1, 16), ("albert", 8, 128), ("bert", 2, 512)],
)
def test_batches_by_tokens_stay_within_their_budget(
    store: Store, name: str, batch: int, length: int
) -> None:
    loader = make(
        store, input_format=name, batch_by="tokens", batch_size=batch, max_length=length, epochs=1
    )
    found = list(loader)
    sizes = [int(batch.lengths.max()) * len(batch) for batch in found]
    assert max(sizes) <= batch * length
    plain = make(store, input_format=name, batch_size=batch, max_length=length, epochs=1)
    assert sorted(s for b in batches_of(plain) for s in b) == sorted(
        s for b in map(split_samples, found) for s in b
    )
    assert batch == 1 or loader.statistics.padding_fraction <= plain.statistics.padding_fraction
    assert loader.statistics.padding_fraction < 0.12
    # As many as fit: two neighbours in length never fit into one batch.
    ranked = sorted(found, key=lambda batch: (batch.lengths.max(), batch.lengths.min()))
    for one, two in pairwise(ranked):
        assert (len(one) + len(two)) * int(two.lengths.max()) > batch * length or two is ranked[-1]


def test_padding_is_small_where_there_is_much_to_choose_from(store: Store) -> None:
    """A pool is at most an epoch, which is small here; on real text see benchmarks/loader.py."""
    shares = {}
    for by in ("tokens", "sequences"):
        loader = make(store, batch_by=by, batch_size=8, max_length=64, epochs=6)
        for _ in loader:
            pass
        shares[by] = loader.statistics.padding_fraction
    assert shares["tokens"] < 0.04
    assert shares["tokens"] < shares["sequences"] / 4


def test_bucket_by_length_takes_every_sequence_once_and_keeps_the_budget() -> None:
    chance = np.random.default_rng(0)
    for _ in range(200):
        lengths = chance.integers(1, 60, int(chance.integers(0, 80)))
        budget = int(chance.integers(60, 300))
        batches = bucket_by_length(lengths, max_tokens=budget, padded=True)
        every = np.concatenate([*batches, np.zeros(0, dtype=np.int64)])
        assert sorted(every.tolist()) == list(range(len(lengths)))
        for batch in batches:
            assert len(batch)
            assert lengths[batch].max() * len(batch) <= budget


def test_padding_a_batch_and_back(store: Store, masker: Masker) -> None:
    pad_id = store.tokenizer.special.pad
    for batch in make(store, masker, batch_by="tokens", epochs=1):
        for length in (None, 48, 60):
            wide = pad(batch, pad_id, length)
            width = length or int(batch.lengths.max())
            assert (
                wide.ids.shape
                == wide.token_types.shape
                == wide.attention_mask.shape
                == (len(batch), width)
            )
            assert wide.attention_mask.sum(axis=1).tolist() == batch.lengths.tolist()
            assert (
                np.diff(wide.attention_mask.astype(int), axis=1) <= 0
            ).all()  # real tokens come first
            assert wide.ids[wide.attention_mask].tolist() == batch.ids.tolist()
            assert wide.token_types[wide.attention_mask].tolist() == batch.token_types.tolist()
            assert (wide.ids[~wide.attention_mask] == pad_id).all()
            assert not wide.token_types[~wide.attention_mask].any()
            assert wide.attention_mask.flat[wide.positions].all()
            flat = np.zeros(len(batch) * width, dtype=bool)
            flat[wide.positions] = True
            packed = np.zeros(len(batch.ids), dtype=bool)
            packed[batch.positions] = True
            assert (
                flat.reshape(wide.attention_mask.shape)[wide.attention_mask].tolist()
                == packed.tolist()
            )
            assert wide.targets.tolist() == batch.targets.tolist()
            original = wide.ids.copy()
            original.flat[wide.positions] = wide.targets
            plain = batch.ids.copy()
            plain[batch.positions] = batch.targets
            assert original[wide.attention_mask].tolist() == plain.tolist()


def test_padding_to_less_than_a_sequence_is_never_silent(store: Store) -> None:
    """Even where the last sequence is short, so that all tokens have some place to go."""
    batches = [batch for batch in make(store) if batch.lengths[-1] < batch.lengths.max() - 1]
    for batch in batches:
        with pytest.raises((LitebertError, ValueError, AssertionError)):
            pad(batch, 0, int(batch.lengths.max()) - 1)


def test_packed_coordinates(store: Store) -> None:
    batch = next(make(store))
    where = 0
    for number, size in enumerate(batch.lengths.tolist()):
        assert batch.starts[number] == where
        assert (batch.sequence_ids[where : where + size] == number).all()
        assert batch.position_ids[where : where + size].tolist() == list(range(size))
        where += size
    assert where == len(batch.ids)


def test_bytes_make_robertas_pairs(tmp_path: Path) -> None:
    documents = make_documents(2, 20, words=(0, 2))
    store = make_store(tmp_path / "store", documents, write_bytes(tmp_path / "bpe"))
    cls, sep = store.tokenizer.special.cls, store.tokenizer.special.sep
    for name in NAMES:
        for batch in make(store, input_format=name, epochs=1, max_length=64):
            assert batch.lengths.max() <= 64
            assert not batch.token_types.any()
            for _, label, ids, *_ in split_samples(batch):
                inner = [place for place, one in enumerate(ids[:-1]) if one == sep]
                assert ids[0] == cls
                assert ids[-1] == sep
                assert ids.count(cls) == 1
                if INPUT_FORMATS[name].form == "pair" and inner:
                    assert len(inner) == 2
                    assert inner[1] == inner[0] + 1
                elif INPUT_FORMATS[name].form == "pair":
                    assert label == -1
                elif name != "full-sentences":
                    assert not inner


def test_samples_named_by_loader_are_those_of_arranging(store: Store) -> None:
    """A sample is a function of its window, not of the batch that it came in."""
    every = {sample[0]: sample for batch in batches_of(make(store, epochs=1)) for sample in batch}
    again = batches_of(make(store, epochs=1, batch_by="tokens", batch_size=3))
    assert {sample[0]: sample for batch in again for sample in batch} == every
    loader = make(store, epochs=1)
    found = loader.stream.window_samples(0, 0)
    for sample in split_samples(assemble(found.window, found.samples, store.tokenizer)):
        assert every[sample[0]] == sample


@pytest.mark.parametrize("field", [
    {"max_length": 7}, {"batch_size": 0}, {"seed": -1}, {"dupe_factor": -1}, {"batch_by": "bytes"},
    {"split": "test"},
])  # fmt: skip
def test_settings_out_of_range_are_refused(field: dict) -> None:
    with pytest.raises(SettingsError, match=next(iter(field))):
        LoaderSettings.build(field, "here")


def test_real_text(real_data: Path, tmp_path: Path) -> None:
    import gzip
    import itertools

    text = tmp_path / "enwiki.jsonl"
    with gzip.open(real_data / "text" / "enwiki.jsonl.gz", "rt", encoding="utf-8") as lines:
        text.write_text("".join(itertools.islice(lines, 150)), encoding="utf-8")
    made = prepare(
        [str(text)],
        real_data / "tokenizers" / "albert-en" / "spiece.model",
        tmp_path / "store",
        held_out=0.05,
        chunk_bytes=2**18,
        num_workers=1,
    ).store
    masker = Masker(Masking(max_predictions=20), made.tokenizer)
    special = made.tokenizer.special
    labels = Counter()
    for length in (128, 512):
        loader = Loader(
            made, LoaderSettings(max_length=length, batch_by="tokens"), masker, epochs=1
        )
        for batch in loader:
            labels.update(batch.labels.tolist())
            assert batch.lengths.max() <= length
            assert batch.is_text[batch.positions].all()
            assert (batch.ids[batch.starts] == special.cls).all()
            assert (batch.ids[batch.starts + batch.lengths - 1] == special.sep).all()
            assert not np.isin(batch.targets, [special.pad, special.cls, special.sep]).any()
            wanted = np.clip(np.rint(0.15 * batch.lengths), 1, 20)
            hidden = np.bincount(batch.sequence_ids[batch.positions], minlength=len(batch))
            assert (hidden <= wanted).all()
            assert hidden.sum() > 0.995 * wanted.sum()
    pairs = labels[0] + labels[1]
    assert abs(labels[0] / pairs - 0.5) < binomial_error(pairs, 0.5)
    assert loader.statistics.padding_fraction < 0.02

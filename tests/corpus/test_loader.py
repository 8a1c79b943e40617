"""The loader: the same samples whatever the ranks and workers; seeds, epochs and copies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from litebert.base.errors import LitebertError, SettingsError
from litebert.corpus import loader as loaders
from litebert.corpus.prefetch import Prefetcher
from litebert.corpus.store import Store
from litebert.objectives.masking import Masker
from tests.corpus.input_formats import NAMES
from tests.corpus.loaders import as_sets, batches_of, digest, interleave, make
from tests.corpus.stores import sentence_numbers


@pytest.mark.parametrize("by", ["sequences", "tokens"])
@pytest.mark.parametrize("name", ["albert", "bert", "full-sentences"])
def test_ranks_do_not_change_the_samples(store: Store, masker: Masker, by: str, name: str) -> None:
    one = batches_of(make(store, masker, batch_by=by, input_format=name))
    assert len(one) > 15
    for ranks in (2, 4):
        shares = [
            batches_of(
                make(store, masker, batch_by=by, input_format=name, rank=rank, world_size=ranks)
            )
            for rank in range(ranks)
        ]
        together = interleave(shares)
        if by == "tokens":
            assert as_sets(together) == as_sets(one)
        else:
            assert digest(together) == digest(one)
        sizes = [[len(batch) for batch in share] for share in shares]
        assert np.ptp(np.array(sizes), axis=0).max() <= 1


@pytest.mark.parametrize(("workers", "ranks", "by"), [
    (2, 2, "sequences"), (4, 1, "sequences"), (2, 1, "tokens"), (4, 4, "tokens"),
])  # fmt: skip
def test_workers_do_not_change_the_batches(
    store: Store, masker: Masker, workers: int, ranks: int, by: str
) -> None:
    rank = ranks - 1
    plain = make(store, masker, batch_by=by, rank=rank, world_size=ranks)
    wanted = batches_of(plain)
    loader = make(store, masker, batch_by=by, rank=rank, world_size=ranks)
    with Prefetcher(loader, workers) as batches:
        assert digest(batches_of(batches)) == digest(wanted)
    assert loader.statistics == plain.statistics


def test_no_workers_is_the_loader_itself(store: Store, masker: Masker) -> None:
    with Prefetcher(make(store, masker), 0) as batches:
        assert digest(batches_of(batches)) == digest(batches_of(make(store, masker)))


def test_the_end_of_the_workers_is_an_end_that_stays(store: Store) -> None:
    with Prefetcher(make(store, epochs=1, batch_size=512), 2) as batches:
        assert list(batches)
        assert list(batches) == []


def test_an_error_in_a_worker_is_told_as_it_is(store: Store, tmp_path: Path) -> None:
    loader = make(store)
    loader.store = Store(store.folders)
    loader.store.folders = [tmp_path / "gone"]
    with Prefetcher(loader, 1) as batches, pytest.raises(LitebertError, match="gone"):
        next(batches)


def test_seeds_and_epochs_differ(store: Store, masker: Masker) -> None:
    one, two = (batches_of(make(store, masker, seed=seed)) for seed in (0, 1))
    assert one == batches_of(make(store, masker, seed=0))
    assert digest(one) != digest(two)
    samples = [sample for batch in one for sample in batch]
    half = len(batches_of(make(store, masker, epochs=1)))
    keys = [{sample[0] for batch in some for sample in batch} for some in (one[:half], one[half:])]
    assert len(keys[0] & keys[1]) <= 16  # a batch may stand across the epochs' border
    assert len({sample[0] for sample in samples}) == len(samples)


@pytest.mark.parametrize("seed", [2**32, 2**63, 2**64 - 1])
def test_large_seeds_are_seeds(store: Store, masker: Masker, seed: int) -> None:
    found = batches_of(make(store, masker, seed=seed, epochs=1))
    assert digest(found) != digest(batches_of(make(store, masker, seed=seed - 1, epochs=1)))


def test_a_seed_that_is_too_large_is_refused_by_name(store: Store) -> None:
    def load() -> None:
        next(make(store, seed=2**64))

    with pytest.raises((SettingsError, ValueError), match="seed"):
        load()


def epoch_samples(store: Store, masker: Masker, epoch: int, **options) -> Counter:
    """The samples of an epoch, as a set."""
    loader = make(store, masker, epochs=epoch + 1, batch_size=10**6, **options)
    loader.position = loaders.START.model_copy(update={"epoch": epoch})
    return Counter(sample for batch in batches_of(loader) for sample in batch)


@pytest.mark.parametrize("name", NAMES)
def test_static_copies_repeat_and_dynamic_samples_do_not(
    store: Store, masker: Masker, name: str
) -> None:
    options = {"input_format": name, "max_length": 32}
    static = [epoch_samples(store, masker, epoch, dupe_factor=2, **options) for epoch in range(4)]
    assert not static[0] & static[1]
    for one, two in ((static[0], static[2]), (static[1], static[3])):
        assert one.total() == two.total()
        assert (one & two).total() == one.total()
    dynamic = [epoch_samples(store, masker, epoch, **options) for epoch in range(3)]
    assert not dynamic[0] & dynamic[1]
    assert not dynamic[0] & dynamic[2]


@pytest.mark.parametrize("name", ["albert", "full-sentences"])
def test_the_order_of_samples_is_shuffled(store: Store, name: str) -> None:
    loader = make(store, epochs=1, batch_size=10**6, input_format=name)
    (batch,) = loader
    numbers = sentence_numbers(store.tokenizer)
    opening = numbers[batch.ids[batch.starts + 1]]
    opening = opening[opening >= 0]
    rises = float((np.diff(opening) > 0).mean())
    assert abs(rises - 0.5) < 0.2

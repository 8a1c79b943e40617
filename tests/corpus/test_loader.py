"""The loader: the same samples whatever the ranks, workers and restarts; every sentence once."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litebert.base.batches import Batch, bucket_by_length, pad
from litebert.base.errors import LitebertError, SettingsError
from litebert.corpus import loader as loaders
from litebert.corpus import shard as shards
from litebert.corpus.loader import Loader, LoaderSettings
from litebert.corpus.prefetch import Prefetcher
from litebert.corpus.preparing.prepare import prepare
from litebert.corpus.sampling.assemble import assemble
from litebert.corpus.sampling.input_formats import INPUT_FORMATS
from litebert.corpus.sampling.window import read_window, window_count
from litebert.corpus.store import Store
from litebert.objectives.masking import Masker, Masking
from tests.corpus.stores import (
    binomial_error,
    make_documents,
    make_store,
    sentence_numbers,
    write_bytes,
    write_pieces,
)

NAMES = sorted(INPUT_FORMATS)
RANDOM_NEXT = ("bert", "segment-pair", "sentence-pair", "albert-google")
WINDOW = 4  # blocks

Sample = tuple[Any, ...]


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pieces(tmp_path_factory.mktemp("pieces"))


@pytest.fixture(scope="module")
def documents() -> list[list[str]]:
    return make_documents(0, 150)


@pytest.fixture(scope="module")
def store(
    tmp_path_factory: pytest.TempPathFactory, pieces: Path, documents: list[list[str]]
) -> Iterable[Store]:
    """Several shards, many blocks, and with WINDOW several windows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "BLOCK_TOKENS", 800)
        folder = tmp_path_factory.mktemp("store")
        made = make_store(folder / "store", documents, pieces, chunk_bytes=20_000, held_out=0.2)
    assert len(made.paths) > 2
    assert window_count(made, WINDOW) > 3
    return made


@pytest.fixture(scope="module")
def masker(store: Store) -> Masker:
    return Masker(Masking(), store.tokenizer)


def make(store: Store, masker: Masker | None = None, epochs: int | None = 2, **options) -> Loader:
    sides = {name: options.pop(name) for name in ("rank", "world_size") if name in options}
    settings = LoaderSettings(**{"max_length": 48, "batch_size": 16} | options)
    return Loader(store, settings, masker, epochs=epochs, window_blocks=WINDOW, **sides)


def split_samples(batch: Batch) -> list[Sample]:
    """Each sequence with all that belongs to it."""
    found = []
    for number, (start, size) in enumerate(zip(batch.starts, batch.lengths, strict=True)):
        here = slice(start, start + size)
        masked = (batch.positions >= start) & (batch.positions < start + size)
        found.append((
            int(batch.keys[number]), int(batch.labels[number]),
            tuple(batch.ids[here].tolist()), tuple(batch.token_types[here].tolist()),
            tuple((batch.positions[masked] - start).tolist()),
            tuple(batch.targets[masked].tolist()),
        ))  # fmt: skip
    return found


def batches_of(loader: Iterable[Batch]) -> list[list[Sample]]:
    return [split_samples(batch) for batch in loader]


def interleave(shares: list[list[list[Sample]]]) -> list[list[Sample]]:
    """The global batches of ranks' shares: rank r of R holds samples r, r + R, …"""
    assert len({len(share) for share in shares}) == 1
    whole = []
    for parts in zip(*shares, strict=True):
        batch: list[Sample] = [()] * sum(map(len, parts))
        for rank, part in enumerate(parts):
            batch[rank :: len(shares)] = part
        whole.append(batch)
    return whole


def digest(batches: list[list[Sample]]) -> str:
    return hashlib.sha256(repr(batches).encode()).hexdigest()


def as_sets(batches: list[list[Sample]]) -> list[list[Sample]]:
    return [sorted(batch) for batch in batches]


# Determinism.


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


def test_a_position_taken_from_workers_is_that_of_what_was_taken(
    store: Store, masker: Masker
) -> None:
    wanted = batches_of(make(store, masker, batch_by="tokens"))
    loader = make(store, masker, batch_by="tokens")
    with Prefetcher(loader, 2) as batches:
        for _ in range(5):
            next(batches)
        state = json.loads(json.dumps(loader.state()))
        assert split_samples(next(batches)) == wanted[5]
    with Prefetcher(make(store, masker, batch_by="tokens").restore(state), 2) as batches:
        assert batches_of(batches) == wanted[5:]


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


# Resuming.


@pytest.mark.parametrize("by", ["sequences", "tokens"])
def test_after_a_stop_anywhere_the_next_batches_are_equal(
    store: Store, masker: Masker, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaders, "POOL_SAMPLES", 70)
    options = {"batch_by": by, "batch_size": 4, "epochs": None}
    loader = make(store, masker, **options)
    batches, states = [], []
    for _ in range(420):
        states.append(json.dumps(loader.state()))
        batches.append(split_samples(next(loader)))
    assert loader.position.epoch >= 2
    slowest = 0.0
    for place in np.random.default_rng(0).choice(400, 50, replace=False):
        other = make(store, masker, **options)
        began = time.perf_counter()
        other.restore(json.loads(states[place]))
        first = split_samples(next(other))
        slowest = max(slowest, time.perf_counter() - began)
        assert [first, *(split_samples(next(other)) for _ in range(19))] == batches[
            place : place + 20
        ]
    assert slowest < 0.5


def test_a_state_is_small_plain_and_independent_of_the_order_of_its_keys(
    store: Store, masker: Masker
) -> None:
    """A JSON object has no order: `sort_keys=True` is an ordinary way to write one."""
    loader = make(store, masker, epochs=None)
    for _ in range(20):
        next(loader)
    text = json.dumps(loader.state(), sort_keys=True)
    assert len(text) < 2000
    wanted = split_samples(next(loader))
    other = make(store, masker, epochs=None).restore(json.loads(text))
    assert split_samples(next(other)) == wanted


def test_skipping_is_going_on_without_making(store: Store, masker: Masker) -> None:
    for by in ("sequences", "tokens"):
        one, two = make(store, masker, batch_by=by), make(store, masker, batch_by=by)
        for _ in range(7):
            next(one)
            two.skip()
        assert one.state() == two.state()
        assert split_samples(next(one)) == split_samples(next(two))


@pytest.mark.parametrize("change", [
    {"max_length": 64}, {"batch_size": 8}, {"batch_by": "tokens"}, {"split": "all"}, {"seed": 1},
    {"dupe_factor": 2}, {"input_format": "bert"},
])  # fmt: skip
def test_a_state_of_other_settings_is_refused(store: Store, change: dict) -> None:
    loader = make(store)
    next(loader)
    with pytest.raises(SettingsError, match=next(iter(change))):
        make(store, **change).restore(loader.state())


def test_a_state_of_another_window_is_refused(store: Store) -> None:
    state = make(store).state()
    with pytest.raises(SettingsError, match="window"):
        Loader(store, LoaderSettings(max_length=48, batch_size=16), window_blocks=5).restore(state)


@pytest.mark.parametrize("change", ["held_out", "drop_duplicates", "text", "units"])
def test_a_state_of_another_store_is_refused(
    store: Store, documents: list[list[str]], pieces: Path, tmp_path: Path, change: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Also of one that holds as many documents and tokens."""
    monkeypatch.setattr(shards, "BLOCK_TOKENS", 800)
    options: dict[str, Any] = {"chunk_bytes": 20_000, "held_out": 0.2}
    if change == "text":  # the same sentences, cut into documents elsewhere
        documents = [documents[1], documents[0], *documents[2:]]
    else:
        options |= {
            "held_out": {"held_out": 0.3},
            "drop_duplicates": {"drop_duplicates": True},
            "units": {"chunk_bytes": 30_000},
        }[change]
    other = make_store(tmp_path / "store", documents, pieces, **options)
    loader = make(store)
    for _ in range(3):
        next(loader)
    with pytest.raises(SettingsError):
        make(other).restore(loader.state())


@pytest.mark.parametrize("state", [
    {}, {"position": None}, {"fingerprint": None}, {"position": {}, "fingerprint": {}},
    {"position": 3},
])  # fmt: skip
def test_what_is_no_state_is_refused(store: Store, state: dict) -> None:
    with pytest.raises(SettingsError):
        make(store).restore(state)


@pytest.mark.parametrize("position", [
    {}, {"epoch": 0}, None, [0, 0, 0, 0],
    {"epoch": "x", "window": 0, "sample": 0, "batch": 0},
    {"epoch": 0, "window": -1, "sample": 0, "batch": 0},
    {"epoch": 0, "window": 10**6, "sample": 0, "batch": 0},
    {"epoch": 0, "window": 0, "sample": 0, "batch": 10**6},
    {"epoch": 0, "window": 0, "sample": 10**6, "batch": 0},
])  # fmt: skip
def test_a_damaged_position_is_one_clear_error(store: Store, position: Any) -> None:
    state = make(store).state() | {"position": position}
    loader = make(store)

    def restore() -> None:
        next(loader.restore(state))

    with pytest.raises(LitebertError):
        restore()


def test_more_epochs_for_a_stopped_run_repeat_and_lose_nothing(
    store: Store, masker: Masker
) -> None:
    """Going on with more epochs is refused, or every sample still comes exactly once."""
    short = make(store, masker, batch_by="tokens", epochs=1)
    seen = [sample for _ in range(3) for sample in split_samples(next(short))]
    longer = make(store, masker, batch_by="tokens", epochs=2)
    try:
        longer.restore(short.state())
    except SettingsError:
        return
    seen += [sample for batch in batches_of(longer) for sample in batch]
    every = [sample for batch in batches_of(make(store, masker, epochs=2)) for sample in batch]
    assert Counter(sample[0] for sample in seen) == Counter(sample[0] for sample in every)


# Every sentence once.


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


# Batches.


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


# Real text.


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

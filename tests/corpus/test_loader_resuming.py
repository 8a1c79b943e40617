"""The loader's position: saved anywhere, it goes on exactly there, or is refused."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litebert.base.errors import LitebertError, SettingsError
from litebert.corpus import loader as loaders
from litebert.corpus import shard as shards
from litebert.corpus.loader import Loader, LoaderSettings
from litebert.corpus.prefetch import Prefetcher
from litebert.corpus.store import Store, open_store
from litebert.objectives.masking import Masker, Masking
from litebert.text.tokenizer import load_tokenizer
from tests.corpus.loaders import batches_of, make, split_samples
from tests.corpus.stores import make_store


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


def test_a_masker_belongs_to_its_tokenizer(reference: Path, tmp_path: Path) -> None:
    store = open_store(reference)
    settings = LoaderSettings(max_length=32)
    masker = Masker(Masking(), store.tokenizer)
    state = Loader(store, settings, masker).state()
    with pytest.raises(SettingsError, match="masking"):
        Loader(store, settings, Masker(Masking(fraction=0.5), store.tokenizer)).restore(state)
    pieces = (reference / "tokenizer" / "vocab.txt").read_text() + "another\n"
    (tmp_path / "vocab.txt").write_text(pieces)
    other = load_tokenizer(tmp_path / "vocab.txt")
    with pytest.raises(SettingsError, match="another tokenizer"):
        Loader(store, settings, Masker(Masking(), other))
    with pytest.raises(SettingsError, match="rank 5 of 3"):
        Loader(store, settings, masker, rank=5, world_size=3)
    with pytest.raises(SettingsError, match="damaged"):
        Loader(store, settings, masker).restore([])  # type: ignore[arg-type]

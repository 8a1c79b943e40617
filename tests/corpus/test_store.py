"""Stores: damage is always found, parts make the whole, splits are clean."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from litebert.base.errors import FileError, FormatError, LitebertError, SettingsError
from litebert.corpus.loader import Loader, LoaderSettings
from litebert.corpus.sampling.window import read_window, window_count
from litebert.corpus.store import Store, open_store
from tests.corpus.stores import (
    binomial_error,
    make_documents,
    make_store,
    write_bytes,
    write_pieces,
    write_wordpiece,
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, pieces: Path) -> Store:
    """Some shards; tests that change it work on a copy."""
    folder = tmp_path_factory.mktemp("small")
    return make_store(folder / "store", make_documents(0, 40), pieces, chunk_bytes=5000)


@pytest.fixture
def copy(small: Store, tmp_path: Path) -> Path:
    shutil.copytree(small.folders[0], tmp_path / "store")
    return tmp_path / "store"


def test_damage_is_found_when_the_loader_comes_to_it(copy: Path) -> None:
    path = sorted((copy / "shards").iterdir())[1]
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[:8], "little")
    begin, end = json.loads(content[8 : 8 + size])["ids"]["data_offsets"]
    content[8 + size + (begin + end) // 2] ^= 4
    path.write_bytes(content)
    loader = Loader(
        Store([copy]), LoaderSettings(max_length=64, batch_size=8), epochs=1, window_blocks=1
    )
    with pytest.raises(FileError, match=path.name):
        list(loader)


@pytest.mark.parametrize("write", [write_pieces, write_wordpiece, write_bytes])
def test_a_store_opens_with_the_kind_of_tokenizer_that_made_it(tmp_path: Path, write) -> None:
    documents = make_documents(1, 5)
    store = make_store(tmp_path / "store", documents, write(tmp_path / "tokenizer"))
    assert store.total.documents == 5
    assert store.total.sentences == sum(map(len, documents))
    window = read_window(store, "all", 0, 0, 0)
    first = [
        store.tokenizer.decode(window.ids[slice(*window.sentences[[start, start + 1]])])
        for start in window.documents[:-1]
    ]
    squeezed = {"".join(document[0].split()) for document in documents}
    assert {"".join(text.split()) for text in first} == squeezed


def test_check_passes_a_whole_store_and_finds_any_changed_file(copy: Path) -> None:
    Store([copy]).check()
    files = [path for path in sorted(copy.rglob("*")) if path.is_file()]
    assert len(files) >= 5
    for path in files:
        if path.name == "manifest.json":
            continue
        content = path.read_bytes()
        store = Store([copy])
        for changed in (content[:-1], content + b" ", b" " + content[1:]):
            path.write_bytes(changed)
            with pytest.raises(FileError, match=path.name):
                store.check()
        path.unlink()
        with pytest.raises(FileError, match=path.name):
            store.check()
        path.write_bytes(content)
    Store([copy]).check()


def test_a_damaged_manifest_is_found(copy: Path) -> None:
    manifest = copy / "manifest.json"
    content = manifest.read_text()
    sums = json.loads(content)
    name = next(iter(sums["files"]))
    for wrong in ("", "[]", "{}", content[:-20], content.replace(name, "../" + name)):
        manifest.write_text(wrong)
        with pytest.raises(LitebertError, match="manifest"):
            Store([copy]).check()


def test_a_store_without_its_manifest_is_not_whole(copy: Path) -> None:
    (copy / "manifest.json").unlink()
    with pytest.raises(FileError, match="whole"):
        Store([copy])


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such store"):
        open_store(tmp_path / "none")
    with pytest.raises(FileError, match="not a whole store"):
        open_store(tmp_path)
    with pytest.raises(SettingsError):
        open_store()


@pytest.mark.parametrize("change", [
    {"format": 2}, {"format": None}, {"format": "1"}, {"shards": []},
    {"part": [1]}, {"extra": 1}, {"tokenizer": None},
])  # fmt: skip
def test_a_store_of_another_format_is_refused(copy: Path, change: dict) -> None:
    content = json.loads((copy / "store.json").read_text()) | change
    (copy / "store.json").write_text(json.dumps(content))
    with pytest.raises(FormatError if "format" in change else LitebertError, match=r"store\.json"):
        Store([copy]).require_all_parts()


def test_a_store_with_another_tokenizer_inside_is_refused(copy: Path) -> None:
    model = copy / "tokenizer" / "spiece.model"
    model.write_bytes(model.read_bytes().replace(b"\xe2\x96\x81s17", b"\xe2\x96\x81z17"))
    with pytest.raises(FileError, match="tokenizer"):
        Loader(Store([copy]), LoaderSettings())


# Parts.


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory, pieces: Path) -> tuple[Store, list[Path]]:
    """A corpus in one piece, and in three; some documents stand in it twice."""
    folder = tmp_path_factory.mktemp("parted")
    documents = make_documents(2, 120)
    documents += documents[::5]
    options = {"chunk_bytes": 4000, "held_out": 0.1, "drop_duplicates": True}
    whole = make_store(folder / "whole", documents, pieces, **options)
    parts = [
        make_store(folder / f"part{part}", documents, pieces, part=(part, 3), **options).folders[0]
        for part in (1, 2, 3)
    ]
    return whole, parts


def stream(store: Store, **settings) -> list[tuple]:
    found = []
    for batch in Loader(
        store, LoaderSettings(max_length=48, batch_size=16, **settings), epochs=2, window_blocks=4
    ):
        found += [batch.ids.tolist(), batch.token_types.tolist(), batch.labels.tolist()]
        found += [batch.keys.tolist()]
    return found


@pytest.mark.parametrize("name", ["albert", "bert", "full-sentences"])
def test_parts_together_are_one_store_in_any_order(
    parted: tuple[Store, list[Path]], name: str
) -> None:
    whole, parts = parted
    wanted = stream(whole, input_format=name)
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        joined = open_store(*[parts[number] for number in order])
        assert [path.name for path in joined.paths] == [path.name for path in whole.paths]
        assert joined.total == whole.total
        assert stream(joined, input_format=name) == wanted
        joined.check()


def test_parts_hold_the_same_bytes(parted: tuple[Store, list[Path]]) -> None:
    whole, parts = parted
    for path in open_store(*parts).paths:
        assert path.read_bytes() == (whole.folders[0] / "shards" / path.name).read_bytes()


def test_a_missing_part_and_a_part_twice_are_refused(parted: tuple[Store, list[Path]]) -> None:
    whole, parts = parted
    for some in (parts[:1], parts[:2], parts[1:], [parts[0], parts[2]]):
        with pytest.raises(SettingsError, match="missing"):
            Loader(open_store(*some), LoaderSettings())
    for some in ([*parts, parts[1]], [parts[0]] * 3, [parts[0], parts[0], parts[2]]):
        with pytest.raises(SettingsError):
            Loader(open_store(*some), LoaderSettings())
    with pytest.raises(SettingsError):
        Loader(open_store(whole.folders[0], *parts[1:]), LoaderSettings())


@pytest.mark.parametrize("other", [
    {"chunk_bytes": 3000}, {"held_out": 0.2}, {"drop_duplicates": False}, {"documents": True},
    {"part": (2, 4)},
])  # fmt: skip
def test_parts_of_different_corpora_are_refused(
    parted: tuple[Store, list[Path]], pieces: Path, tmp_path: Path, other: dict
) -> None:
    _, parts = parted
    options = {
        "chunk_bytes": 4000,
        "held_out": 0.1,
        "drop_duplicates": True,
        "part": (2, 3),
    } | other
    documents = make_documents(2, 120)
    documents += documents[::5]
    if options.pop("documents", False):
        documents = documents[:-1]
    stranger = make_store(tmp_path / "part2", documents, pieces, **options).folders[0]
    with pytest.raises(SettingsError):
        open_store(parts[0], stranger, parts[2])


def test_more_parts_than_units(tmp_path: Path, pieces: Path) -> None:
    documents = make_documents(3, 6)
    whole = make_store(tmp_path / "whole", documents, pieces)
    parts = [make_store(tmp_path / f"{n}", documents, pieces, part=(n, 3)).folders[0]
             for n in (1, 2, 3)]  # fmt: skip
    assert stream(open_store(*parts)) == stream(whole)


def test_parts_without_any_text_are_one_clear_error(tmp_path: Path, pieces: Path) -> None:
    def load_nothing() -> None:
        parts = [
            make_store(tmp_path / f"{n}", [[" "], ["\t"]], pieces, part=(n, 2)).folders[0]
            for n in (1, 2)
        ]
        next(Loader(open_store(*parts), LoaderSettings()))

    with pytest.raises(LitebertError):
        load_nothing()


# Splits and duplicates.


def split_keys(store: Store, split: str) -> list[int]:
    keys = []
    for number in range(window_count(store, 3)):
        keys += read_window(store, split, 0, 0, number, 3).keys.tolist()
    return keys


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_splits_are_disseparators_cover_everything_and_have_their_share(
    tmp_path: Path, pieces: Path, share: float
) -> None:
    documents = make_documents(4, 1500, sentences=(1, 3), words=(0, 2))
    store = make_store(tmp_path / "store", documents, pieces, chunk_bytes=3000, held_out=share)
    train, held_out = split_keys(store, "train"), split_keys(store, "held_out")
    assert len(train) == len(set(train))
    assert not set(train) & set(held_out)
    assert sorted(train + held_out) == sorted(split_keys(store, "all"))
    assert len(train + held_out) == 1500
    assert abs(len(held_out) / 1500 - share) < binomial_error(1500, share)


def test_a_document_is_held_out_by_its_text_alone(tmp_path: Path, pieces: Path) -> None:
    documents = make_documents(5, 300, sentences=(1, 3), words=(0, 2))
    one = make_store(tmp_path / "a" / "store", documents, pieces, held_out=0.2)
    two = make_store(
        tmp_path / "b" / "store", documents[150:], pieces, held_out=0.2, chunk_bytes=999
    )
    assert set(split_keys(two, "held_out")) < set(split_keys(one, "held_out"))
    assert set(split_keys(two, "train")) < set(split_keys(one, "train"))


def test_windows_of_an_epoch_hold_every_document_once(small: Store) -> None:
    every = split_keys(small, "all")
    assert len(every) == len(set(every)) == 40
    for seed, epoch in ((0, 1), (5, 0)):
        other = [
            key
            for number in range(window_count(small, 2))
            for key in read_window(small, "all", seed, epoch, number, 2).keys.tolist()
        ]
        assert sorted(other) == sorted(every)
        assert other != every


def test_duplicates_are_dropped_once_and_across_parts(parted: tuple[Store, list[Path]]) -> None:
    whole, parts = parted
    assert whole.total.documents == 144
    for store in (whole, open_store(*parts)):
        every = split_keys(store, "all")
        assert len(every) == len(set(every)) == 120
        train, held_out = split_keys(store, "train"), split_keys(store, "held_out")
        assert sorted(train + held_out) == sorted(every)


def test_duplicates_stay_unless_asked(tmp_path: Path, pieces: Path) -> None:
    documents = make_documents(6, 20)
    store = make_store(tmp_path / "store", documents * 2, pieces, chunk_bytes=2000)
    keys = split_keys(store, "all")
    assert len(keys) == 40
    assert len(set(keys)) == 20

"""Shards: they come back as they were, and damage is always found."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from litebert.base.errors import FileError
from litebert.corpus import shard as shards
from litebert.corpus.shard import ARRAYS, Shard, build_shard, open_shard, shard_bytes


def make_shard(monkeypatch: pytest.MonkeyPatch, dtype: str = "uint16") -> Shard:
    """A shard of several blocks."""
    monkeypatch.setattr(shards, "BLOCK_TOKENS", 100)
    chance = np.random.default_rng(0)
    sentences = chance.integers(1, 9, 120)
    documents = np.full(30, 4)
    ids = chance.integers(0, 2**16 if dtype == "uint16" else 2**20, sentences.sum()).astype(dtype)
    keys = chance.integers(0, 2**64, 30, dtype=np.uint64)
    return build_shard("a shard", ids, sentences, documents, keys)


def read_all(path: Path) -> dict[str, list]:
    """Every array of a shard, read the way the loader does."""
    shard = open_shard(path)
    blocks = [shard.block_ids(block).tolist() for block in range(len(shard.blocks) - 1)]
    arrays = {name: np.asarray(getattr(shard, name)).tolist() for name in ARRAYS}
    assert list(chain.from_iterable(blocks)) == arrays["ids"]
    return arrays


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_a_shard_comes_back_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    shard = make_shard(monkeypatch, dtype)
    (tmp_path / "shard").write_bytes(shard_bytes(shard))
    arrays = read_all(tmp_path / "shard")
    assert arrays == {name: getattr(shard, name).tolist() for name in ARRAYS}
    assert open_shard(tmp_path / "shard").ids.dtype == dtype
    tokens = np.diff(shard.sentences[shard.documents[shard.blocks]])
    assert len(tokens) > 3
    assert (tokens[:-1] >= 100).all()  # documents until there are enough tokens
    sizes = np.diff(shard.sentences[shard.documents])
    assert (tokens[:-1] - sizes[shard.blocks[1:-1] - 1] < 100).all()


def test_a_shard_without_documents_is_a_shard(tmp_path: Path) -> None:
    none = np.zeros(0, dtype=np.int64)
    shard = build_shard("empty", none.astype(np.uint16), none, none, none.astype(np.uint64))
    (tmp_path / "shard").write_bytes(shard_bytes(shard))
    assert read_all(tmp_path / "shard")["ids"] == []


@pytest.mark.parametrize("part", list(ARRAYS))
def test_a_flipped_bit_in_any_array_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    content = shard_bytes(make_shard(monkeypatch))
    size = int.from_bytes(content[:8], "little")
    begin, end = json.loads(content[8 : 8 + size])[part]["data_offsets"]
    chance = np.random.default_rng(len(part))
    for place in {begin, end - 1, *chance.integers(begin, end, 25).tolist()}:
        damaged = bytearray(content)
        damaged[8 + size + place] ^= 1 << int(chance.integers(8))
        (tmp_path / "shard").write_bytes(damaged)
        with pytest.raises(FileError, match="shard"):
            read_all(tmp_path / "shard")


def test_hundreds_of_random_flips_either_are_found_or_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = shard_bytes(make_shard(monkeypatch))
    path = tmp_path / "shard"
    path.write_bytes(content)
    whole = read_all(path)
    header = 8 + int.from_bytes(content[:8], "little")
    chance = np.random.default_rng(1)
    places = [*chance.integers(0, header, 300), *chance.integers(0, len(content), 200)]
    found = 0
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= int(chance.integers(1, 256))
        path.write_bytes(damaged)
        try:
            assert read_all(path) == whole
        except FileError:
            found += 1
    assert found > 430


def test_a_shard_cut_short_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = shard_bytes(make_shard(monkeypatch))
    cuts = [0, 1, 7, 8, 9, 100, *np.random.default_rng(2).integers(0, len(content), 60).tolist()]
    for cut in [*cuts, len(content) - 1]:
        (tmp_path / "shard").write_bytes(content[:cut])
        with pytest.raises(FileError, match="shard"):
            read_all(tmp_path / "shard")


@pytest.mark.parametrize(
    "header",
    [
        b"", b"{}", b"[]", b"null", b"17", b'"ids"', b"{" * 5000, b"\xff\xfe", b'{"ids": []}',
        b'{"ids": {"dtype": ["U16"], "shape": [1], "data_offsets": [0, 2]}}',
        b'{"ids": {"dtype": "U16", "shape": [1], "data_offsets": [0.0, 2.0]}}',
        b'{"ids": {"dtype": "U16", "shape": [1], "data_offsets": [-2, 0]}}',
        b'{"ids": {"dtype": "U16", "shape": [1], "data_offsets": [0, 1e400]}}',
        b'{"ids": {"dtype": "U16", "shape": [1], "data_offsets": null}}',
        b'{"ids": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}',
        b'{"ids": {"dtype": "U16", "shape": [' + b"9" * 5000 + b'], "data_offsets": [0, 2]}}',
    ],
)  # fmt: skip
def test_a_garbled_header_is_one_clear_error(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "shard"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 64)
    with pytest.raises(FileError, match="shard"):
        open_shard(path)
    path.write_bytes((2**63).to_bytes(8, "little") + header)
    with pytest.raises(FileError, match="shard"):
        open_shard(path)


def test_a_missing_shard_and_a_folder_in_its_place(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(FileError):
            open_shard(path)

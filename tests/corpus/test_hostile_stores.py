"""Stores whose files are no good: the loader refuses them in one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from litebert.base.errors import FileError, LitebertError
from litebert.corpus.loader import Loader, LoaderSettings
from litebert.corpus.shard import build_shard, open_shard, shard_bytes
from litebert.corpus.store import open_store


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"part": [0, 0]}, "part 0 of 0"),
        ({"vocab_size": -1}, "vocab_size"),
        ({"vocab_size": 10**13}, "vocab_size"),
        ({"shards": {"../../../etc/passwd": {}}}, "not the name of a shard"),
        ({"shards": {"000000-000000.safetensors": {"blocks": -1}}}, "blocks"),
        ({"shards": {"000000-000000.safetensors": {"blocks": 10**6}}}, "no shard can have"),
        ({"shards": {"000000-000000.safetensors": {"blocks": 10**3}}}, "not the shard"),
    ],
    ids=str,
)
def test_a_hostile_store(
    change: dict[str, object], words: str, reference: Path, tmp_path: Path
) -> None:
    out = tmp_path / "store"
    shutil.copytree(reference, out)
    info = json.loads((out / "store.json").read_text()) | change
    (out / "store.json").write_text(json.dumps(info))
    with pytest.raises(LitebertError, match=words):
        next(Loader(open_store(out), LoaderSettings(max_length=32)))


@pytest.mark.parametrize(
    "manifest", [{}, {"format": 1, "files": 3}, {"format": 1, "files": {"a": {}}}]
)
def test_a_hostile_manifest(manifest: dict[str, object], reference: Path, tmp_path: Path) -> None:
    out = tmp_path / "store"
    shutil.copytree(reference, out)
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(LitebertError, match="manifest"):
        Loader(open_store(out), LoaderSettings(max_length=32)).state()


def test_ids_that_the_tokenizer_does_not_have(reference: Path, tmp_path: Path) -> None:
    out = tmp_path / "store"
    shutil.copytree(reference, out)
    path = sorted((out / "shards").iterdir())[0]
    shard = open_shard(path)
    ids = np.array(shard.ids)
    ids[5] = 60_000
    lengths = np.diff(shard.sentences), np.diff(shard.documents)
    bad = build_shard("bad", ids, lengths[0], lengths[1], np.array(shard.keys))
    path.write_bytes(shard_bytes(bad))
    with pytest.raises(FileError, match="ids that its tokenizer does not have"):
        for _ in Loader(open_store(out), LoaderSettings(max_length=32), epochs=1):
            pass

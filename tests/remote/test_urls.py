"""URLs without a network: fsspec's file system in memory stands for an object store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebert
from litebert.base.errors import FileError, LitebertError, MissingExtraError
from litebert.base.files import MANIFEST
from litebert.base.remote import objects, urls
from litebert.base.remote.cache import ObjectCache, cache_size
from litebert.base.remote.folders import INCOMPLETE, local_folder, new_folder
from litebert.base.remote.mirror import Mirror
from litebert.base.remote.urls import as_url
from litebert.corpus.store import Store
from tests.corpus.stores import write_wordpiece
from tests.remote.corpora import assert_equal_folders, write_formats

pytestmark = pytest.mark.usefixtures("memory")


def small_shards(file: Path, tokenizer: Path) -> dict[str, Any]:
    return {
        "inputs": [str(file)], "tokenizer": tokenizer, "num_workers": 1, "chunk_bytes": 900
    }  # fmt: skip


def put(memory: Any, folder: Path, path: str) -> None:
    memory.put(str(folder), path, recursive=True)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("s3://bucket/key", "s3://bucket/key"),
        (Path("s3://bucket/key"), "s3://bucket/key"),
        ("gs://b/", "gs://b"),
        ("https://host/a*.gz", "https://host/a*.gz"),
        ("s3", None),
        ("folder/s3://x", None),
        ("hf:name", None),
        ("C:/x", None),
    ],
)
def test_what_is_a_url(name: str | Path, url: str | None) -> None:
    assert as_url(name) == url


def test_every_format_gives_the_store_of_local_files(memory: Any, tmp_path: Path) -> None:
    files = write_formats(tmp_path / "raw")
    tokenizer = write_wordpiece(tmp_path / "tokenizer")
    put(memory, tmp_path / "raw", "/bucket/raw")
    for file in files:
        options: Any = {"num_workers": 1, "chunk_bytes": 2000}
        litebert.prepare([str(file)], tokenizer, tmp_path / "here" / file.name, **options)
        out = tmp_path / "there" / file.name
        litebert.prepare([f"memory://bucket/raw/{file.name}"], tokenizer, out, **options)
        assert_equal_folders(tmp_path / "here" / file.name, out)


def test_folders_and_globs(memory: Any, tmp_path: Path) -> None:
    write_formats(tmp_path / "raw")
    put(memory, tmp_path / "raw", "/bucket/raw")
    tokenizer = write_wordpiece(tmp_path / "tokenizer")
    for here, there in (("raw", "bucket/raw"), ("raw/*.jsonl*", "bucket/raw/*.jsonl*")):
        one, other = tmp_path / f"a{len(here)}", tmp_path / f"b{len(here)}"
        litebert.prepare([str(tmp_path / here)], tokenizer, one, num_workers=1)
        litebert.prepare([f"memory://{there}"], tokenizer, other, num_workers=1)
        assert_equal_folders(one, other)


def test_a_store_is_uploaded_whole_and_read_back(memory: Any, tmp_path: Path) -> None:
    files = write_formats(tmp_path / "raw")
    tokenizer = write_wordpiece(tmp_path / "tokenizer")
    inputs = small_shards(files[1], tokenizer)
    litebert.prepare(out=tmp_path / "here", **inputs)
    made = litebert.prepare(out="memory://bucket/corpus", **inputs)
    assert not memory.exists(f"/bucket/corpus/{INCOMPLETE}")
    memory.get("/bucket/corpus/", str(tmp_path / "back") + "/", recursive=True)
    assert_equal_folders(tmp_path / "here", tmp_path / "back")
    assert litebert.prepare(out="memory://bucket/corpus", **inputs).progress.already_there
    with pytest.raises(FileError, match="held_out"):
        litebert.prepare(out="memory://bucket/corpus", held_out=0.5, **inputs)
    here = Store([tmp_path / "here"])
    assert made.store.checksum == here.checksum
    for number, block in here.blocks.tolist():
        np.testing.assert_array_equal(
            made.store.block_ids(number, block), here.block_ids(number, block)
        )


def test_an_unfinished_upload_is_no_store_and_is_finished_by_the_same_command(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_formats(tmp_path / "raw")
    tokenizer = write_wordpiece(tmp_path / "tokenizer")
    inputs = small_shards(files[1], tokenizer)
    monkeypatch.setattr("litebert.base.remote.folders.upload", Failing(objects.upload, 5))
    with pytest.raises(FileError, match="cut"):
        litebert.prepare(out="memory://bucket/corpus", **inputs)
    assert memory.exists(f"/bucket/corpus/{INCOMPLETE}")
    with pytest.raises(FileError, match="not finished"):
        Store(["memory://bucket/corpus"])
    monkeypatch.undo()
    monkeypatch.setenv("LITEBERT_CACHE", str(tmp_path / "cache"))
    done = litebert.prepare(out="memory://bucket/corpus", **inputs)
    assert done.progress.already_there  # it was whole on this machine
    Store(["memory://bucket/corpus"]).check()


class Failing:
    """An action that fails the n-th time it is called."""

    def __init__(self, action: Any, at: int) -> None:
        self.action, self.left = action, at

    def __call__(self, *arguments: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise FileError("the line was cut")
        return self.action(*arguments)


def test_the_cache_is_bounded_and_checks_what_comes(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_formats(tmp_path / "raw")
    tokenizer = write_wordpiece(tmp_path / "tokenizer")
    url = "memory://bucket/corpus"
    made = litebert.prepare([str(files[1])], tokenizer, url, num_workers=1, chunk_bytes=900)
    store = made.store
    sizes = [memory.info(f"/bucket/corpus/shards/{path.name}")["size"] for path in store.paths]
    bound = sum(sizes) // 2
    monkeypatch.setenv("LITEBERT_CACHE_SIZE", f"{bound}B")
    for number in [*range(len(sizes)), 0, 3, 1]:
        store._open.clear()
        store.shard(number)
        kept = list((tmp_path / "cache" / "stores").glob("*/shards/*.safetensors"))
        assert 0 < sum(path.stat().st_size for path in kept) <= bound
    name = f"/bucket/corpus/shards/{store.paths[-1].name}"
    content = bytearray(memory.cat_file(name))
    content[-1] ^= 1
    memory.pipe_file(name, bytes(content))
    store.paths[-1].unlink(missing_ok=True)
    store._open.clear()
    with pytest.raises(FileError, match="does not match its checksum"):
        store.shard(len(sizes) - 1)
    assert not store.paths[-1].exists()


def test_fetching_ahead_brings_what_is_asked(memory: Any, tmp_path: Path) -> None:
    with new_folder("memory://bucket/folder") as folder:
        (folder / "shards").mkdir()
        for number in range(9):
            (folder / "shards" / str(number)).write_bytes(b"x" * 50)
    manifest = {f"shards/{n}": {"bytes": 50, "sha256": ""} for n in range(9)}
    cache = ObjectCache("memory://bucket/folder", "name", manifest)
    cache.fetch_ahead(f"shards/{n}" for n in (7, 2, 5))
    for n in (7, 2, 5):  # waits for the thread that has it in hand, or fetches it itself
        assert cache.fetch(f"shards/{n}").read_bytes() == b"x" * 50


def test_model_folders_and_tokenizers_at_urls(memory: Any, tmp_path: Path) -> None:
    tokenizer = litebert.load_tokenizer(write_wordpiece(tmp_path / "tokenizer"))
    preset = litebert.load_preset("albert-tiny", ["model.vocab_size=6300"])
    model = litebert.Model.create(preset.model, preset.heads, seed=1)
    model.save("memory://bucket/model", tokenizer=tokenizer)
    again = litebert.load("memory://bucket/model")
    for (name, one), (_, other) in zip(
        model.named_parameters(), again.named_parameters(), strict=True
    ):
        assert one.equal(other), name
    assert litebert.load_tokenizer("memory://bucket/model").checksum == tokenizer.checksum
    with pytest.raises(FileError, match="already exists"):
        model.save("memory://bucket/model")
    memory.rm_file("/bucket/model/model.safetensors")
    with pytest.raises(FileError, match=r"model\.safetensors"):
        litebert.load("memory://bucket/model")


def test_a_folder_whose_upload_was_cut_is_refused(memory: Any, tmp_path: Path) -> None:
    with new_folder("memory://bucket/folder") as folder:
        (folder / "config.json").write_text("{}")
    memory.pipe_file(f"/bucket/folder/{INCOMPLETE}", b"")
    memory.rm_file(f"/bucket/folder/{MANIFEST}")
    with pytest.raises(FileError, match="not finished"):
        local_folder("memory://bucket/folder")


@pytest.mark.parametrize("name", ["{outside}", "../{name}", "a/../../{name}"])
def test_nothing_is_written_outside_a_folder(name: str, memory: Any, tmp_path: Path) -> None:
    """A stranger's bucket may hold any names."""
    outside = tmp_path / "outside.txt"
    stray = name.format(outside=outside, name=outside.name)
    for kind in ("model", "run"):
        memory.pipe_file(f"/bucket/{kind}/run.json", b"{}")
        memory.store[f"/bucket/{kind}/{stray}"] = memory.store[f"/bucket/{kind}/run.json"]
    with pytest.raises(FileError, match="no name of a file"):
        local_folder("memory://bucket/model")
    with pytest.raises(FileError, match="no name of a file"):
        Mirror("memory://bucket/run").pull()
    assert not list(tmp_path.rglob(outside.name))


def test_a_file_that_grows_while_it_is_uploaded(memory: Any, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one line")
    put_file = memory.put_file

    def slowly(source: str, key: str) -> None:
        path.write_bytes(b"one line, and another")
        put_file(source, key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(memory), "put_file", lambda _, *names: slowly(*names))
        objects.upload(path, "memory://bucket/log")
    assert memory.find("/bucket") == ["/bucket/log"]
    assert memory.cat_file("/bucket/log") == path.read_bytes()


def test_an_upload_that_fails_leaves_nothing(memory: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    put_file = memory.put_file

    def cut(source: str, key: str) -> None:
        put_file(source, key)
        memory.pipe_file(key, b"con")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(memory), "put_file", lambda _, *names: cut(*names))
        with pytest.raises(FileError, match="3 of 7 bytes"):
            objects.upload(tmp_path / "file", "memory://bucket/file")
    assert memory.find("/bucket") == []


def test_what_may_pass_is_tried_again_and_said(
    memory: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    memory.pipe_file("/bucket/a", b"text")
    calls = []

    def unsteady(*arguments: Any, **options: Any) -> bytes:
        calls.append(arguments)
        if len(calls) < 3:
            raise ConnectionResetError("reset by peer")
        return b"text"

    monkeypatch.setattr(type(memory), "cat_file", unsteady)
    assert objects.read_object("memory://bucket/a", 10) == b"text"
    assert "reset by peer; trying again in 0 s (2 of 5)" in caplog.messages[1]
    monkeypatch.setattr(type(memory), "cat_file", Always(ConnectionResetError("reset")))
    with pytest.raises(FileError, match=r"after 6 attempts \(ConnectionResetError: reset\)"):
        objects.read_object("memory://bucket/a", 10)
    monkeypatch.setattr(type(memory), "cat_file", Always(PermissionError("403")))
    with pytest.raises(FileError, match=r"access refused.*403"):
        objects.read_object("memory://bucket/a", 10)


class Always:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self, *arguments: Any, **options: Any) -> None:
        raise self.error


def test_what_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = write_wordpiece(tmp_path / "tokenizer")
    with pytest.raises(FileError, match="memory://bucket/none: no such"):
        litebert.prepare(["memory://bucket/none"], tokenizer, tmp_path / "out", num_workers=1)
    with pytest.raises(LitebertError, match="cannot be written to"), new_folder("http://x.test/y"):
        pass
    with pytest.raises(FileError, match="no store"):
        Store(["memory://bucket/none"])
    monkeypatch.setenv("LITEBERT_CACHE_SIZE", "much")
    with pytest.raises(LitebertError, match="LITEBERT_CACHE_SIZE=much"):
        cache_size(tmp_path)
    monkeypatch.setitem(urls.PACKAGES, "s3", "s3fs")
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    with pytest.raises(MissingExtraError, match=r"s3fs.*litebert\[remote\]"):
        litebert.load_tokenizer("s3://bucket/tokenizer")

"""Runs behind a URL: worked on here, whole there, one process at a time."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from litebert.base.errors import FileError
from litebert.base.files import MANIFEST, write_manifest
from litebert.base.remote import lease, objects
from litebert.base.remote import mirror as mirror_module
from litebert.base.remote.lease import Lease
from litebert.base.remote.mirror import Mirror

pytestmark = pytest.mark.usefixtures("memory")


def write_run(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in ("metrics.jsonl", "run.json"):
        (folder / name).write_text("here")


def test_what_a_killed_upload_was_about_to_rename_is_nobody_elses(memory: Any) -> None:
    mirror = Mirror("memory://bucket/run")
    mirror.pull()
    write_run(mirror.folder)
    mirror.push()
    mirror.close()
    (mirror.folder / "metrics.jsonl").write_text("here and newer")
    memory.pipe_file("/bucket/run/.metrics.jsonl.4711", b"here and")
    again = Mirror("memory://bucket/run")
    again.pull()
    assert (again.folder / "metrics.jsonl").read_text() == "here and newer"
    again.push()
    again.close()
    assert memory.find("/bucket/run") == ["/bucket/run/metrics.jsonl", "/bucket/run/run.json"]


def test_a_first_upload_that_was_cut_is_done_again(memory: Any) -> None:
    mirror = Mirror("memory://bucket/run")
    mirror.pull()
    assert not mirror.folder.exists()
    write_run(mirror.folder)
    mirror.close()
    memory.pipe_file("/bucket/run/metrics.jsonl", b"he")  # and nothing was noted of it
    memory.pipe_file("/bucket/run/checkpoint", b"of before")
    again = Mirror("memory://bucket/run")
    again.pull()
    assert (again.folder / "run.json").read_text() == "here"
    again.push()
    again.close()
    assert memory.find("/bucket/run") == ["/bucket/run/metrics.jsonl", "/bucket/run/run.json"]
    assert memory.cat_file("/bucket/run/metrics.jsonl") == b"here"


@pytest.mark.parametrize("lost", [MANIFEST, "weights"])
def test_an_upload_that_seemed_to_fail_and_arrived_is_removed_with_its_folder(
    lost: str, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a manifest would stay there, of files that are gone."""
    mirror = Mirror("memory://bucket/run")
    mirror.pull()
    checkpoint = mirror.folder / "checkpoints" / "1"
    checkpoint.mkdir(parents=True)
    (checkpoint / "weights").write_text("weights")
    write_manifest(checkpoint)
    upload = mirror_module.upload

    def answer_is_lost(path: Path, url: str) -> None:
        upload(path, url)
        if path.name == lost:
            raise FileError(f"{url}: timed out")

    monkeypatch.setattr(mirror_module, "upload", answer_is_lost)
    with pytest.raises(FileError, match="timed out"):
        mirror.push()
    monkeypatch.setattr(mirror_module, "upload", upload)
    assert len(memory.find("/bucket/run/checkpoints")) == (2 if lost == MANIFEST else 1)
    shutil.rmtree(checkpoint)
    (mirror.folder / "run.json").write_text("{}")
    mirror.push()
    mirror.close()
    assert memory.find("/bucket/run") == ["/bucket/run/run.json"]


def test_there_always_is_a_whole_checkpoint(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a push that brings the next one and removes the last one is cut."""
    cuts = 0
    while True:
        mirror = Mirror(f"memory://bucket/run{cuts}")
        mirror.pull()
        _write_checkpoint(mirror.folder, "1")
        mirror.push()
        _write_checkpoint(mirror.folder, "2")
        shutil.rmtree(mirror.folder / "checkpoints" / "1")
        left = iter(range(cuts))

        def cut(call: Any, left: Iterator[int] = left) -> Any:
            def cutting(*arguments: Any) -> Any:
                if next(left, None) is None:
                    raise FileError("cut")
                return call(*arguments)

            return cutting

        with monkeypatch.context() as patch:
            for name in ("upload", "remove"):
                patch.setattr(mirror_module, name, cut(getattr(mirror_module, name)))
            with suppress(FileError):
                mirror.push()
        finished = next(left, None) is not None
        mirror.close()
        manifests = [path for path in memory.find(f"/bucket/run{cuts}") if path.endswith(MANIFEST)]
        assert manifests
        for manifest in manifests:
            assert memory.exists(manifest.replace(MANIFEST, "weights"))
        cuts += 1
        if finished:
            break
    assert cuts > 6


def test_a_checkpoint_that_goes_while_it_is_brought_replaces_none(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = Mirror("memory://bucket/run")
    mirror.pull()
    _write_checkpoint(mirror.folder, "1")
    mirror.push()
    _write_checkpoint(mirror.folder, "2")
    shutil.rmtree(mirror.folder / "checkpoints" / "1")

    def meanwhile(path: Path, url: str) -> None:
        if path.is_relative_to(mirror.folder / "checkpoints" / "2"):
            shutil.rmtree(mirror.folder / "checkpoints" / "2")
            _write_checkpoint(mirror.folder, "3")
        objects.upload(path, url)

    with monkeypatch.context() as patch:
        patch.setattr(mirror_module, "upload", meanwhile)
        mirror.push()
    kept = [f"/bucket/run/checkpoints/1/{name}" for name in (MANIFEST, "weights")]
    assert memory.find("/bucket/run/checkpoints") == kept
    assert memory.cat_file("/bucket/run/run.json") == b"1"
    mirror.push()
    mirror.close()
    assert {path.split("/")[4] for path in memory.find("/bucket/run/checkpoints")} == {"3"}
    assert memory.cat_file("/bucket/run/run.json") == b"3"


def test_a_kill_between_an_upload_and_its_note_costs_nothing(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is here is ahead of what is there, and is gone on with."""
    mirror = Mirror("memory://bucket/run")
    mirror.pull()
    _write_checkpoint(mirror.folder, "1")
    mirror.push()
    (mirror.folder / "run.json").write_text("ahead")

    def killed(path: Path, url: str) -> None:
        objects.upload(path, url)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(mirror_module, "upload", killed)
        with pytest.raises(KeyboardInterrupt):
            mirror.push()
    mirror.close()
    (mirror.folder / "run.json").write_text("further ahead")
    again = Mirror("memory://bucket/run")
    again.pull()
    assert (again.folder / "run.json").read_text() == "further ahead"
    again.push()
    again.close()
    memory.pipe_file("/bucket/run/checkpoints/1/weights", b"somebody else's")
    other = Mirror("memory://bucket/run")
    other.pull()
    assert (other.folder / "checkpoints" / "1" / "weights").read_text() == "somebody else's"
    other.close()


def _write_checkpoint(run: Path, name: str) -> None:
    folder = run / "checkpoints" / name
    folder.mkdir(parents=True)
    (folder / "weights").write_text(name)
    write_manifest(folder)
    (run / "run.json").write_text(name)


def test_a_mirror_goes_where_the_run_went(memory: Any, tmp_path: Path) -> None:
    mirror = Mirror("memory://bucket/run")
    mirror.pull()
    mirror.folder.mkdir(parents=True)
    (mirror.folder / "run.json").write_text("{}")
    half = mirror.folder / "checkpoints" / "0"  # whose removal has begun
    for folder in (half, mirror.folder / "checkpoints" / "1"):
        folder.mkdir(parents=True)
        for name in ("model.safetensors", "optimizer.safetensors"):
            (folder / name).write_text("weights")
        write_manifest(folder)
    (half / "optimizer.safetensors").unlink()
    (mirror.folder / "lock").touch()
    mirror.push_later(pytest.fail)
    mirror.push()
    mirror.close()
    assert memory.find("/bucket/run") == [
        f"/bucket/run/{name}"
        for name in (
            "checkpoints/1/manifest.json", "checkpoints/1/model.safetensors",
            "checkpoints/1/optimizer.safetensors", "run.json",
        )
    ]  # fmt: skip
    (mirror.folder / "unsaved").write_text("here only")
    again = Mirror("memory://bucket/run")
    again.pull()
    assert (again.folder / "unsaved").exists()  # this is the machine that was there last
    again.close()
    memory.pipe_file("/bucket/run/metrics.jsonl", b"of another machine")
    again = Mirror("memory://bucket/run")
    again.pull()
    assert (again.folder / "metrics.jsonl").read_bytes() == b"of another machine"
    assert not (again.folder / "unsaved").exists()
    (again.folder / "checkpoints" / "1" / "optimizer.safetensors").unlink()
    again.push()
    again.close()
    assert memory.find("/bucket/run") == ["/bucket/run/metrics.jsonl", "/bucket/run/run.json"]


def test_one_process_at_a_time_works_on_a_run(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEWAL", 0.05)
    first, second = Lease("memory://bucket/run"), Lease("memory://bucket/run")
    first.take()
    with pytest.raises(FileError, match=rf"process {os.getpid()} on .* works on it"):
        second.take()
    first.give_back()
    second.take()
    with pytest.raises(FileError, match="has taken over"):
        first.check()
    second.give_back()
    assert memory.find("/bucket/run") == []


@pytest.mark.parametrize("host", ["elsewhere", socket.gethostname()])
def test_the_lock_of_an_owner_that_is_gone_is_taken_over(
    memory: Any, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """At once where the process can be looked for, else when the lock is not renewed."""
    monkeypatch.setattr(lease, "RENEWAL", 0.05 if host == "elsewhere" else 1000.0)
    gone = subprocess.Popen(["true"])
    gone.wait()
    content = json.dumps({"host": host, "pid": gone.pid, "token": "theirs"})
    memory.pipe_file(f"/bucket/run/{lease.LOCK}", content.encode())
    mine = Lease("memory://bucket/run")
    mine.take()
    mine.check()
    mine.give_back()

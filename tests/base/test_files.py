"""Files that are whole or not there."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from litebert.base.errors import FileError, FormatError
from litebert.base.files import (
    LARGEST_JSON,
    MANIFEST,
    check_manifest,
    new_folder,
    read_json,
    sha256,
    write_atomic,
    write_json,
    write_manifest,
)


def listing(folder: Path) -> dict[str, bytes]:
    """Every file below a folder and what it holds."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file, one below it, and a manifest."""
    made = tmp_path / "made"
    (made / "below").mkdir(parents=True)
    (made / "a.txt").write_bytes(b"first")
    (made / "below" / "b.txt").write_bytes(b"second")
    write_manifest(made)
    return made


def test_json_keeps_order_and_letters(tmp_path: Path) -> None:
    content = {"z": 1, "a": ["ü", None], "m": {"y": 2.5, "b": True}}
    write_json(tmp_path / "x.json", content)
    assert list(read_json(tmp_path / "x.json").items()) == list(content.items())
    text = (tmp_path / "x.json").read_text(encoding="utf-8")
    assert text.startswith('{\n  "z": 1')
    assert "ü" in text
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not readable as JSON"),
        (b"{", "not readable as JSON"),
        (b'{"a": 1} x', "not readable as JSON"),
        (b"\xff\xfe{}", "not readable as JSON"),
        (b"[1]", "holds a JSON list, expected an object"),
        (b'"a"', "holds a JSON str, expected an object"),
        (b"null", "holds a JSON NoneType, expected an object"),
        pytest.param(b"[" * 200_000, "not readable as JSON", id="deep list"),
        pytest.param(b'{"a":' * 200_000, "not readable as JSON", id="deep object"),
        pytest.param(b'{"a": ' + b"9" * 5000 + b"}", "not readable as JSON", id="5000 digits"),
    ],
)
def test_bad_json_is_refused_by_name(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        read_json(file)
    assert str(file) in str(caught.value)


def test_json_that_is_missing_or_a_folder(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"gone\.json: no such file"):
        read_json(tmp_path / "gone.json")
    with pytest.raises(FileError, match="not a regular file but a folder"):
        read_json(tmp_path)


def test_json_too_large_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.json"
    with file.open("wb") as stream:
        stream.truncate(LARGEST_JSON + 1)  # sparse: takes no room
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: pytest.fail("was read"))
    with pytest.raises(FormatError, match=r"67,108,865 bytes is too large"):
        read_json(file)


def test_sha256_is_the_one_everybody_has(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc" * 100_000)
    assert sha256(tmp_path / "x") == hashlib.sha256(b"abc" * 100_000).hexdigest()


def test_a_manifest_lists_every_file_but_itself(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest == {
        "format": 1,
        "files": {
            "a.txt": {"bytes": 5, "sha256": hashlib.sha256(b"first").hexdigest()},
            "below/b.txt": {"bytes": 6, "sha256": hashlib.sha256(b"second").hexdigest()},
        },
    }
    check_manifest(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"firs", "4 bytes, manifest.json says 5"),
        ("a.txt", b"first!", "6 bytes, manifest.json says 5"),
        ("a.txt", b"fir\xf3t", "does not match its checksum"),
        ("below/b.txt", b"secone", "does not match its checksum"),
        ("below/b.txt", None, "listed in manifest.json but missing"),
    ],
)
def test_a_manifest_finds_any_change(
    name: str, content: bytes | None, message: str, folder: Path
) -> None:
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(FileError, match=message) as caught:
        check_manifest(folder)
    assert str(folder / name) in str(caught.value)


def test_no_manifest_no_check(folder: Path) -> None:
    (folder / MANIFEST).unlink()
    (folder / "a.txt").write_bytes(b"changed")
    check_manifest(folder)
    assert not (folder / MANIFEST).exists()


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"format": 2, "files": {}},
        {"format": 1},
        {"format": 1, "files": ["a.txt"]},
        {"format": 1, "files": {"a.txt": "5"}},
        {"format": 1, "files": {"a.txt": {"bytes": 5}}},
        {"format": 1, "files": {"../outside.txt": {"bytes": 1, "sha256": ""}}},
        [],
    ],
    ids=json.dumps,
)
def test_a_manifest_that_is_none_is_refused_by_name(content: Any, folder: Path) -> None:
    (folder.parent / "outside.txt").write_bytes(b"x")
    (folder / MANIFEST).write_text(json.dumps(content))
    with pytest.raises(FormatError) as caught:
        check_manifest(folder)
    assert str(folder / MANIFEST) in str(caught.value)


def test_a_new_folder_appears_whole_with_its_manifest(tmp_path: Path) -> None:
    goal = tmp_path / "deep" / "down" / "goal"
    with new_folder(goal) as scratch:
        (scratch / "a.txt").write_bytes(b"first")
        assert not goal.exists()
        assert scratch.parent == goal.parent  # so that the last step is a rename
    assert sorted(listing(goal)) == ["a.txt", MANIFEST]
    check_manifest(goal)
    assert [path.name for path in goal.parent.iterdir()] == ["goal"]
    assert goal.stat().st_mode & 0o777 == 0o755


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "goal").mkdir()
    with new_folder(tmp_path / "goal") as scratch:
        (scratch / "a.txt").write_bytes(b"first")
    assert sorted(listing(tmp_path)) == ["goal/a.txt", f"goal/{MANIFEST}"]


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_is_there_already_stays(kind: str, tmp_path: Path) -> None:
    goal = tmp_path / "goal"
    if kind == "folder":
        goal.mkdir()
        (goal / "old.txt").write_bytes(b"old")
    else:
        goal.write_bytes(b"old")
    before = listing(tmp_path)
    with pytest.raises(FileError, match="goal: already exists"), new_folder(goal):
        pytest.fail("was opened for writing")
    assert listing(tmp_path) == before


def test_overwriting_swaps_the_whole_folder(tmp_path: Path) -> None:
    goal = tmp_path / "goal"
    for content in ("old", "new"):
        with new_folder(goal, overwrite=True) as scratch:
            (scratch / f"{content}.txt").write_text(content)
    assert sorted(listing(tmp_path)) == [f"goal/{MANIFEST}", "goal/new.txt"]
    check_manifest(goal)


@pytest.mark.parametrize("there", [True, False], ids=["over an old one", "fresh"])
@pytest.mark.parametrize("step", ["fill", "manifest", "flush", "rename"])
@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()], ids=["error", "Ctrl-C"])
def test_a_failure_at_any_step_leaves_the_old_folder_and_no_scraps(
    there: bool, step: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goal, failures = tmp_path / "goal", 0
    if there:
        with new_folder(goal) as scratch:
            (scratch / "old.txt").write_bytes(b"old")
    before = listing(tmp_path)
    rename = Path.rename

    def fail(*_: object) -> None:
        nonlocal failures
        failures += 1
        raise error

    def fail_once(path: Path, target: Path) -> Path:
        if Path(target) == goal and not failures:
            fail()
        return rename(path, target)

    if step == "manifest":
        monkeypatch.setattr("litebert.base.files.write_manifest", fail)
    elif step == "flush":
        monkeypatch.setattr(os, "fsync", fail)
    elif step == "rename":
        monkeypatch.setattr(Path, "rename", fail_once)

    def attempt() -> None:
        with new_folder(goal, overwrite=True) as scratch:
            (scratch / "half.txt").write_bytes(b"half")
            if step == "fill":
                fail()

    with pytest.raises((OSError, FileError, KeyboardInterrupt)):
        attempt()
    assert failures == 1
    assert listing(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == (["goal"] if there else [])


@pytest.mark.parametrize("case", ["below a file", "name too long", "a link to nowhere"])
def test_a_place_that_cannot_be_written_is_named(case: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    goal = {
        "below a file": tmp_path / "file" / "goal",
        "name too long": tmp_path / ("n" * 300),
        "a link to nowhere": tmp_path / "link",
    }[case]
    before = sorted(tmp_path.iterdir())
    with pytest.raises(FileError) as caught, new_folder(goal) as scratch:
        (scratch / "a.txt").write_bytes(b"first")
    assert str(goal) in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before


def test_files_have_the_usual_modes(tmp_path: Path) -> None:
    """Whatever a library that wrote one of them thinks."""
    with new_folder(tmp_path / "made") as folder:
        (folder / "mine").write_text("x")
        (folder / "mine").chmod(0o600)
        (folder / "below").mkdir(mode=0o700)
        (folder / "below" / "other").write_text("x")
    (tmp_path / "usual").write_text("x")
    usual = (tmp_path / "usual").stat().st_mode
    found = {path.stat().st_mode for path in (tmp_path / "made").rglob("*") if path.is_file()}
    assert found == {usual}
    assert (tmp_path / "made" / "below").stat().st_mode == (tmp_path / "made").stat().st_mode


def test_everything_is_flushed_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rename may reach the disk before data that was not flushed."""
    flushed: set[int] = set()
    renamed: dict[str, set[int]] = {}
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.add(os.fstat(descriptor).st_ino)
        sync(descriptor)

    def watched(rename: Any) -> Any:
        def call(source: Path, destination: Path, **options: Any) -> None:
            below = [Path(source), *Path(source).rglob("*")]
            renamed[Path(destination).name] = {path.stat().st_ino for path in below} - flushed
            rename(source, destination, **options)

        return call

    monkeypatch.setattr(os, "fsync", fsync)
    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    with new_folder(tmp_path / "folder") as scratch:
        (scratch / "below").mkdir()
        (scratch / "below" / "b.txt").write_bytes(b"second")
    write_atomic(tmp_path / "file", b"first")
    assert renamed == {"folder": set(), "file": set()}  # nothing that was not flushed
    assert {(tmp_path / "folder").stat().st_ino, tmp_path.stat().st_ino} <= flushed

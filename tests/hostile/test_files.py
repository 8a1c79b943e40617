"""Pipes, links, modes and manifests: nothing hangs, nothing unlisted is accepted."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

import litebert
from litebert.base.errors import FileError, LitebertError
from litebert.base.files import check_manifest, write_manifest
from litebert.model.model import Model
from tests.hostile.small import RUN, TINY, edit

# ---------------------------------------------------------------------------- strange files

NAMES = ("config.json", "model.safetensors", "litebert.safetensors", "manifest.json")


@pytest.mark.parametrize("name", [*NAMES, "model.safetensors.index.json"])
def test_a_pipe_in_a_model_folder_does_not_hang(name: str, model_folder: Path) -> None:
    if name.endswith("index.json"):
        (model_folder / "model.safetensors").unlink()
    (model_folder / name).unlink(missing_ok=True)
    os.mkfifo(model_folder / name)
    with pytest.raises(FileError, match="not a regular file"):
        litebert.load(model_folder)


@pytest.mark.parametrize("name", ["spiece.model", "tokenizer_config.json"])
def test_a_pipe_in_a_tokenizers_folder_does_not_hang(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileError, match=r"not a regular file|no tokenizer here"):
        litebert.load_tokenizer(tmp_path)


def test_pipes_elsewhere_do_not_hang(tmp_path: Path, finished: tuple[Path, Path]) -> None:
    run = Path(shutil.copytree(finished[1], tmp_path / "run"))
    for path, use in (
        (run / "metrics.jsonl", lambda: litebert.plot([run], out=tmp_path / "x.png")),
        (run / "run.json", lambda: litebert.evaluate(run, corpus=finished[0])),
        (tmp_path / "own.toml", lambda: litebert.load_preset(str(tmp_path / "own.toml"))),
        (tmp_path / "own.csv", lambda: litebert.predict(run, tmp_path / "own.csv")),
    ):
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        with pytest.raises(LitebertError):
            use()


@pytest.mark.parametrize("name", ["lock", "metrics.jsonl"])
def test_pipes_where_a_run_writes_do_not_hang(
    name: str, tmp_path: Path, finished: tuple[Path, Path]
) -> None:
    run = Path(shutil.copytree(finished[1], tmp_path / "run"))
    edit(run / "run.json", finished=False)
    (run / name).unlink()
    os.mkfifo(run / name)
    preset, *overrides = RUN
    with pytest.raises(FileError, match=r"cannot be written|not a regular file"):
        litebert.pretrain(preset, finished[0], run, overrides=overrides)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_links_are_followed_to_regular_files_only(name: str, model_folder: Path) -> None:
    """Hugging Face's cache is made of links that lead out of the folder."""
    elsewhere = model_folder.parent / "blob"
    (model_folder / name).rename(elsewhere)
    (model_folder / name).symlink_to(elsewhere)
    assert litebert.load(model_folder).heads
    (model_folder / name).unlink()
    (model_folder / name).symlink_to("/dev/zero")
    with pytest.raises(FileError, match="not a regular file"):
        litebert.load(model_folder)


def test_modes_are_those_of_the_umask(tmp_path: Path) -> None:
    config = litebert.EncoderConfig(**TINY)  # type: ignore[arg-type]
    before = os.umask(0o027)
    try:
        Model.create(config).save(tmp_path / "model")
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "model").iterdir()}
    assert modes == {0o640}
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o750


# ---------------------------------------------------------------------------- manifests


@pytest.mark.parametrize(
    "entry",
    [
        {"a": {"bytes": "many", "sha256": "0"}},
        {"a": {"bytes": None, "sha256": "0"}},
        {"a": {"bytes": 1.5, "sha256": "0"}},
        {"a" * 300: {"bytes": 1, "sha256": "0"}},
        {"a\0b": {"bytes": 1, "sha256": "0"}},
        {"a": []},
    ],
    ids=str,
)
def test_manifests_with_odd_entries(entry: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    text = json.dumps({"format": 1, "files": entry}, indent=2, ensure_ascii=False) + "\n"
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(FileError, match="manifest"):
        check_manifest(tmp_path)


def test_a_manifest_lists_every_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    write_manifest(tmp_path)
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "hidden").touch()
    check_manifest(tmp_path)
    (tmp_path / "litebert.safetensors").touch()
    with pytest.raises(FileError, match=r"litebert\.safetensors: not listed in manifest\.json"):
        check_manifest(tmp_path)

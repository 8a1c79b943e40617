"""Import and export: sources that are missing, destinations that are taken or full."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors import SafetensorError

from tests.mistakes.conftest import Refused
from tests.mistakes.model_damage import cut


@pytest.mark.parametrize("command", ["import", "export"])
def test_a_missing_source_is_named(command: str, refused: Refused, tmp_path: Path) -> None:
    sentence = refused(command, tmp_path / "nowhere", tmp_path / "out")
    assert f"{tmp_path / 'nowhere'}: no such" in sentence
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["import"], ["export"], ["export", "--format=tensorflow"]])
@pytest.mark.parametrize("kind", ["folder", "file", "the source"])
def test_a_destination_that_is_there_stays(
    arguments: list[str], kind: str, foreign: Path, refused: Refused, tmp_path: Path
) -> None:
    source = Path(shutil.copytree(foreign / "albert", tmp_path / "source"))
    out = source if kind == "the source" else tmp_path / "out"
    if kind == "folder":
        out.mkdir()
        (out / "thesis.txt").write_text("years of work")
    elif kind == "file":
        out.write_text("years of work")
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    assert f"{out}: already exists" in refused(arguments[0], source, out, *arguments[1:])
    after = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    assert after == before


@pytest.mark.parametrize("arguments", [["import"], ["export"], ["export", "--format=tensorflow"]])
def test_a_destination_that_cannot_be_written_is_named(
    arguments: list[str], source: Path, refused: Refused, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    for out in (tmp_path / "file" / "out", tmp_path / ("n" * 300)):
        sentence = refused(arguments[0], source, out, *arguments[1:])
        assert str(out) in sentence
        assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "source"]
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        SafetensorError("I/O error: No space left on device (os error 28)"),
    ],
    ids=["of Python", "of safetensors"],
)
def test_a_full_disk_is_one_sentence(
    error: Exception, source: Path, refused: Refused, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def full(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("litebert.model.folder.save_file", full)
    sentence = refused("import", source, tmp_path / "out")
    assert str(tmp_path / "out") in sentence
    assert "No space left on device" in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_google_has_no_roberta(foreign: Path, refused: Refused, tmp_path: Path) -> None:
    sentence = refused("export", foreign / "roberta", tmp_path / "out", "--format", "tensorflow")
    for word in (str(foreign / "roberta"), "roberta;", "albert and bert", "--format huggingface"):
        assert word in sentence
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_refused(source: Path, refused: Refused, tmp_path: Path) -> None:
    sentence = refused("export", source, tmp_path / "out", "--format", "gguf")
    assert "'gguf'" in sentence
    assert "huggingface or onnx or tensorflow" in sentence


@pytest.mark.slow
def test_as_a_process(source: Path, tmp_path: Path) -> None:
    cut(0.5)(source)
    for arguments, word in (
        (["plan", "albert-bse"], "'albert-base'"),
        (["import", source, tmp_path / "out"], "model.safetensors"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "litebert", *map(str, arguments)], capture_output=True, text=True
        )
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.startswith("litebert: ")
        assert done.stderr.count("\n") == 1
        assert word in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["source"]

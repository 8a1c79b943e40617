"""Checkpoints, states, results and metrics that no run has written."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import litebert
from litebert.base.errors import FileError, FormatError
from litebert.base.files import write_manifest
from litebert.finetuning.finetune import FinetuneReport
from litebert.finetuning.runs import read_result
from litebert.train.checkpoint import Checkpoints, read_state
from litebert.train.metrics import read_metrics
from tests.hostile.small import RUN, edit

STATES: dict[str, dict[str, Any]] = {
    "a step from elsewhere": {"step": 10**30},
    "no sums": {"sums": None},
    "threads without end": {"threads": 10**9},
    "tokens a word": {"tokens": "many"},
}


@pytest.mark.parametrize("case", STATES)
def test_a_checkpoint_whose_state_is_none_is_left_out(
    case: str, finished: tuple[Path, Path], tmp_path: Path
) -> None:
    """Also where its manifest fits: the one before is used."""
    run = Path(shutil.copytree(finished[1], tmp_path / "run"))
    kept = Checkpoints(run / "checkpoints", 2)
    before, newest = kept.found()
    edit(newest / "state.json", **STATES[case])
    write_manifest(newest)
    said: list[str] = []
    assert kept.last_good(said.append) == before
    assert "damaged and left out" in said[0]


def test_a_state_whose_numbers_are_texts_comes_back_as_numbers(
    finished: tuple[Path, Path], tmp_path: Path
) -> None:
    newest = Checkpoints(Path(shutil.copytree(finished[1], tmp_path / "run")) / "checkpoints", 2)
    path = newest.found()[-1]
    edit(path / "state.json", step=str(int(path.name)))
    assert read_state(path)["step"] == int(path.name)


def test_inspect_compares_ids_with_their_checksum(
    finished: tuple[Path, Path], tmp_path: Path
) -> None:
    store = Path(shutil.copytree(finished[0], tmp_path / "store"))
    (shard,) = (store / "shards").iterdir()
    content = bytearray(shard.read_bytes())
    ids = litebert.open_store(store).shard(0).ids
    place = bytes(content).index(ids.tobytes())
    content[place : place + 2] = b"\xff\xff"  # beyond the vocabulary
    shard.write_bytes(content)
    with pytest.raises(FileError, match="does not match its checksum"):
        litebert.inspect([store])


def test_a_manifest_without_numbers_does_not_prevent_the_checkpoint_before(
    finished: tuple[Path, Path], tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished[1], tmp_path / "run"))
    kept = Checkpoints(run / "checkpoints", 2)
    before, newest = kept.found()
    manifest = (newest / "manifest.json").read_text()
    (newest / "manifest.json").write_text(manifest.replace('"bytes": ', '"bytes": "x", "y": ', 1))
    assert kept.last_good(lambda _: None) == before


@pytest.mark.parametrize("change", [{"finished": None}, {"finished": True, "step": "x"}])
def test_run_json_with_wrong_keys(change: Any, finished: tuple[Path, Path], tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished[1], tmp_path / "run"))
    edit(run / "run.json", **change)
    name, *overrides = RUN
    with pytest.raises(FormatError, match=r"run\.json"):
        litebert.pretrain(name, finished[0], run, overrides=overrides)


@pytest.mark.parametrize("content", [{}, {"seed": 1}, {"scores": {}}])
def test_results_and_reports_with_wrong_keys(content: Any, tmp_path: Path) -> None:
    for name in ("result.json", "report.json"):
        (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(FormatError, match=r"result\.json"):
        read_result(tmp_path, "accuracy")
    with pytest.raises(FormatError, match="not a report of `litebert finetune`"):
        FinetuneReport.load(tmp_path / "report.json")


def test_a_finished_run_needs_no_lock(
    finished: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a disk that cannot be written it still says that it is finished."""

    def read_only(*_: object) -> None:
        raise FileError("read-only")

    monkeypatch.setattr("litebert.train.pretrain.lock_folder", read_only)
    name, *overrides = RUN
    assert litebert.pretrain(name, finished[0], finished[1], overrides=overrides).finished


LINES = [
    "[" * 100_000, "5", "[1]", '{"kind": []}', '{"kind": "training", "step": "x"}',
    '{"kind": "training", "step": 1e400}',
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:40])
def test_metrics_that_are_none(line: str, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(line + "\n")
    with pytest.raises(FormatError, match=r"metrics\.jsonl, line 1"):
        read_metrics(tmp_path)


def test_a_picture_into_a_folder_that_cannot_be_written(
    finished: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FileError, match="cannot be written to"):
        litebert.plot([finished[1]], out=tmp_path / "x.png")

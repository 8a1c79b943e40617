"""A run's folder: finished, in use, of other settings, or on a full disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from litebert.base.errors import FileError
from litebert.base.files import lock_folder
from litebert.train import checkpoint
from litebert.train.callbacks import Callback
from litebert.train.pretrain import pretrain
from tests.train.runs import Notes, assert_equal_endings, ending, last_checkpoint, small


def test_a_finished_run_returns_at_once(corpus: Path, tmp_path: Path) -> None:
    preset, notes = small("albert-tiny", budget="3steps"), Notes()
    first = pretrain(preset, corpus, tmp_path / "run")
    before = ending(tmp_path / "run")
    again = pretrain(preset, corpus, tmp_path / "run", callbacks=[notes])
    assert again.finished
    assert (again.step, again.tokens) == (first.step, first.tokens) == (3, first.tokens)
    assert notes.begun == notes.metrics == []
    assert ending(tmp_path / "run") == before


def test_a_run_killed_while_it_saves_its_model_finishes(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = small("albert-tiny", budget="3steps")
    pretrain(preset, corpus, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr("litebert.model.model.Model.save", _no_space)
        with pytest.raises((OSError, FileError)):
            pretrain(preset, corpus, tmp_path / "run")
    assert pretrain(preset, corpus, tmp_path / "run").finished
    assert_equal_endings(tmp_path / "run", tmp_path / "whole")


def test_another_run_in_the_same_folder_is_refused(corpus: Path, tmp_path: Path) -> None:
    with (
        lock_folder(tmp_path, "litebert pretrain"),
        pytest.raises(FileError, match="another `litebert pretrain` is at work"),
    ):
        pretrain(small("albert-tiny"), corpus, tmp_path)


class _Second(Callback):
    """Tries to start the same run once more while it is under way."""

    def __init__(self, *call: Any) -> None:
        self.call, self.error = call, ""

    def on_step(self, step: int, progress: float) -> None:
        if not self.error:
            with pytest.raises(FileError) as caught:
                pretrain(*self.call)
            self.error = str(caught.value)


def test_a_run_under_way_cannot_be_started_twice(corpus: Path, tmp_path: Path) -> None:
    preset = small("albert-tiny", budget="2steps")
    second = _Second(preset, corpus, tmp_path / "run")
    assert pretrain(preset, corpus, tmp_path / "run", callbacks=[second]).finished
    assert "at work" in second.error


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"seed": 3}, "seed"),
        ({"data": {"batch_size": 9}}, "batch_size"),
        ({"budget": "15steps"}, "budget"),
        ({"model": {"num_hidden_layers": 3}}, "num_hidden_layers"),
    ],
)
def test_a_run_of_other_settings_is_refused(
    changes: dict[str, Any], shown: str, corpus: Path, tmp_path: Path
) -> None:
    pretrain(small("albert-tiny", budget="2steps"), corpus, tmp_path / "run")
    before = ending(tmp_path / "run")
    with pytest.raises(FileError, match=shown) as caught:
        pretrain(small("albert-tiny", **{"budget": "2steps", **changes}), corpus, tmp_path / "run")
    value = next(iter(changes.values()))
    value = next(iter(value.values())) if isinstance(value, dict) else value
    assert str(value) in str(caught.value)
    assert ending(tmp_path / "run") == before


def test_a_folder_of_something_else_is_refused(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(FileError, match="is no run"):
        pretrain(small("albert-tiny"), corpus, tmp_path)
    assert (tmp_path / "letter.txt").read_text() == "dear"


# A full disk.


def _no_space(*_: Any, **__: Any) -> None:
    raise OSError(28, "No space left on device")


class _Filling(Callback):
    """The disk is full from a step on."""

    def __init__(self, step: int, patch: pytest.MonkeyPatch, fill: Any) -> None:
        self.at, self.patch, self.fill = step, patch, fill

    def on_step(self, step: int, progress: float) -> None:
        if step == self.at:
            self.fill(self.patch)


def _weights_fail(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(checkpoint, "write_tensors", _no_space)


def _state_fails(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(checkpoint, "write_json", _no_space)


def _flushing_fails(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("litebert.base.files.os.fsync", _no_space)


def _renaming_fails(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Path, "rename", _no_space)


@pytest.mark.parametrize("fill", [_weights_fail, _state_fails, _flushing_fails, _renaming_fails])
def test_a_full_disk_is_one_clear_error(
    fill: Any, corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset, out = small("albert-tiny"), tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(FileError, match="No space left"):
        pretrain(preset, corpus, out, callbacks=[_Filling(8, patch, fill)])
    assert last_checkpoint(out).name == "00000006"
    assert [path.name for path in (out / "checkpoints").iterdir() if path.name[0] == "."] == []
    notes = Notes()
    assert pretrain(preset, corpus, out, callbacks=[notes]).finished
    assert notes.begun == [6]
    assert_equal_endings(out, endings(preset))


class _FullMetrics(Callback):
    """The disk has no room for another line of metrics."""

    def __init__(self, metrics: Path) -> None:
        self.metrics = metrics

    def on_step(self, step: int, progress: float) -> None:
        if step == 8:
            self.metrics.rename(self.metrics.with_name("kept"))
            self.metrics.symlink_to("/dev/full")


def test_a_disk_too_full_for_metrics_is_one_clear_error(
    corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset, out = small("albert-tiny"), tmp_path / "run"
    metrics = out / "metrics.jsonl"
    with pytest.raises(FileError, match=r"metrics\.jsonl.*No space left"):
        pretrain(preset, corpus, out, callbacks=[_FullMetrics(metrics)])
    (out / "kept").replace(metrics)
    pretrain(preset, corpus, out)
    assert_equal_endings(out, endings(preset))


def test_a_folder_that_cannot_be_made_is_said(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written"):
        pretrain(small("albert-tiny"), corpus, tmp_path / "file" / "run")

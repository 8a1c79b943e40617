"""TensorBoard: which numbers go where; with the real package, that they are read back."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from litebert.base.errors import MissingExtraError
from litebert.train.callbacks import Callback
from litebert.train.tensorboard import TensorBoard, scalars

MODULE = "torch.utils.tensorboard"
TRAIN = {
    "kind": "train", "step": 10, "tokens": 1000, "rate": 1e-3, "norm": 0.5,
    "loss": {"masked_lm": 6.0}, "accuracy": {"masked_lm": 0.25},
    "time": {"seconds": 1.0, "progress": 0.5, "tokens_per_second": 1000.0, "data": 0.125},
}  # fmt: skip
HELD_OUT = {
    "kind": "held_out", "step": 10, "tokens": 1000, "loss": {"masked_lm": 5.5},
    "accuracy": {}, "found": {"replaced_token": 0.75}, "sample": "a [b]",
    "time": {"seconds": 1.0},
}  # fmt: skip


class Writer:
    """In the place of SummaryWriter."""

    def __init__(self, folder: str, purge_step: int) -> None:
        self.opened = (folder, purge_step)
        self.scalars: list[tuple[str, float, int]] = []
        self.closed = False
        self.made.append(self)

    made: list[Writer]

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        self.scalars.append((tag, value, step))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch) -> list[Writer]:
    """The writers that are made."""
    Writer.made = []
    monkeypatch.setitem(sys.modules, MODULE, SimpleNamespace(SummaryWriter=Writer))
    return Writer.made


class Heard(Callback):
    """Remembers which calls came."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name in ("begin", "step", "record", "say", "sample"):
            return lambda *_: self.calls.append(name)
        return super().__getattribute__(name)


def test_charts_of_a_line() -> None:
    assert dict(scalars(TRAIN)) == {
        "loss/masked_lm/train": 6.0, "accuracy/masked_lm/train": 0.25,
        "training/rate": 1e-3, "training/norm": 0.5, "training/tokens_per_second": 1000.0,
        "training/data": 0.125,
    }  # fmt: skip
    assert dict(scalars(HELD_OUT)) == {
        "loss/masked_lm/held_out": 5.5, "found/replaced_token/held_out": 0.75,
    }  # fmt: skip


def test_what_is_not_finite_is_left_out() -> None:
    assert "training/norm" not in dict(scalars({**TRAIN, "norm": float("inf")}))


def test_numbers_are_written_and_all_calls_pass_on(writers: list[Writer], tmp_path: Path) -> None:
    heard = Heard()
    with TensorBoard(heard) as board:
        board.begin({"out": str(tmp_path), "step": 7})
        board.step(10, 0.5)
        board.record(TRAIN)
        board.say("hello")
        board.sample("a [b]")
    (writer,) = writers
    assert writer.opened == (str(tmp_path / "tensorboard"), 8)
    assert writer.scalars == [(tag, value, 10) for tag, value in scalars(TRAIN)]
    assert writer.closed
    assert heard.calls == ["begin", "step", "record", "say", "sample"]


def test_a_run_that_never_began_writes_nothing(writers: list[Writer]) -> None:
    with TensorBoard(Callback()) as board:
        board.record(TRAIN)
    assert writers == []


def test_the_package_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, None)
    with pytest.raises(MissingExtraError, match=r"litebert\[tensorboard\]"):
        TensorBoard(Callback())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_reads_it_back(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with TensorBoard(Callback()) as board:
        board.begin({"out": str(tmp_path), "step": 0})
        board.record(TRAIN)
        board.record({**TRAIN, "step": 20, "loss": {"masked_lm": 1.0}})
    with TensorBoard(Callback()) as board:  # resumed from step 10
        board.begin({"out": str(tmp_path), "step": 10})
        board.record({**TRAIN, "step": 20, "loss": {"masked_lm": 2.0}})
    found = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    losses = [(e.step, e.value) for e in found.Scalars("loss/masked_lm/train")]
    assert losses == [(10, 6.0), (20, 2.0)]

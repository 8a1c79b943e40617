"""TensorBoard: which numbers go where; with the real package, that they are read back."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from litebert.base.errors import MissingExtraError
from litebert.train.callbacks import RunStarted
from litebert.train.metrics import EvaluationMetrics, EvaluationTime, StepTime, TrainingMetrics
from litebert.train.tensorboard import TensorBoardLogger, scalars

MODULE = "torch.utils.tensorboard"
TRAINING = TrainingMetrics(
    step=10, tokens=1000, learning_rate=1e-3, gradient_norm=0.5,
    loss={"masked_lm": 6.0}, accuracy={"masked_lm": 0.25},
    time=StepTime(seconds=1.0, progress=0.5, tokens_per_second=1000.0, data_fraction=0.125),
)  # fmt: skip
EVALUATION = EvaluationMetrics(
    step=10, tokens=1000, loss={"masked_lm": 5.5}, recall={"replaced_token": 0.75},
    sample="a [b]", time=EvaluationTime(seconds=1.0),
)  # fmt: skip


def started(folder: Path, step: int) -> RunStarted:
    return RunStarted(
        title="", folder=folder, parameters=1, budget="9steps", warmup=0.1, step=step
    )  # fmt: skip


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


def test_charts_of_a_line() -> None:
    assert dict(scalars(TRAINING)) == {
        "loss/masked_lm/training": 6.0, "accuracy/masked_lm/training": 0.25,
        "training/learning_rate": 1e-3, "training/gradient_norm": 0.5,
        "training/tokens_per_second": 1000.0, "training/data_fraction": 0.125,
    }  # fmt: skip
    assert dict(scalars(EVALUATION)) == {
        "loss/masked_lm/evaluation": 5.5, "recall/replaced_token/evaluation": 0.75,
    }  # fmt: skip


def test_what_is_not_finite_is_left_out() -> None:
    nothing = {"gradient_norm": None, "loss": {"masked_lm": None}}
    found = dict(scalars(TRAINING.model_copy(update=nothing)))
    assert "training/gradient_norm" not in found
    assert "loss/masked_lm/training" not in found


def test_numbers_are_written(writers: list[Writer], tmp_path: Path) -> None:
    with TensorBoardLogger() as board:
        board.on_start(started(tmp_path, 7))
        board.on_step(10, 0.5)
        board.on_training(TRAINING)
        board.on_evaluation(EVALUATION)
        board.on_message("hello")
    (writer,) = writers
    assert writer.opened == (str(tmp_path / "tensorboard"), 8)
    assert writer.scalars == [
        (tag, value, 10) for line in (TRAINING, EVALUATION) for tag, value in scalars(line)
    ]
    assert writer.closed


def test_a_run_that_never_began_writes_nothing(writers: list[Writer]) -> None:
    with TensorBoardLogger() as board:
        board.on_training(TRAINING)
    assert writers == []


def test_the_package_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, None)
    with pytest.raises(MissingExtraError, match=r"litebert\[tensorboard\]"):
        TensorBoardLogger()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_reads_it_back(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with TensorBoardLogger() as board:
        board.on_start(started(tmp_path, 0))
        board.on_training(TRAINING)
        board.on_training(TRAINING.model_copy(update={"step": 20, "loss": {"masked_lm": 1.0}}))
    with TensorBoardLogger() as board:  # resumed from step 10
        board.on_start(started(tmp_path, 10))
        board.on_training(TRAINING.model_copy(update={"step": 20, "loss": {"masked_lm": 2.0}}))
    found = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    losses = [(e.step, e.value) for e in found.Scalars("loss/masked_lm/training")]
    assert losses == [(10, 6.0), (20, 2.0)]

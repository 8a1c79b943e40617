"""Callbacks: every event reaches all of them, in their order; a run's health is told last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from litebert.train.callbacks import Callback, CallbackList, RunStarted
from litebert.train.health import HealthChecks
from litebert.train.metrics import EvaluationMetrics, EvaluationTime, StepTime, TrainingMetrics
from litebert.train.pretrain import pretrain
from tests.train.runs import small, write_store

EVENTS = ("on_start", "on_step", "on_training", "on_evaluation", "on_message")
STARTED = RunStarted(
    title="", folder=Path(), parameters=1, budget="9steps", warmup=0.1, unigram_loss=6.0
)  # fmt: skip
EVALUATION = EvaluationMetrics(step=3, tokens=9, time=EvaluationTime(seconds=1.0))


def training(progress: float) -> TrainingMetrics:
    time = StepTime(seconds=1.0, progress=progress, tokens_per_second=8.0, data_fraction=0.0)
    return TrainingMetrics(
        step=round(1000 * progress),
        tokens=9,
        learning_rate=1e-3,
        gradient_norm=1.0,
        loss={"masked_lm": 6.0},
        time=time,
    )


class Heard(Callback):
    """Remembers every call."""

    def __init__(self, name: str, calls: list[tuple[str, str, tuple[Any, ...]]]) -> None:
        self.name, self.calls = name, calls

    def __getattribute__(self, event: str) -> Any:
        if event in EVENTS:
            return lambda *what: self.calls.append((self.name, event, what))
        return super().__getattribute__(event)


def test_all_events_reach_all_callbacks_in_their_order() -> None:
    calls: list[tuple[str, str, tuple[Any, ...]]] = []
    heard = CallbackList(Heard(name, calls) for name in ("first", "second"))
    told: dict[str, tuple[Any, ...]] = {
        "on_start": (STARTED,), "on_step": (3, 0.5), "on_training": (training(0.5),),
        "on_evaluation": (EVALUATION,), "on_message": ("hello",),
    }  # fmt: skip
    assert list(told) == list(EVENTS)
    for event, what in told.items():
        getattr(heard, event)(*what)
    assert calls == [
        (name, event, what) for event, what in told.items() for name in ("first", "second")
    ]


def test_a_warning_is_told_after_the_metrics_it_is_about() -> None:
    calls: list[tuple[str, str, tuple[Any, ...]]] = []
    heard = CallbackList([Heard("view", calls)])
    heard.callbacks.append(HealthChecks(heard.on_message))
    heard.on_start(STARTED)
    for place in range(1, 101):
        heard.on_training(training(place / 100))
    events = [event for _, event, _ in calls]
    (_, _, (metrics,)) = calls[events.index("on_message") - 1]
    assert metrics.time.progress == pytest.approx(0.3)
    assert events.count("on_message") == 1


def test_a_run_tells_its_events_to_all_callbacks(tmp_path: Path) -> None:
    calls: list[tuple[str, str, tuple[Any, ...]]] = []
    preset = small("albert-tiny", budget="4steps", evaluation={"every": 1.0})
    callbacks = [Heard(name, calls) for name in ("first", "second")]
    pretrain(preset, write_store(tmp_path / "corpus"), tmp_path / "run", callbacks=callbacks)
    first, second = ([call[1:] for call in calls if call[0] == n] for n in ("first", "second"))
    assert first == second
    assert [event for event, _ in first] == [
        "on_start", "on_step", "on_step", "on_training", "on_message", "on_step", "on_step",
        "on_training", "on_evaluation",
    ]  # fmt: skip
    assert [what[0] for event, what in first if event == "on_step"] == [1, 2, 3, 4]
    started = first[0][1][0]
    assert (started.folder, started.budget, started.step) == (tmp_path / "run", "4steps", 0)
    assert started.unigram_loss is not None
    evaluation = first[-1][1][0]
    assert set(evaluation.loss) == {"masked_lm", "sentence_order"}
    assert evaluation.sample

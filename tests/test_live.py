"""The live view: fake runs in a log, on a terminal, and on a rank that shows nothing."""

from __future__ import annotations

import io
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from litebert.cli import live
from litebert.cli.live import LivePanel, LogLines, View, lasting, live_view, plain, short
from litebert.train.callbacks import RunStarted
from litebert.train.health import WARNING
from litebert.train.metrics import EvaluationMetrics, EvaluationTime, StepTime, TrainingMetrics

RUN = RunStarted(
    title="ALBERT [small]: four layers", parameters=1234567, budget="60steps", warmup=0.1,
    unigram_loss=6.267, world_size=2, step=0, folder=Path("my-run"),
)  # fmt: skip
SAMPLE = "i could [see≠the] [/bold] [red]this[/red] [≠.] \x1b[31m\n end"


def training(step: int = 10, **changes: Any) -> TrainingMetrics:
    line = TrainingMetrics(
        step=step, tokens=1024 * step, learning_rate=0.000894, gradient_norm=1.0932,
        loss={"masked_lm": 6.301, "sentence_order": 0.668},
        accuracy={"masked_lm": 0.0348, "sentence_order": 0.617},
        time=StepTime(
            seconds=5.6, progress=step / 60, tokens_per_second=12345.0, data_fraction=0.0945,
        ),
    )  # fmt: skip
    return line.model_copy(update=changes)


def evaluation(step: int, **values: Any) -> EvaluationMetrics:
    time = EvaluationTime(seconds=6.0)
    return EvaluationMetrics(step=step, tokens=1024 * step, time=time, **values)


def held_out(step: int, loss: float) -> EvaluationMetrics:
    values = {"loss": {"masked_lm": loss}, "accuracy": {"masked_lm": 0.0512}}
    return evaluation(step, sample=SAMPLE, **values)


def console(terminal: bool, width: int = 120) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=width)


def written(screen: Console) -> str:
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def drawn(view: View) -> str:
    """What a panel looks like now, without colours."""
    paper = Console(file=io.StringIO(), width=120)
    paper.print(view)
    return written(paper)


def feed(view: View) -> None:
    view.on_message("resumes from step [1]")
    view.on_start(RUN)
    view.on_step(9, 9 / 60)
    view.on_step(10, 10 / 60)
    view.on_training(training())
    for loss in (6.251, 6.213):
        view.on_evaluation(held_out(12, loss))
    view.on_message(WARNING + "the loss [of] masked tokens")


@pytest.fixture(autouse=True)
def _leading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("TERM", "xterm")


NUMBERS = ("1,234,567", "60steps", "6.301", "0.668", "6.213", "6.267", "12.3k tokens/s", "10.2k",
           "9% of the time", "0.000894", "1.09", "3.5%", "61.7%", "5.1%", "2 ranks",
           "masked LM", "sentence order", "[see≠the] [/bold] [red]this[/red] [≠.]",
           "resumes from step [1]", "the loss [of] masked tokens", "ALBERT [small]")  # fmt: skip


def test_a_log_has_the_numbers() -> None:
    screen = console(terminal=False)
    with live_view(screen) as view:
        feed(view)
        assert isinstance(view, LogLines)
    for part in (*NUMBERS, "6.251", "held-out, step 12", "step 10 (17%)"):
        assert part in written(screen)
    assert "\x1b" not in written(screen)
    assert len(written(screen).splitlines()) == 8  # one for each call but steps


def test_a_panel_has_the_numbers() -> None:
    screen = console(terminal=True)
    with live_view(screen) as view:
        feed(view)
        text = drawn(view)
        assert isinstance(view, LivePanel)
    for part in (*NUMBERS, "6.213 ↓", "16.7%", "step 10"):
        assert part in text
    assert "\x1b" not in text
    assert "masked LM" in written(screen)  # the last drawing stays
    assert "\x1b[33mwarning: the loss" in written(screen)


def test_a_panel_before_anything_is_known() -> None:
    with live_view(console(terminal=True)) as view:
        assert "starting" in drawn(view)
        view.on_start(RUN)
        assert "1,234,567" in drawn(view)
        view.on_evaluation(held_out(1, 6.0))
        assert "6.000" in drawn(view)


@pytest.mark.parametrize("terminal", [False, True])
def test_objectives_without_accuracy_and_evaluations_without_text(terminal: bool) -> None:
    screen = console(terminal)
    with live_view(screen) as view:
        view.on_start(replace(RUN, unigram_loss=None))
        bare = {"loss": {"masked_lm": 6.1, "new_one": 3.2}, "accuracy": {}}
        view.on_training(training(**bare, recall={"new_one": 0.42}, gradient_norm=None))
        view.on_evaluation(evaluation(2))
        text = drawn(view) if terminal else written(screen)
    for part in ("new one", "3.200", "recall 42.0%", "gradient norm -"):
        assert part in text
    assert "baseline" not in text
    assert "None" not in text


def test_a_narrow_panel() -> None:
    screen = console(terminal=True, width=30)
    with live_view(screen) as view:
        feed(view)
    assert "masked" in written(screen)


def test_other_ranks_show_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    with live_view() as view:
        feed(view)
        assert type(view) is View
    assert capfd.readouterr() == ("", "")


def test_all_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    with live_view() as view:
        feed(view)
    out, err = capfd.readouterr()
    assert out == ""
    assert "masked LM 6.301" in err


def test_lines_of_training_come_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(live.time, "monotonic", lambda: now)
    screen = console(terminal=False)
    with live_view(screen) as view:
        view.on_start(RUN)
        for second in range(0, 100, 10):
            now = float(second)
            view.on_step(second + 1, second / 100)
            view.on_training(training(second + 1))
    steps = [line.split()[1] for line in written(screen).splitlines()[1:]]
    assert steps == ["1", "31", "61", "91"]


def test_time_left_counts_this_process_only(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(live.time, "monotonic", lambda: now)
    view = View()
    view.on_step(501, 0.50)  # resumed
    assert view.time_left() == ""
    now += 50
    view.on_step(600, 0.60)
    assert view.time_left() == "3m 20s left"
    now += 20
    assert view.time_left() == "3m 00s left"
    view.on_step(1000, 1.0)
    assert view.time_left() == "done"


def test_words_and_numbers_for_people() -> None:
    times = (0, 45.4, 59.9, 250, 7500, 273600)
    assert [lasting(t) for t in times] == ["0s", "45s", "1m 00s", "4m 10s", "2h 05m", "3d 4h"]
    counts = (0, 950, 999.9, 12345, 4.5e6, 1.2e9)
    assert [short(n) for n in counts] == ["0", "950", "1.0k", "12.3k", "4.5M", "1.2G"]
    names = ("masked_lm", "sentence_order", "replaced_token", "next_sentence")
    words = ["masked LM", "sentence order", "replaced tokens", "next sentence"]
    assert [plain(name) for name in names] == words


def test_a_step_costs_next_to_nothing() -> None:
    with live_view(console(terminal=True)) as view:
        began = time.perf_counter()
        for step in range(10_000):
            view.on_step(step, step / 10_000)
        assert time.perf_counter() - began < 1.0  # a hundredth of that here; machines stutter


def test_fine_tuning_shows_its_evaluations_on_dev() -> None:
    scores = {"dev": {"accuracy": 0.91234}, "dev-mismatched": {"accuracy": 0.8}}
    regression = training(loss={"sts-b": 1.5}, accuracy={})
    screen = console(terminal=False)
    with live_view(screen) as view:
        view.on_start(RUN)
        view.on_training(regression)
        view.on_evaluation(evaluation(40, scores=scores))
    log = written(screen)
    assert "step 40, dev: accuracy 0.9123; dev-mismatched: accuracy 0.8000" in log
    assert "sts-b 1.500 · " in log
    assert "sts-b 1.500 (" not in log  # an error has no accuracy
    panel = LivePanel()
    panel.on_start(RUN)
    panel.on_training(regression)
    panel.on_evaluation(evaluation(40, scores=scores))
    assert "dev-mismatched: accuracy 0.8000" in drawn(panel)
    (row,) = [line for line in drawn(panel).splitlines() if "sts-b" in line]
    assert "%" not in row

"""The live view: fake runs in a log, on a terminal, and on a rank that shows nothing."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest
from rich.console import Console

from litebert.cli import live
from litebert.cli.live import Moving, View, lasting, plain, short, watching
from litebert.train.health import MARK

FACTS = {
    "title": "ALBERT [small]: four layers", "parameters": 1234567, "budget": "60steps",
    "unigram": 6.267, "ranks": 2, "step": 0, "held_out": True, "out": "my-run",
}  # fmt: skip
SAMPLE = "i could [see≠the] [/bold] [red]this[/red] [≠.] \x1b[31m\n end"


def train(step: int = 10, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "train", "step": step, "tokens": 1024 * step, "rate": 0.000894, "norm": 1.0932,
        "loss": {"masked_lm": 6.301, "sentence_order": 0.668},
        "accuracy": {"masked_lm": 0.0348, "sentence_order": 0.617},
        "time": {
            "seconds": 5.6, "progress": step / 60, "tokens_per_second": 12345.0, "data": 0.0945,
        },
        **changes,
    }  # fmt: skip


def held_out(step: int, loss: float) -> dict[str, Any]:
    return {
        "kind": "held_out", "step": step, "tokens": 1024 * step, "sample": SAMPLE,
        "loss": {"masked_lm": loss}, "accuracy": {"masked_lm": 0.0512},
        "time": {"seconds": 6.0},
    }  # fmt: skip


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
    view.say("continues from step [1]")
    view.begin(FACTS)
    view.step(9, 9 / 60)
    view.step(10, 10 / 60)
    view.record(train())
    for loss in (6.251, 6.213):
        view.sample(SAMPLE)
        view.record(held_out(12, loss))
    view.say(MARK + "the loss [of] masked words")


@pytest.fixture(autouse=True)
def _leading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("TERM", "xterm")


NUMBERS = ("1,234,567", "60steps", "6.301", "0.668", "6.213", "6.267", "12.3k tokens/s", "10.2k",
           "9% of the time", "0.000894", "1.09", "3.5%", "61.7%", "5.1%", "2 ranks",
           "masked words", "sentence order", "[see≠the] [/bold] [red]this[/red] [≠.]",
           "continues from step [1]", "the loss [of] masked words", "ALBERT [small]")  # fmt: skip


def test_a_log_has_the_numbers() -> None:
    screen = console(terminal=False)
    with watching(screen) as view:
        feed(view)
        assert view.is_main
    for part in (*NUMBERS, "6.251", "held-out, step 12", "step 10 (17%)"):
        assert part in written(screen)
    assert "\x1b" not in written(screen)
    assert len(written(screen).splitlines()) == 8  # one for each call but steps


def test_a_panel_has_the_numbers() -> None:
    screen = console(terminal=True)
    with watching(screen) as view:
        feed(view)
        text = drawn(view)
        assert view.is_main
    for part in (*NUMBERS, "6.213 ↓", "16.7%", "step 10"):
        assert part in text
    assert "\x1b" not in text
    assert "masked words" in written(screen)  # the last drawing stays
    assert "\x1b[33mwarning: the loss" in written(screen)


def test_a_panel_before_anything_is_known() -> None:
    with watching(console(terminal=True)) as view:
        assert "starting" in drawn(view)
        view.begin(FACTS)
        assert "1,234,567" in drawn(view)
        view.record(held_out(1, 6.0))
        assert "6.000" in drawn(view)


@pytest.mark.parametrize("terminal", [False, True])
def test_objectives_without_accuracy_and_looks_without_text(terminal: bool) -> None:
    screen = console(terminal)
    with watching(screen) as view:
        view.begin({**FACTS, "unigram": None})
        bare = {"loss": {"masked_lm": 6.1, "new_one": 3.2}, "accuracy": {}}
        view.record(train(**bare, found={"new_one": 0.42}, norm=float("inf")))
        view.record({"kind": "held_out", "step": 2, "tokens": 3, "time": {"seconds": 1.0}})
        text = drawn(view) if terminal else written(screen)
    for part in ("new one", "3.200", "42.0%", "norm inf"):
        assert part in text
    assert "guessing" not in text


def test_a_narrow_panel() -> None:
    screen = console(terminal=True, width=30)
    with watching(screen) as view:
        feed(view)
    assert "masked" in written(screen)


def test_other_ranks_show_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    with watching() as view:
        feed(view)
        assert not view.is_main
    assert capfd.readouterr() == ("", "")


def test_all_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    with watching() as view:
        feed(view)
    out, err = capfd.readouterr()
    assert out == ""
    assert "masked words 6.301" in err


def test_lines_of_training_come_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(live.time, "monotonic", lambda: now)
    screen = console(terminal=False)
    with watching(screen) as view:
        view.begin(FACTS)
        for second in range(0, 100, 10):
            now = float(second)
            view.step(second + 1, second / 100)
            view.record(train(second + 1))
    steps = [line.split()[1] for line in written(screen).splitlines()[1:]]
    assert steps == ["1", "31", "61", "91"]


def test_time_left_counts_this_process_only(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(live.time, "monotonic", lambda: now)
    view = View()
    view.step(501, 0.50)  # resumed
    assert view.time_left() == ""
    now += 50
    view.step(600, 0.60)
    assert view.time_left() == "3m 20s left"
    now += 20
    assert view.time_left() == "3m 00s left"
    view.step(1000, 1.0)
    assert view.time_left() == "done"


def test_words_and_numbers_for_people() -> None:
    times = (0, 45.4, 59.9, 250, 7500, 273600)
    assert [lasting(t) for t in times] == ["0s", "45s", "1m 00s", "4m 10s", "2h 05m", "3d 4h"]
    counts = (0, 950, 999.9, 12345, 4.5e6, 1.2e9)
    assert [short(n) for n in counts] == ["0", "950", "1.0k", "12.3k", "4.5M", "1.2G"]
    names = ("masked_lm", "sentence_order", "replaced_token", "next_sentence")
    words = ["masked words", "sentence order", "replaced tokens", "next sentence"]
    assert [plain(name) for name in names] == words


def test_a_step_costs_next_to_nothing() -> None:
    with watching(console(terminal=True)) as view:
        began = time.perf_counter()
        for step in range(10_000):
            view.step(step, step / 10_000)
        assert time.perf_counter() - began < 1.0  # a hundredth of that here; machines stutter


def test_fine_tuning_shows_its_looks_at_dev() -> None:
    look = {"kind": "held_out", "step": 40, "tokens": 9, "loss": {}, "time": {"seconds": 1.0}}
    scores = {"dev": {"accuracy": 0.91234}, "dev-mismatched": {"accuracy": 0.8}}
    rating = {**train(), "loss": {"sts-b": 1.5}, "accuracy": {"sts-b": -1.5}}
    screen = console(terminal=False)
    with watching(screen) as view:
        view.begin(FACTS)
        view.record(rating)
        view.record({**look, "scores": scores})
    log = written(screen)
    assert "step 40, dev: accuracy 0.9123; dev-mismatched: accuracy 0.8000" in log
    assert "sts-b 1.500 · " in log
    assert "right" not in log  # an error is not a share
    moving = Moving()
    moving.begin(FACTS)
    moving.record(rating)
    moving.record({**look, "scores": scores})
    assert "dev-mismatched: accuracy 0.8000" in drawn(moving)
    assert "-150" not in drawn(moving)

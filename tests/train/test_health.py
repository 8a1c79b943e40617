"""Alarms: each one speaks when it should, stays silent when it should, and speaks once."""

from __future__ import annotations

from typing import Any

import pytest

from litebert.configs.schema import ScheduleSettings
from litebert.train.callbacks import Callback
from litebert.train.health import MARK, Alarms, enough_to_judge, is_at_chance, is_starved, is_stuck

UNIGRAM = 6.0


class Heard(Callback):
    """Remembers every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def begin(self, facts: dict[str, Any]) -> None:
        self.calls.append(("begin", facts))

    def step(self, step: int, progress: float) -> None:
        self.calls.append(("step", (step, progress)))

    def record(self, record: dict[str, Any]) -> None:
        self.calls.append(("record", record))

    def say(self, message: str) -> None:
        self.calls.append(("say", message))

    def sample(self, text: str) -> None:
        self.calls.append(("sample", text))

    def said(self, part: str = "") -> list[str]:
        return [what for call, what in self.calls if call == "say" and part in what]


def line(
    progress: float, loss: float = 3.0, accuracy: float = 0.8, data: float = 0.0,
    seconds: float | None = None, pair: str = "sentence_order",
) -> dict[str, Any]:  # fmt: skip
    return {
        "kind": "train", "step": 1, "tokens": 1, "rate": 1e-3, "norm": 1.0,
        "loss": {"masked_lm": loss, pair: 0.7},
        "accuracy": {"masked_lm": 0.1, pair: accuracy},
        "time": {
            "progress": progress, "data": data, "tokens_per_second": 1.0,
            "seconds": 100 * progress if seconds is None else seconds,
        },
    }  # fmt: skip


def begun(warmup: float = 0.1) -> tuple[Alarms, Heard]:
    heard = Heard()
    alarms = Alarms(heard)
    alarms.begin({"unigram": UNIGRAM, "schedule": ScheduleSettings(warmup=warmup)})
    return alarms, heard


def run(lines: int, **values: Any) -> Heard:
    """A whole run of equal lines."""
    alarms, heard = begun()
    for place in range(1, lines + 1):
        alarms.record(line(place / lines, **values))
    return heard


def test_all_calls_pass_on() -> None:
    alarms, heard = begun()
    alarms.step(3, 0.5)
    alarms.record({"kind": "held_out", "step": 3, "tokens": 9, "time": {"seconds": 1.0}})
    alarms.say("hello")
    alarms.sample("a [b]")
    assert [call for call, _ in heard.calls] == ["begin", "step", "record", "say", "sample"]


def test_a_good_run_is_silent() -> None:
    assert run(200).said() == []


def test_words_at_the_unigram_level_are_told_once() -> None:
    heard = run(200, loss=UNIGRAM)
    (said,) = heard.said()
    assert said.startswith(MARK)
    for part in (
        "30%",
        "6.00",
        "optimizer.learning_rate",
        "initialization=corpus",
        "data.batch_size",
        "longer budget",
    ):
        assert part in said


def test_words_are_told_after_the_record_they_are_about() -> None:
    heard = run(200, loss=UNIGRAM)
    before = [what for call, what in heard.calls[: heard.calls.index(("say", heard.said()[0]))]]
    assert before[-1]["time"]["progress"] == pytest.approx(0.3)


@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.6])
def test_words_wait_for_the_warmup_and_ten_lines(warmup: float) -> None:
    alarms, heard = begun(warmup)
    told_at = None
    for place in range(1, 101):
        alarms.record(line(place / 100, loss=UNIGRAM))
        if told_at is None and heard.said():
            told_at = place
    assert told_at == max(30, round(100 * warmup) + 10)


def test_a_short_run_is_judged_near_its_end() -> None:
    alarms, heard = begun()
    for progress in (0.2, 0.4, 0.6, 0.8):
        alarms.record(line(progress, loss=UNIGRAM))
    assert heard.said() == []
    alarms.record(line(1.0, loss=UNIGRAM))
    assert len(heard.said("frequency")) == 1


def test_two_lines_judge_nothing() -> None:
    assert run(2, loss=UNIGRAM).said() == []
    assert not enough_to_judge(2, 1.0)


def test_words_below_the_margin_are_learned() -> None:
    assert run(200, loss=UNIGRAM - 0.06).said() == []
    assert run(200, loss=UNIGRAM - 0.04).said("frequency")


def test_a_run_that_leaves_the_plateau_is_not_stuck() -> None:
    assert is_stuck([6.0] * 10, UNIGRAM)
    assert not is_stuck([6.5] * 5 + [5.9] * 5, UNIGRAM)
    assert is_stuck([5.9] * 5 + [6.2] * 5, UNIGRAM)
    assert not is_stuck([float("nan")] * 10, UNIGRAM)


@pytest.mark.parametrize("pair", ["sentence_order", "next_sentence"])
def test_pairs_at_chance_are_told_once(pair: str) -> None:
    alarms, heard = begun()
    told_at = None
    for place in range(1, 201):
        alarms.record(line(place / 200, accuracy=0.45 + 0.1 * (place % 2), pair=pair))
        if told_at is None and heard.said():
            told_at = place
    (said,) = heard.said(pair.replace("_", " "))
    assert told_at == 100
    assert said.startswith(MARK)
    for part in ("50%", "10M tokens", "litebert inspect", "longer budget"):
        assert part in said


def test_pairs_need_twenty_lines() -> None:
    assert run(20, accuracy=0.5).said() == []
    assert run(40, accuracy=0.5).said("chance")


def test_pairs_above_chance_by_more_than_their_noise_are_learned() -> None:
    noise = [0.45, 0.55] * 10
    assert is_at_chance(noise)
    assert is_at_chance([value + 0.01 for value in noise])
    assert not is_at_chance([value + 0.03 for value in noise])
    assert is_at_chance([0.4] * 20)
    assert not is_at_chance([0.6] * 20)


def test_an_objective_that_is_not_there_is_not_judged() -> None:
    alarms, heard = begun()
    for place in range(1, 101):
        record = line(place / 100)
        record["loss"], record["accuracy"] = {"replaced_token": 9.0}, {"replaced_token": 0.5}
        alarms.record(record)
    assert heard.said() == []


def test_waiting_for_data_is_told_again_after_ten_minutes_of_the_run() -> None:
    alarms, heard = begun()
    times = []
    for minute in range(1, 41):
        alarms.record(line(minute / 40, data=0.4, seconds=60.0 * minute))
        times += [minute] * (len(heard.said("waiting for data")) - len(times))
    assert times == [10, 20, 30, 40]
    assert "data.num_workers=1" in heard.said()[0]
    assert "40%" in heard.said()[0]


def test_a_slow_moment_is_not_starvation() -> None:
    alarms, heard = begun()
    for place in range(1, 101):
        alarms.record(line(place / 100, data=0.9 if place in (1, 50) else 0.05))
    assert heard.said() == []
    assert not is_starved([0.2] * 10)
    assert is_starved([0.21] * 10)


def test_records_before_begin_say_nothing_of_words() -> None:
    heard = Heard()
    alarms = Alarms(heard)
    for place in range(1, 101):
        alarms.record(line(place / 100, loss=9.0))
    assert heard.said() == []

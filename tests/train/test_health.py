"""Health checks: each one speaks when it should, stays silent when it should, and speaks once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from litebert.train.callbacks import RunStarted
from litebert.train.health import (
    WARNING,
    HealthChecks,
    enough_to_judge,
    few_pairs,
    is_at_chance,
    is_starved,
    is_stuck,
)
from litebert.train.metrics import StepTime, TrainingMetrics
from tests.corpus.stores import make_store, write_wordpiece

UNIGRAM = 6.0


class Said(list[str]):
    """What the checks told."""

    def about(self, part: str) -> list[str]:
        return [message for message in self if part in message]


def line(
    progress: float, loss: float = 3.0, accuracy: float = 0.8, data: float = 0.0,
    seconds: float | None = None, pair: str = "sentence_order", steps: int = 10_000,
) -> TrainingMetrics:  # fmt: skip
    return TrainingMetrics(
        step=round(steps * progress), tokens=1, learning_rate=1e-3, gradient_norm=1.0,
        loss={"masked_lm": loss, pair: 0.7},
        accuracy={"masked_lm": 0.1, pair: accuracy},
        time=StepTime(
            progress=progress, data_fraction=data, tokens_per_second=1.0,
            seconds=100 * progress if seconds is None else seconds,
        ),
    )  # fmt: skip


def begun(warmup: float = 0.1) -> tuple[HealthChecks, Said]:
    said = Said()
    checks = HealthChecks(said.append)
    checks.on_start(
        RunStarted(
            title="", folder=Path(), parameters=1, budget="9steps", warmup=warmup,
            unigram_loss=UNIGRAM,
        )
    )  # fmt: skip
    return checks, said


def run(lines: int, **values: Any) -> Said:
    """A whole run of equal lines."""
    checks, said = begun()
    for place in range(1, lines + 1):
        checks.on_training(line(place / lines, **values))
    return said


def test_a_good_run_is_silent() -> None:
    assert run(200) == []


@pytest.mark.parametrize(("steps", "warned"), [(5, 1), (40, 1), (60, 0), (1000, 0)])
def test_a_budget_of_hardly_any_steps_is_told_once(steps: int, warned: int) -> None:
    said = run(min(steps, 50), steps=steps)
    assert len(said) == len(said.about("about 5 steps" if steps == 5 else "steps")) == warned


def test_masked_lm_at_the_unigram_level_are_told_once() -> None:
    (message,) = run(200, loss=UNIGRAM)
    assert message.startswith(WARNING)
    for part in (
        "30%",
        "6.00",
        "optimizer.learning_rate",
        "initialization=corpus",
        "data.batch_size",
        "longer budget",
    ):
        assert part in message


@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.6])
def test_masked_lm_waits_for_the_warmup_and_ten_lines(warmup: float) -> None:
    checks, said = begun(warmup)
    told_at = None
    for place in range(1, 101):
        checks.on_training(line(place / 100, loss=UNIGRAM))
        if told_at is None and said:
            told_at = place
    assert told_at == max(30, round(100 * warmup) + 10)


def test_a_short_run_is_judged_near_its_end() -> None:
    checks, said = begun()
    for progress in (0.2, 0.4, 0.6, 0.8):
        checks.on_training(line(progress, loss=UNIGRAM))
    assert said == []
    checks.on_training(line(1.0, loss=UNIGRAM))
    assert len(said.about("frequency")) == 1


def test_two_lines_judge_nothing() -> None:
    assert run(2, loss=UNIGRAM) == []
    assert not enough_to_judge(2, 1.0)


def test_masked_lm_below_the_margin_are_learned() -> None:
    assert run(200, loss=UNIGRAM - 0.06) == []
    assert run(200, loss=UNIGRAM - 0.04).about("frequency")


def test_a_run_that_leaves_the_plateau_is_not_stuck() -> None:
    assert is_stuck([6.0] * 10, UNIGRAM)
    assert not is_stuck([6.5] * 5 + [5.9] * 5, UNIGRAM)
    assert is_stuck([5.9] * 5 + [6.2] * 5, UNIGRAM)
    assert not is_stuck([float("nan")] * 10, UNIGRAM)


@pytest.mark.parametrize("pair", ["sentence_order", "next_sentence"])
def test_pairs_at_chance_are_told_once(pair: str) -> None:
    checks, said = begun()
    told_at = None
    for place in range(1, 201):
        checks.on_training(line(place / 200, accuracy=0.45 + 0.1 * (place % 2), pair=pair))
        if told_at is None and said:
            told_at = place
    (message,) = said.about(pair.replace("_", " "))
    assert told_at == 100
    assert message.startswith(WARNING)
    for part in ("50%", "10M tokens", "litebert inspect", "longer budget"):
        assert part in message


@pytest.mark.parametrize(("before", "told"), [(0.6, 1), (0.5, 0)])
def test_pairs_that_are_lost_again_are_told_apart(before: float, told: int) -> None:
    checks, said = begun()
    for place in range(1, 201):
        checks.on_training(line(place / 200, accuracy=before if place <= 60 else 0.5))
    (message,) = said
    assert len(said.about("where it had been 60.0%")) == told
    assert ("learning_rate" in message) == bool(told)
    assert ("usual below" in message) == (not told)


def test_pairs_need_twenty_lines() -> None:
    assert run(20, accuracy=0.5) == []
    assert run(40, accuracy=0.5).about("chance")


def test_pairs_above_chance_by_more_than_their_noise_are_learned() -> None:
    noise = [0.45, 0.55] * 10
    assert is_at_chance(noise)
    assert is_at_chance([value + 0.01 for value in noise])
    assert not is_at_chance([value + 0.03 for value in noise])
    assert is_at_chance([0.4] * 20)
    assert not is_at_chance([0.6] * 20)


def test_an_objective_that_is_not_there_is_not_judged() -> None:
    checks, said = begun()
    for place in range(1, 101):
        values = {"loss": {"replaced_token": 9.0}, "accuracy": {"replaced_token": 0.5}}
        checks.on_training(line(place / 100).model_copy(update=values))
    assert said == []


def test_waiting_for_data_is_told_again_after_ten_minutes_of_the_run() -> None:
    checks, said = begun()
    times = []
    for minute in range(1, 41):
        checks.on_training(line(minute / 40, data=0.4, seconds=60.0 * minute))
        times += [minute] * (len(said.about("waiting for data")) - len(times))
    assert times == [10, 20, 30, 40]
    assert "data.num_workers=1" in said[0]
    assert "40%" in said[0]


def test_a_slow_moment_is_not_starvation() -> None:
    checks, said = begun()
    for place in range(1, 101):
        checks.on_training(line(place / 100, data=0.9 if place in (1, 50) else 0.05))
    assert said == []
    assert not is_starved([0.2] * 10)
    assert is_starved([0.21] * 10)


def test_a_loss_that_is_not_finite_is_not_judged() -> None:
    checks, said = begun()
    for place in range(1, 101):
        nothing = {"masked_lm": None, "sentence_order": None}
        checks.on_training(line(place / 100).model_copy(update={"loss": nothing}))
    assert said == []


def test_metrics_before_the_start_say_nothing_of_masked_lm() -> None:
    said = Said()
    checks = HealthChecks(said.append)
    for place in range(1, 101):
        checks.on_training(line(place / 100, loss=9.0))
    assert said == []


@pytest.mark.parametrize(("tokens", "warned"), [(410, True), (390, False)])
def test_a_budget_of_many_passes(tokens: int, warned: bool) -> None:
    """A tenth of the budget has read a text of 100 tokens about four times."""
    said = Said()
    checks = HealthChecks(said.append)
    started = RunStarted("", Path(), 1, "9steps", 0.1, unigram_loss=UNIGRAM)
    for text_tokens in (None, 100):
        checks.on_start(replace(started, text_tokens=text_tokens))
        for progress in (0.01, 0.1, 0.2):
            seen = round(tokens * progress * 10)
            checks.on_training(line(progress).model_copy(update={"tokens": seen}))
        assert len(said.about("passes over the text (100 tokens)")) == (
            warned and text_tokens == 100
        )


def test_text_with_hardly_any_pairs(tmp_path: Path) -> None:
    tokenizer = write_wordpiece(tmp_path / "tokenizer")
    lone = make_store(tmp_path / "lone" / "store", [["w1q w2q"]] * 6 + [["w1q", "w2q"]], tokenizer)
    warning = few_pairs(("masked_lm", "sentence_order"), lone)
    assert warning is not None
    assert warning.startswith(f"{WARNING}86% of the documents have one sentence")
    assert few_pairs(("masked_lm",), lone) is None
    pairs = make_store(tmp_path / "pairs" / "store", [["w1q", "w2q", "w3q"]] * 3, tokenizer)
    assert few_pairs(("masked_lm", "sentence_order"), pairs) is None

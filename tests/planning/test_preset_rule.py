"""The rule that fits a preset to a budget."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from litebert.configs.load import load_preset
from litebert.configs.schema import Preset
from litebert.planning.preset_rule import (
    SIZES,
    STEP_TOKENS,
    TOKENS_PER_WEIGHT,
    ChosenPreset,
    choose_preset,
    tokens_wanted,
)


def choose(tokens: float, text_tokens: int = 10**9) -> ChosenPreset:
    return choose_preset("20m", lambda _: tokens, 8000, text_tokens)


def shape(preset: Preset) -> tuple[int, int]:
    return preset.model.num_hidden_layers, preset.model.hidden_size


def test_more_tokens_never_choose_a_smaller_size() -> None:
    found = [shape(choose(10.0**power).preset) for power in range(4, 12)]
    order = [(size.layers, size.width) for size in SIZES]
    places = [order.index(each) for each in found]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0, len(SIZES) - 1)


def test_a_size_is_taken_where_it_sees_enough_tokens_for_its_weights() -> None:
    second = choose(10.0**12).preset.model_copy()
    assert tokens_wanted(second) > TOKENS_PER_WEIGHT * 12 * 7e6  # twelve layers of 7 million
    wanted = tokens_wanted(load_preset("albert-tiny", [f"model.{key}={value}" for key, value in
                                                       SIZES[1].settings().items()]))  # fmt: skip
    assert shape(choose(0.99 * wanted).preset) == (2, 128)
    assert shape(choose(1.01 * wanted).preset) == (2, 256)


def test_every_size_is_asked_with_its_own_preset() -> None:
    asked: list[tuple[int, int]] = []

    def tokens_of(preset: Preset) -> float:
        asked.append(shape(preset))
        return {(2, 128): 3e7, (2, 256): 2e7}.get(shape(preset), 1e6)

    chosen = choose_preset("20m", tokens_of, 8000, 10**9)
    assert asked == [(2, 128), (2, 256), (3, 256)]  # and no larger one, which would take minutes
    assert shape(chosen.preset) == (2, 256)
    assert "20.0 million" in chosen.reasons[0]
    assert "3 shared layers of 256 units would see 1.0 million" in chosen.reasons[1]


@pytest.mark.parametrize(
    ("tokens", "length", "step_tokens"),
    [
        (1e6, 64, 2048),
        (3e6, 64, 4096),
        (1.4e7, 128, 8192),
        (1e8, 128, 8192),
        (1e9, 256, 32768),
    ],
)
def test_length_and_batch_follow_the_tokens(tokens: float, length: int, step_tokens: int) -> None:
    data = choose(tokens).preset.data
    assert data.max_length == length
    assert data.batch_size * data.max_length == step_tokens


def test_larger_batches_have_the_square_root_of_the_learning_rate() -> None:
    chosen, size = choose(1e9).preset, SIZES[-1]
    assert shape(chosen) == (size.layers, size.width)
    scale = (chosen.data.batch_size * chosen.data.max_length / STEP_TOKENS) ** 0.5
    assert scale == 4
    assert chosen.optimizer.learning_rate == pytest.approx(size.learning_rate * scale, rel=0.01)


def test_too_little_text_is_said() -> None:
    assert any("passes over the text" in reason for reason in choose(1e8, 10**6).reasons)
    assert not any("passes" in reason for reason in choose(1e8).reasons)


def test_the_printed_preset_is_the_chosen_one(tmp_path: Path) -> None:
    chosen, path = choose(1.4e7), tmp_path / "mine.toml"
    path.write_text(chosen.toml, encoding="utf-8")
    assert tomllib.loads(chosen.toml)["model"]["vocab_size"] == 8000
    written = load_preset(str(path))
    assert written.model_dump(exclude={"title"}) == chosen.preset.model_dump(exclude={"title"})

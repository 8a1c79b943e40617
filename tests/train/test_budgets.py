"""Budgets of tokens and seconds spent exactly, and stages that begin at their very step."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest

from litebert.base.errors import SettingsError
from litebert.configs.load import load_preset
from litebert.configs.schema import Preset
from litebert.corpus.statistics import token_counts
from litebert.corpus.store import Store
from litebert.objectives.masking import Masker
from litebert.train.metrics import TrainingMetrics, read_metrics
from litebert.train.pretrain import pretrain
from litebert.train.stages import StagedBatches, resolve_stages
from litebert.train.step import TrainingStep
from tests.train.runs import Blow, small, train


def training_lines(run: Path) -> list[TrainingMetrics]:
    return [line for line in read_metrics(run) if isinstance(line, TrainingMetrics)]


def test_a_budget_of_tokens_ends_at_the_first_step_that_reaches_it(
    corpus: Path, tmp_path: Path
) -> None:
    preset = small("albert-tiny", budget="2000tok", log={"every": 1})
    result = pretrain(preset, corpus, tmp_path / "run")
    lines = training_lines(tmp_path / "run")
    tokens = [line.tokens for line in lines]
    assert tokens == sorted(tokens)
    assert tokens[-1] == result.tokens >= 2000 > tokens[-2]
    store = Store([corpus])
    (stage,) = resolve_stages(preset)
    counts = []
    masker = Masker(preset.masking, store.tokenizer, token_counts(store))
    with StagedBatches(store, [stage], masker, 0, 1, 0) as batches:
        while sum(counts) < 2000:
            counts.append(len(batches.next(0.0)[0].ids))
    assert [b - a for a, b in pairwise([0, *tokens])] == counts


def test_a_budget_of_seconds_is_spent_and_not_exceeded(corpus: Path, tmp_path: Path) -> None:
    """The bounds are wide: other work may hold the machine up. The schedule must reach its end."""
    preset = small("albert-tiny", budget="2s", log={"every": 1}, checkpoint={"every": None})
    (told,) = train(preset, corpus, tmp_path / "run")
    assert told.result is not None
    assert told.result.finished
    assert 1 < told.result.seconds < 5
    lines = training_lines(tmp_path / "run")
    highest = max(line.learning_rate for line in lines)
    assert highest == pytest.approx(preset.optimizer.learning_rate, rel=0.2)
    assert lines[-1].learning_rate < 0.2 * highest
    assert lines[-1].time.progress >= 1
    assert read_metrics(tmp_path / "run")[-1].kind == "evaluation"


def test_a_stopped_run_has_the_rest_of_its_seconds(corpus: Path, tmp_path: Path) -> None:
    preset = small("albert-tiny", budget="2s", checkpoint={"every": None})
    (told,) = train(preset, corpus, tmp_path / "run", blow=Blow(10, SIGTERM))
    assert told.result is not None
    assert not told.result.finished
    spent = told.result.seconds
    (told,) = train(preset, corpus, tmp_path / "run")
    assert told.result is not None
    assert told.result.finished
    assert spent < told.result.seconds < 5


class _Depths(TrainingStep):
    """Notes what each step was made with."""

    seen: list[tuple[int, int, int | None]] = []  # noqa: RUF012

    def __call__(self, batch: Any, number: int, rate: float, depth: Any, scalars: Any) -> Any:
        self.seen.append((len(batch), int(batch.lengths.max()), depth))
        return super().__call__(batch, number, rate, depth, scalars)


def stages_of(preset: Preset, corpus: Path, out: Path) -> list[tuple[int, int, int | None]]:
    """Sequences, longest sequence and depth of every step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Depths, "seen", [])
        patch.setattr("litebert.train.build.TrainingStep", _Depths)
        pretrain(preset, corpus, out)
        return _Depths.seen


def test_stages_change_length_batch_and_depth(corpus: Path, tmp_path: Path) -> None:
    stages = (
        {"fraction": 0.25, "max_length": 12, "batch_size": 10, "depth": 1},
        {"fraction": 0.25, "max_length": 16, "depth": 2},
        {"fraction": 0.5, "batch_size": 5, "depth": 3},
    )
    preset = small("albert-tiny", budget="12steps", stages=stages, data={"batch_by": "sequences"})
    seen = stages_of(preset, corpus, tmp_path / "run")
    assert [batch for batch, _, _ in seen] == [10] * 3 + [8] * 3 + [5] * 6
    assert [depth for _, _, depth in seen] == [1] * 3 + [2] * 3 + [3] * 6
    longest = [max(row[1] for row in part) for part in (seen[:3], seen[3:6], seen[6:])]
    assert longest[0] <= 12 < longest[1] <= 16 < longest[2] <= 32


@pytest.mark.parametrize(
    ("fractions", "steps"),
    [((0.9, 0.1), [9, 1]), ((0.1, 0.2, 0.7), [1, 2, 7]), ((0.7, 0.1, 0.1, 0.1), [7, 1, 1, 1])],
)
def test_a_stage_begins_at_its_very_step(
    fractions: tuple[float, ...], steps: list[int], corpus: Path, tmp_path: Path
) -> None:
    """Fractions such as 0.1 + 0.2 do not add up to 0.3 in binary: no step may be lost to that."""
    stages = tuple({"fraction": each, "batch_size": 2 + n} for n, each in enumerate(fractions))
    preset = small("bert-base", budget="10steps", stages=stages)
    seen = [batch for batch, _, _ in stages_of(preset, corpus, tmp_path / "run")]
    assert [seen.count(2 + n) for n in range(len(fractions))] == steps


def test_bert_has_two_stages() -> None:
    first, second = resolve_stages(load_preset("bert-base"))
    assert (first.until, first.loading.max_length) == (0.9, 128)
    assert second.until == pytest.approx(1)
    assert second.loading.max_length == 512
    assert first.loading.seed != second.loading.seed


def test_a_text_without_a_sample_is_said(tmp_path: Path, corpus: Path) -> None:
    settings = small("albert-tiny", model={"max_position_embeddings": 16}, data={"max_length": 16})
    assert pretrain(settings, corpus, tmp_path / "run").finished
    with pytest.raises(SettingsError):
        small("albert-tiny", model={"max_position_embeddings": 16})

"""A run that is killed or stopped, and then called again: nothing is lost, nothing hides.

Equal means bit for bit: weights, moments, loader position, sums, metrics; only times differ.
"""

from __future__ import annotations

import multiprocessing
import os
import random
from collections.abc import Sequence
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM, Signals
from typing import Any

import pytest

from litebert.base.errors import LitebertError
from litebert.configs.schema import Preset
from litebert.corpus.prefetch import Prefetcher
from litebert.train.metrics import MetricsFile, StepTime, TrainingMetrics, read_metrics
from litebert.train.pretrain import pretrain
from tests.train.runs import (
    Blow,
    Told,
    assert_equal_endings,
    ending,
    in_ranks,
    last_checkpoint,
    small,
    train,
)

STEPS = 14
KINDS = ("albert-tiny", "electra-small")
STAGES = (
    {"fraction": 0.5, "max_length": 16, "batch_size": 12, "mask_fraction": 0.3},
    {"fraction": 0.5, "max_length": 32, "batch_size": 6},
)


def disturb(
    preset: Preset, corpus: Path, out: Path, steps: Sequence[int], number: Signals
) -> list[int]:
    """A run struck at each of these steps, then left to finish; where each part of it began."""
    begun = []
    for step in steps:
        (told,) = train(preset, corpus, out, blow=Blow(step, number))
        if number == SIGKILL:
            assert told.result is None
            continue
        assert told.result is not None
        assert not told.result.finished
        assert told.result.step == int(last_checkpoint(out).name) == step + 1
        begun += told.begun
    (told,) = train(preset, corpus, out)
    assert told.result is not None
    assert told.result.finished
    return [*begun, *told.begun]


def seeded_steps(*names: Any) -> list[int]:
    """Two steps at random, the second after where the first resumes."""
    chance = random.Random(repr(names))
    return [chance.randrange(2, 7), chance.randrange(8, STEPS - 1)]


@pytest.mark.parametrize("number", [SIGKILL, SIGTERM])
@pytest.mark.parametrize("name", KINDS)
def test_a_killed_run_ends_like_an_undisturbed_one(
    name: str, number: Signals, corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset = small(name)
    steps = seeded_steps(name, number)
    begun = disturb(preset, corpus, tmp_path / "run", steps, number)
    last = steps[1] + 1 if number == SIGTERM else (steps[1] - 1) // 3 * 3
    assert begun[-1] == last
    assert_equal_endings(tmp_path / "run", endings(preset))


@pytest.mark.parametrize("number", [SIGKILL, SIGINT])
def test_a_budget_of_tokens_is_as_exact(
    number: Signals, corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset = small("albert-tiny", budget="3000tok", data={"batch_by": "sequences"})
    disturb(preset, corpus, tmp_path / "run", [4, 8], number)
    assert_equal_endings(tmp_path / "run", endings(preset))
    state = ending(tmp_path / "run")["state"]
    tokens = [line.tokens for line in read_metrics(tmp_path / "run") if line.kind == "training"]
    assert state["tokens"] >= 3000
    assert all(count < 3000 for count in tokens if count != state["tokens"])


@pytest.mark.parametrize("kill", [9, 11])  # the stage begins with step 8
def test_a_run_killed_in_its_second_stage(
    kill: int, corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset = small("bert-base", stages=STAGES)
    disturb(preset, corpus, tmp_path / "run", [kill], SIGKILL)
    assert_equal_endings(tmp_path / "run", endings(preset))
    assert ending(tmp_path / "run")["state"]["batches"]["stage"] == 1


@pytest.mark.parametrize("initialization", ["truncated_normal", "corpus"])
def test_a_run_killed_before_its_first_checkpoint(
    initialization: str, corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset = small("albert-tiny", initialization=initialization)
    assert disturb(preset, corpus, tmp_path / "run", [2], SIGKILL) == [0]
    assert_equal_endings(tmp_path / "run", endings(preset))


def test_accumulation_and_other_logging_resume_exactly(
    corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset = small("electra-small", data={"micro_batch_tokens": 60}, log={"every": 5})
    disturb(preset, corpus, tmp_path / "run", [7], SIGKILL)
    assert_equal_endings(tmp_path / "run", endings(preset))


def test_metrics_written_after_the_checkpoint_are_not_there_twice(
    corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset = small("albert-tiny", log={"every": 1})
    train(preset, corpus, tmp_path / "run", blow=Blow(5, SIGKILL))
    metrics = tmp_path / "run" / "metrics.jsonl"
    assert len(metrics.read_text().splitlines()) > 3
    with metrics.open("a") as stream:
        stream.write('{"kind": "training", "st')  # a line that was cut short
    train(preset, corpus, tmp_path / "run")
    assert_equal_endings(tmp_path / "run", endings(preset))


@pytest.mark.parametrize("number", [SIGINT, SIGTERM])
def test_a_signal_saves_and_the_same_call_goes_on(
    number: Signals, corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset = small("albert-tiny")
    (told,) = train(preset, corpus, tmp_path / "run", blow=Blow(5, number))
    assert told.result is not None
    assert not told.result.finished
    assert told.result.step == 6  # the step under way is finished, and no other
    assert not (tmp_path / "run" / "model").exists()
    (told,) = train(preset, corpus, tmp_path / "run")
    assert told.said[0] == "resumes from step 6"
    assert_equal_endings(tmp_path / "run", endings(preset))


def test_a_signal_at_the_last_step_finishes_the_run(
    corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset = small("albert-tiny")
    (told,) = train(preset, corpus, tmp_path / "run", blow=Blow(STEPS - 1, SIGTERM))
    assert told.result is not None
    assert told.result.finished
    assert_equal_endings(tmp_path / "run", endings(preset))


def _signal_while_loaders_start(pids: list[int], preset: Preset, corpus: Path, out: Path) -> Told:
    """A terminal's Ctrl-C reaches all processes of a command, those that load ahead too."""
    enter = Prefetcher.__enter__

    def entering(self: Prefetcher) -> Prefetcher:
        entered = enter(self)
        for process in multiprocessing.active_children():
            assert process.pid is not None
            os.kill(process.pid, SIGINT)
        os.kill(os.getpid(), SIGINT)
        return entered

    Prefetcher.__enter__ = entering  # type: ignore[method-assign]
    try:
        return Told(pretrain(preset, corpus, out))
    except LitebertError as error:
        return Told(error=str(error))


def test_a_signal_that_loading_processes_see_too(
    corpus: Path, endings: Any, tmp_path: Path
) -> None:
    """It saves and exits all the same; and what loads changes nothing of the result."""
    preset = small("albert-tiny", data={"num_workers": 1})
    (told,) = in_ranks(_signal_while_loaders_start, 1, preset, corpus, tmp_path / "run")
    assert told.error is None
    assert told.result is not None
    assert not told.result.finished
    preset = small("albert-tiny")
    (told,) = train(preset, corpus, tmp_path / "run")
    assert told.begun == (1,)
    assert_equal_endings(tmp_path / "run", endings(preset))


def _die_while_it_begins(pids: list[int], preset: Preset, corpus: Path, out: Path) -> Told:
    """A run that is killed when its first run.json is written but not yet in its place."""
    replace = Path.replace

    def dying(self: Path, target: Path) -> Path:
        if Path(target).name == "run.json":
            os.kill(os.getpid(), SIGKILL)
        return replace(self, target)

    Path.replace = dying  # type: ignore[method-assign]
    return Told(pretrain(preset, corpus, out))


def test_a_kill_while_the_folder_is_begun_does_not_close_it(
    corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset, out = small("albert-tiny"), tmp_path / "run"
    (told,) = in_ranks(_die_while_it_begins, 1, preset, corpus, out)
    assert told.result is None
    assert out.is_dir()
    assert not (out / "run.json").exists()
    (told,) = train(preset, corpus, out)
    assert told.error is None
    assert_equal_endings(out, endings(preset))


def test_a_metrics_file_is_cut_back_to_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = MetricsFile(path)
    metrics.write(a_line(1))
    size = metrics.size()
    metrics.write(a_line(2))
    MetricsFile(path, size).write(a_line(3))
    assert read_metrics(tmp_path) == [a_line(1), a_line(3)]


def a_line(step: int) -> TrainingMetrics:
    time = StepTime(seconds=1.0, progress=0.5, tokens_per_second=8.0, data_fraction=0.0)
    return TrainingMetrics(
        step=step, tokens=9, learning_rate=1e-3, gradient_norm=None, time=time,
        loss={"masked_lm": None, "sentence_order": 0.7},
    )  # fmt: skip

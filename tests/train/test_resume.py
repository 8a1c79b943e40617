"""A run that is killed, stopped or refused, and then called again: nothing is lost, nothing hides.

Equal means bit for bit: weights, moments, loader position, sums, metrics; only times differ.
"""

from __future__ import annotations

import multiprocessing
import os
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM, Signals
from typing import Any

import pytest
import torch

from litebert.base.errors import FileError, LitebertError, SettingsError
from litebert.base.files import lock_folder
from litebert.configs.load import load_preset
from litebert.configs.schema import Preset
from litebert.corpus.prefetch import Prefetcher
from litebert.corpus.statistics import token_counts
from litebert.corpus.store import Store
from litebert.objectives.masking import Masker
from litebert.train import checkpoint
from litebert.train.callbacks import Callback
from litebert.train.metrics import MetricsFile, StepTime, TrainingMetrics, read_metrics
from litebert.train.pretrain import pretrain
from litebert.train.stages import StagedBatches, resolve_stages
from litebert.train.step import TrainingStep
from tests.train.runs import (
    Blow,
    Notes,
    Told,
    assert_equal_endings,
    ending,
    in_ranks,
    last_checkpoint,
    small,
    train,
    write_store,
)

STEPS = 14
KINDS = ("albert-tiny", "electra-small")
STAGES = (
    {"fraction": 0.5, "max_length": 16, "batch_size": 12, "mask_fraction": 0.3},
    {"fraction": 0.5, "max_length": 32, "batch_size": 6},
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Any:
    """The undisturbed run of a preset, made when first asked for."""
    made: dict[str, Path] = {}

    def undisturbed(preset: Preset) -> Path:
        name = preset.model_dump_json()
        if name not in made:
            made[name] = tmp_path_factory.mktemp("undisturbed") / "run"
            (told,) = train(preset, corpus, made[name])
            assert told.result is not None
            assert told.result.finished
        return made[name]

    return undisturbed


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


def training_lines(run: Path) -> list[TrainingMetrics]:
    return [line for line in read_metrics(run) if isinstance(line, TrainingMetrics)]


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


def test_a_finished_run_returns_at_once(corpus: Path, tmp_path: Path) -> None:
    preset, notes = small("albert-tiny", budget="3steps"), Notes()
    first = pretrain(preset, corpus, tmp_path / "run")
    before = ending(tmp_path / "run")
    again = pretrain(preset, corpus, tmp_path / "run", callbacks=[notes])
    assert again.finished
    assert (again.step, again.tokens) == (first.step, first.tokens) == (3, first.tokens)
    assert notes.begun == notes.metrics == []
    assert ending(tmp_path / "run") == before


def test_a_run_killed_while_it_saves_its_model_finishes(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = small("albert-tiny", budget="3steps")
    pretrain(preset, corpus, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr("litebert.model.model.Model.save", _no_space)
        with pytest.raises((OSError, FileError)):
            pretrain(preset, corpus, tmp_path / "run")
    assert pretrain(preset, corpus, tmp_path / "run").finished
    assert_equal_endings(tmp_path / "run", tmp_path / "whole")


def test_another_run_in_the_same_folder_is_refused(corpus: Path, tmp_path: Path) -> None:
    with (
        lock_folder(tmp_path, "litebert pretrain"),
        pytest.raises(FileError, match="another `litebert pretrain` is at work"),
    ):
        pretrain(small("albert-tiny"), corpus, tmp_path)


class _Second(Callback):
    """Tries to start the same run once more while it is under way."""

    def __init__(self, *call: Any) -> None:
        self.call, self.error = call, ""

    def on_step(self, step: int, progress: float) -> None:
        if not self.error:
            with pytest.raises(FileError) as caught:
                pretrain(*self.call)
            self.error = str(caught.value)


def test_a_run_under_way_cannot_be_started_twice(corpus: Path, tmp_path: Path) -> None:
    preset = small("albert-tiny", budget="2steps")
    second = _Second(preset, corpus, tmp_path / "run")
    assert pretrain(preset, corpus, tmp_path / "run", callbacks=[second]).finished
    assert "at work" in second.error


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"seed": 3}, "seed"),
        ({"data": {"batch_size": 9}}, "batch_size"),
        ({"budget": "15steps"}, "budget"),
        ({"model": {"num_hidden_layers": 3}}, "num_hidden_layers"),
    ],
)
def test_a_run_of_other_settings_is_refused(
    changes: dict[str, Any], shown: str, corpus: Path, tmp_path: Path
) -> None:
    pretrain(small("albert-tiny", budget="2steps"), corpus, tmp_path / "run")
    before = ending(tmp_path / "run")
    with pytest.raises(FileError, match=shown) as caught:
        pretrain(small("albert-tiny", **{"budget": "2steps", **changes}), corpus, tmp_path / "run")
    value = next(iter(changes.values()))
    value = next(iter(value.values())) if isinstance(value, dict) else value
    assert str(value) in str(caught.value)
    assert ending(tmp_path / "run") == before


def test_a_folder_of_something_else_is_refused(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(FileError, match="is no run"):
        pretrain(small("albert-tiny"), corpus, tmp_path)
    assert (tmp_path / "letter.txt").read_text() == "dear"


# Steps that are not finite.


class _Spoiled(TrainingStep):
    """Weights turn into nothing at some steps of one run."""

    bad: tuple[int, ...] = ()

    def __call__(self, batch: Any, number: int, *rest: Any) -> Any:
        first = next(self.learner.parameters())
        kept = first.detach().clone()
        if number in self.bad:
            first.data.fill_(float("nan"))
        outcome = super().__call__(batch, number, *rest)
        if number in self.bad:
            assert not outcome.applied
            first.data.copy_(kept)
        return outcome


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Any:
    def at(*steps: int) -> None:
        monkeypatch.setattr(_Spoiled, "bad", steps)
        monkeypatch.setattr("litebert.train.build.TrainingStep", _Spoiled)

    return at


def test_steps_that_are_not_finite_are_not_applied(
    corpus: Path, tmp_path: Path, spoil: Any
) -> None:
    """Four in a row pass, and the run ends with finite weights; metrics stay readable."""
    notes = Notes()
    spoil(3, 4, 5, 6, 8)
    preset = small("albert-tiny", log={"every": 1})
    assert pretrain(preset, corpus, tmp_path / "run", callbacks=[notes]).finished
    told = [message for message in notes.said if "not finite" in message]
    assert len(told) == 5
    assert "4 in a row" in told[3]
    assert "1 in a row" in told[4]
    weights = checkpoint.read_tensors(last_checkpoint(tmp_path / "run") / "weights.safetensors")
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


def test_metrics_are_json_whatever_the_norm(corpus: Path, tmp_path: Path, spoil: Any) -> None:
    """JSON has no NaN: other programs could not read the line."""
    spoil(1)
    pretrain(small("albert-tiny", budget="3steps", log={"every": 1}), corpus, tmp_path / "run")
    text = (tmp_path / "run" / "metrics.jsonl").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text


def test_five_steps_that_are_not_finite_stop_the_run(
    corpus: Path, tmp_path: Path, spoil: Any, monkeypatch: pytest.MonkeyPatch, endings: Any
) -> None:
    preset = small("albert-tiny")
    spoil(*range(7, 12))
    with pytest.raises(LitebertError, match="5 steps"):
        pretrain(preset, corpus, tmp_path / "run")
    good = last_checkpoint(tmp_path / "run")
    assert good.name == "00000009"  # with two of the five counted, and the weights of step 7
    checkpoint.check_whole(good)
    with pytest.raises(LitebertError, match="5 steps"):
        pretrain(preset, corpus, tmp_path / "run")


def test_a_hopeless_learning_rate_stops_the_run(corpus: Path, tmp_path: Path) -> None:
    changes = {
        "optimizer": {"learning_rate": 1e30, "gradient_clipping": 0.0},
        "schedule": {"warmup": 0.0},
    }
    with pytest.raises(LitebertError, match="Lower the learning rate"):
        pretrain(small("albert-tiny", **changes), corpus, tmp_path / "run")
    text = (tmp_path / "run" / "metrics.jsonl").read_text()
    assert "NaN" not in text  # JSON has none, for held-out losses neither
    assert "Infinity" not in text


# A full disk.


def _no_space(*_: Any, **__: Any) -> None:
    raise OSError(28, "No space left on device")


class _Filling(Callback):
    """The disk is full from a step on."""

    def __init__(self, step: int, patch: pytest.MonkeyPatch, fill: Any) -> None:
        self.at, self.patch, self.fill = step, patch, fill

    def on_step(self, step: int, progress: float) -> None:
        if step == self.at:
            self.fill(self.patch)


def _weights_fail(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(checkpoint, "write_tensors", _no_space)


def _state_fails(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(checkpoint, "write_json", _no_space)


def _flushing_fails(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("litebert.base.files.os.fsync", _no_space)


def _renaming_fails(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Path, "rename", _no_space)


@pytest.mark.parametrize("fill", [_weights_fail, _state_fails, _flushing_fails, _renaming_fails])
def test_a_full_disk_is_one_clear_error(
    fill: Any, corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset, out = small("albert-tiny"), tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(FileError, match="No space left"):
        pretrain(preset, corpus, out, callbacks=[_Filling(8, patch, fill)])
    assert last_checkpoint(out).name == "00000006"
    assert [path.name for path in (out / "checkpoints").iterdir() if path.name[0] == "."] == []
    notes = Notes()
    assert pretrain(preset, corpus, out, callbacks=[notes]).finished
    assert notes.begun == [6]
    assert_equal_endings(out, endings(preset))


class _FullMetrics(Callback):
    """The disk has no room for another line of metrics."""

    def __init__(self, metrics: Path) -> None:
        self.metrics = metrics

    def on_step(self, step: int, progress: float) -> None:
        if step == 8:
            self.metrics.rename(self.metrics.with_name("kept"))
            self.metrics.symlink_to("/dev/full")


def test_a_disk_too_full_for_metrics_is_one_clear_error(
    corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset, out = small("albert-tiny"), tmp_path / "run"
    metrics = out / "metrics.jsonl"
    with pytest.raises(FileError, match=r"metrics\.jsonl.*No space left"):
        pretrain(preset, corpus, out, callbacks=[_FullMetrics(metrics)])
    (out / "kept").replace(metrics)
    pretrain(preset, corpus, out)
    assert_equal_endings(out, endings(preset))


def test_a_folder_that_cannot_be_made_is_said(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written"):
        pretrain(small("albert-tiny"), corpus, tmp_path / "file" / "run")


# Budgets and stages.


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

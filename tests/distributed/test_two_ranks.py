"""Two real processes over gloo: the same gradients as one, the same resume, one common end."""

from __future__ import annotations

import random
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM, Signals
from typing import Any

import numpy as np
import pytest
import torch

from litebert.base.batches import Batch
from litebert.configs.schema import Preset
from litebert.corpus.loader import Loader
from litebert.corpus.store import Store
from litebert.objectives.masking import Masker
from litebert.train import checkpoint
from litebert.train.build import build_learner, fit_to_corpus
from litebert.train.distributed import DistributedGroup, join_group
from litebert.train.metrics import read_metrics
from litebert.train.optimizer import build_optimizer
from litebert.train.pretrain import pretrain
from litebert.train.stages import resolve_stages
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

pytestmark = pytest.mark.slow

STEPS = 14
KINDS = ("albert-tiny", "electra-small")
NEAR = 1e-6  # relative, in float32


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Any:
    """The undisturbed run of a preset on two ranks, made when first asked for."""
    made: dict[str, Path] = {}

    def undisturbed(preset: Preset) -> Path:
        name = preset.model_dump_json()
        if name not in made:
            made[name] = tmp_path_factory.mktemp("undisturbed") / "run"
            finish(preset, corpus, made[name])
        return made[name]

    return undisturbed


def finish(preset: Preset, corpus: Path, out: Path) -> list[Told]:
    """Both ranks to the end."""
    told = train(preset, corpus, out, ranks=2)
    assert [each.error for each in told] == [None, None]
    assert all(each.result is not None and each.result.finished for each in told)
    return told


# Resuming.


@pytest.mark.parametrize("number", [SIGKILL, SIGTERM])
@pytest.mark.parametrize("name", KINDS)
def test_two_killed_ranks_end_like_undisturbed_ones(
    name: str, number: Signals, corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset = small(name)
    chance = random.Random(f"{name} {number}")
    for step in (chance.randrange(2, 7), chance.randrange(8, STEPS - 1)):
        told = train(preset, corpus, tmp_path / "run", ranks=2, blow=Blow(step, number))
        assert not any(each.result is not None and each.result.finished for each in told)
    finish(preset, corpus, tmp_path / "run")
    assert_equal_endings(tmp_path / "run", endings(preset))


@pytest.mark.parametrize("rank", [0, 1])
def test_one_killed_rank_ends_the_other(
    rank: int, corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset = small("albert-tiny")
    told = train(preset, corpus, tmp_path / "run", ranks=2, blow=Blow(8, SIGKILL, rank))
    assert all(each.result is None for each in told)
    finish(preset, corpus, tmp_path / "run")
    assert_equal_endings(tmp_path / "run", endings(preset))


@pytest.mark.parametrize(("rank", "number"), [(0, SIGINT), (1, SIGTERM)])
def test_a_signal_that_one_rank_saw_stops_both(
    rank: int, number: Signals, corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset = small("electra-small")
    told = train(preset, corpus, tmp_path / "run", ranks=2, blow=Blow(5, number, rank))
    results = [each.result for each in told]
    assert all(result is not None and not result.finished for result in results)
    (step,) = {result.step for result in results if result is not None}
    assert 6 <= step <= 8
    assert last_checkpoint(tmp_path / "run").name == f"{step:08d}"
    told = finish(preset, corpus, tmp_path / "run")
    assert told[0].begun == (step,)
    assert_equal_endings(tmp_path / "run", endings(preset))


def test_a_damaged_checkpoint_is_passed_over_by_both(
    corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset = small("albert-tiny")
    train(preset, corpus, tmp_path / "run", ranks=2, blow=Blow(11, SIGKILL))
    weights = last_checkpoint(tmp_path / "run") / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-9] ^= 4
    weights.write_bytes(content)
    told = finish(preset, corpus, tmp_path / "run")
    assert "is damaged" in told[0].said[0]
    assert told[0].begun == (6,)
    assert_equal_endings(tmp_path / "run", endings(preset))


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_another_number_of_ranks_goes_on_and_says_so(
    before: int, after: int, corpus: Path, endings: Any, tmp_path: Path
) -> None:
    """Not bit for bit, but the same steps on the same batches: near to what it would have been."""
    preset = small("albert-tiny", model={
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0
    })  # fmt: skip
    out = tmp_path / "run"
    train(preset, corpus, out, ranks=before, blow=Blow(7, SIGTERM))
    told = train(preset, corpus, out, ranks=after)
    assert [each.error for each in told] == [None] * after
    assert any("not bit for bit" in said and f"world_size {before} -> {after}" in said
               for said in told[0].said)  # fmt: skip
    assert told[0].begun == (8,)
    ours, theirs = (
        [line for line in read_metrics(run) if line.kind == "training"]
        for run in (out, endings(preset))
    )
    assert [line.tokens for line in ours] == [line.tokens for line in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one.loss["masked_lm"] == pytest.approx(other.loss["masked_lm"], rel=1e-3)


def test_a_budget_of_seconds_ends_both_at_the_same_step(corpus: Path, tmp_path: Path) -> None:
    preset = small("albert-tiny", budget="2s", checkpoint={"every": None})
    told = finish(preset, corpus, tmp_path / "run")
    assert len({each.result.step for each in told if each.result is not None}) == 1


def test_two_stages_on_two_ranks(corpus: Path, endings: Any, tmp_path: Path) -> None:
    stages = (
        {"fraction": 0.5, "max_length": 16, "batch_size": 12},
        {"fraction": 0.5, "batch_size": 5},
    )
    preset = small("bert-base", stages=stages)
    train(preset, corpus, tmp_path / "run", ranks=2, blow=Blow(11, SIGKILL))
    finish(preset, corpus, tmp_path / "run")
    assert_equal_endings(tmp_path / "run", endings(preset))


def test_as_many_ranks_say_nothing_of_bits(corpus: Path, tmp_path: Path) -> None:
    preset = small("albert-tiny")
    train(preset, corpus, tmp_path / "run", ranks=2, blow=Blow(5, SIGTERM))
    told = finish(preset, corpus, tmp_path / "run")
    assert told[0].said[0] == "resumes from step 6"
    assert not any("bit for bit" in said for said in told[0].said)


def test_a_finished_run_returns_on_both(corpus: Path, endings: Any) -> None:
    preset = small("albert-tiny")
    out = endings(preset)
    before = ending(out)
    told = finish(preset, corpus, out)
    assert [each.begun for each in told] == [(), ()]
    assert ending(out) == before


# What goes wrong on one rank ends both, with the reason.


def test_a_run_of_other_settings_ends_both(corpus: Path, endings: Any) -> None:
    out = endings(small("albert-tiny"))
    told = train(small("albert-tiny", seed=9), corpus, out, ranks=2)
    assert told[0].error is not None
    assert "seed" in told[0].error
    assert told[1].error is not None


def _full_disk(pids: list[int], preset: Preset, corpus: Path, out: Path) -> Told:
    """A rank whose third checkpoint finds no room."""
    write, left = checkpoint.write_tensors, 5

    def failing(*arguments: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise OSError(28, "No space left on device")
        write(*arguments)

    checkpoint.write_tensors = failing
    try:
        return Told(pretrain(preset, corpus, out))
    except Exception as error:
        return Told(error=f"{type(error).__name__}: {error}")


def test_a_full_disk_ends_both(corpus: Path, endings: Any, tmp_path: Path) -> None:
    preset = small("albert-tiny")
    told = in_ranks(_full_disk, 2, preset, corpus, tmp_path / "run")
    assert told[0].error is not None
    assert told[0].error.startswith("FileError")
    assert "No space left" in told[0].error
    assert told[1].error is not None
    finish(preset, corpus, tmp_path / "run")
    assert_equal_endings(tmp_path / "run", endings(preset))


def _spoiled(pids: list[int], preset: Preset, corpus: Path, out: Path) -> Told:
    """Rank 1 finds nothing but NaN from step 8 on."""
    call = TrainingStep._accumulate

    def accumulate(self: TrainingStep, *arguments: Any) -> None:
        call(self, *arguments)
        if self.group.rank == 1 and left() < 0:
            self.gradients.flat.fill_(float("nan"))

    steps = 8

    def left() -> int:
        nonlocal steps
        steps -= 1
        return steps

    TrainingStep._accumulate = accumulate  # type: ignore[method-assign]
    notes = Notes()
    try:
        return Told(pretrain(preset, corpus, out, callbacks=[notes]))
    except Exception as error:
        return Told(error=f"{type(error).__name__}: {error}", said=tuple(notes.said))


def test_what_is_not_finite_on_one_rank_is_applied_on_none(
    corpus: Path, endings: Any, tmp_path: Path
) -> None:
    preset = small("albert-tiny")
    told = in_ranks(_spoiled, 2, preset, corpus, tmp_path / "run")
    assert all(each.error is not None and each.error.startswith("DivergedError") for each in told)
    assert len([said for said in told[0].said if "not finite" in said]) == 5
    checkpoint.check_whole(last_checkpoint(tmp_path / "run"))


# Gradients.


@pytest.mark.parametrize("batch", [1, 3])
def test_a_rank_may_have_nothing_to_do(batch: int, corpus: Path, tmp_path: Path) -> None:
    """A batch of one sequence leaves the other rank without any."""
    changes = {"data": {"batch_size": batch, "batch_by": "sequences"}, "budget": "4steps"}
    preset = small("albert-tiny", **changes, evaluation={"sequences": 1})
    finish(preset, corpus, tmp_path / "run")


def a_step(
    group: DistributedGroup, preset: Preset, corpus: Path, unlabelled: bool
) -> dict[str, Any]:
    """The first step of a run, on this rank's share; the weights stay as they are."""
    store = Store([corpus])
    preset = fit_to_corpus(preset, store)
    masker = Masker(preset.masking, store.tokenizer, np.ones(store.tokenizer.vocab_size, int))
    loader = Loader(store, resolve_stages(preset)[0].loading, masker, group.rank, group.world_size)
    batch: Batch = next(loader)
    if unlabelled:  # every other sequence of the whole batch, which is all that rank 1 has
        numbers = np.arange(len(batch)) * group.world_size + group.rank
        batch.labels[numbers % 2 == 1] = -1
    learner = build_learner(preset, group.device, (None, None), print)
    step = TrainingStep(
        learner, build_optimizer(learner, preset.optimizer), group, gradient_clipping=0,
        micro_batch_tokens=preset.data.micro_batch_tokens, seed=0, precision="fp32",
    )  # fmt: skip
    result = step(batch, 0, 0.0, scalars=[float(len(batch))])
    return {
        "gradient": step.gradients.values.clone(), "counts": result.sums.counts,
        "losses": [sums["loss"] for _, _, sums in result.sums.rows()],
        "sequences": result.scalars[0],
    }  # fmt: skip


def _step_of_a_rank(pids: list[int], out: Path, *arguments: Any) -> Told:
    with join_group() as group:
        torch.save(a_step(group, *arguments), out / f"{group.rank}.pt")
    return Told()


@pytest.mark.parametrize(
    ("name", "unlabelled"),
    [
        ("albert-tiny", False),
        ("albert-tiny", True),
        ("spanbert-base", False),
        ("electra-small", False),
    ],
)
def test_two_ranks_have_the_gradient_of_one(
    name: str, unlabelled: bool, corpus: Path, tmp_path: Path
) -> None:
    """1 x 32, 4 x 8 and 2 x 16: the same counts, losses and gradient."""
    quiet = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    changes: dict[str, Any] = {"model": quiet, "data": {"batch_size": 32, "batch_by": "sequences"}}
    if name == "electra-small":
        changes["generator"] = quiet
    preset = small(name, **changes)
    once = a_step(DistributedGroup(), preset, corpus, unlabelled)
    changes["data"] = {**changes["data"], "micro_batch_tokens": 256}
    in_parts = a_step(DistributedGroup(), small(name, **changes), corpus, unlabelled)
    in_ranks(_step_of_a_rank, 2, tmp_path, preset, corpus, unlabelled)
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    assert torch.equal(ranks[0]["gradient"], ranks[1]["gradient"])
    for other in (in_parts, *ranks):
        assert other["counts"] == once["counts"]
        assert other["sequences"] == 32
        assert other["losses"] == pytest.approx(once["losses"], rel=NEAR)
        distance = (other["gradient"] - once["gradient"]).norm() / once["gradient"].norm()
        assert distance.item() < NEAR

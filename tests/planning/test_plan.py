"""The plan's arithmetic against torch's own counters, and the shape of its answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import litebert
from litebert.base.batches import Batch
from litebert.base.errors import SettingsError
from litebert.configs.load import load_preset, preset_names
from litebert.model.heads import MASKED_FRACTION
from litebert.planning import report
from litebert.planning.count import flops_per_token
from litebert.planning.memory import peak_memory
from litebert.planning.report import Speed, table
from litebert.train import plan as planning
from litebert.train import speed
from litebert.train.plan import plan
from litebert.train.speed import SampleTraining, measure_speed, random_batch, random_batches
from tests.corpus.stores import make_store, write_wordpiece

SMALL = ["model.num_hidden_layers=2", "model.hidden_size=64", "model.intermediate_size=96",
         "model.num_attention_heads=2", "model.vocab_size=500"]  # fmt: skip


@pytest.mark.parametrize("sharing", ["all", "none"])
def test_forward_flops_are_those_torch_counts(
    sharing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # torch counts plain products, and not its fused attention on CPU.
    monkeypatch.setattr("litebert.model.attention.prefers_products", lambda *_: True)
    preset = load_preset("albert-tiny", [*SMALL, f"model.sharing={sharing}"])
    model = litebert.Model.create(preset.model, preset.heads).eval()
    batch, length = 4, 40
    ids = torch.randint(500, (batch, length))
    masked = torch.arange(round(MASKED_FRACTION * batch * length))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        state = model(ids)
        model.head("masked_lm")(state, masked)
        model.head("sentence_pair")(state)
    expected = sum(flops_per_token(preset, length).values()) * batch * length
    assert counter.get_total_flops() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", [name for name in preset_names() if "large" not in name])
def test_every_small_preset_takes_a_falling_step(name: str) -> None:
    """Tiny versions of every preset: three steps on one batch lower its loss."""
    overrides = [*SMALL, "model.hidden_dropout_prob=0.0", "model.attention_probs_dropout_prob=0.0"]
    family = load_preset(name).model.family
    overrides.append(f"model.embedding_size={32 if family in ('albert', 'electra') else 64}")
    if family == "electra":
        overrides += ["generator.hidden_size=16", "generator.num_attention_heads=1"]
    preset = load_preset(name, overrides)
    training = SampleTraining(preset, random_batches(preset, 2, 16)[:1])
    losses = [total_loss(training) for _ in range(3)]
    assert losses[2] < losses[0]


def total_loss(training: SampleTraining) -> float:
    """Of one more step."""
    result = training.step()
    assert result.applied
    rows = zip(training.learner.objectives, result.sums.rows(), strict=True)
    return sum(
        objective.weight * sums["loss"] / (count + objective.count_offset)
        for objective, (_, count, sums) in rows
    )


def test_the_answer_is_json_and_adds_up() -> None:
    (found,) = plan("albert-base", batch_size=32, max_length=128, budget="1Mtok")
    assert json.loads(json.dumps(found.as_dict())) == found.as_dict()
    parts = {k: v for k, v in found.parameters.items() if k not in ("total", "with_heads")}
    assert sum(parts.values()) == found.parameters["with_heads"] == 11_813_810
    assert found.forward_flops == sum(found.flops.values())
    assert found.training_flops == 3 * found.forward_flops
    memory = found.memory
    assert memory["total"] == sum(v for k, v in memory.items() if k != "total")
    assert found.budget is not None
    assert found.budget.steps == pytest.approx(1e6 / (32 * 128))
    assert found.budget.flops == pytest.approx(1e6 * found.training_flops)
    assert found.budget.seconds is None


def test_by_default_a_plan_is_of_the_presets_own_batches_and_precision() -> None:
    (found,) = plan("albert-base", overrides=["precision=fp32"])
    assert (found.batch_size, found.max_length, found.precision) == (4096, 512, "fp32")
    (micro_batch,) = plan("albert-base", overrides=["precision=fp32", "data.batch_size=16"])
    assert found.memory == micro_batch.memory  # 8,192 tokens are 16 sequences


def test_a_budget_of_time_needs_a_measured_speed() -> None:
    with pytest.raises(SettingsError, match="--measure"):
        plan("albert-tiny", budget="2h")


@pytest.mark.parametrize("shape", [{"batch_size": -1}, {"max_length": 7}, {"max_length": 513}])
def test_shapes_that_do_not_fit_are_refused(shape: dict[str, int]) -> None:
    with pytest.raises(SettingsError, match="do not fit; batch_size is at least 1"):
        plan("albert-tiny", **shape)


def test_electra_counts_both_models() -> None:
    (found,) = plan("electra-small")
    counts = found.parameters
    assert counts["total"] == 13_483_008  # transformers' ElectraModel of that size
    assert counts["generator.attention"] > 0
    assert "pooler" not in counts


def test_memory_grows_with_tokens_and_shrinks_with_checkpointing() -> None:
    preset = load_preset("albert-base")
    small = peak_memory(preset, 8, 128, "fp32", False)
    large = peak_memory(preset, 16, 128, "fp32", False)
    recomputed = peak_memory(preset, 16, 128, "fp32", True)
    assert large["activations"] == 2 * small["activations"]
    assert large["weights"] == small["weights"] == 4 * 11_813_810
    assert recomputed["activations"] < large["activations"] / 10


def test_plans_stand_side_by_side() -> None:
    grid = table(plan(["albert-tiny", "bert-base"]))
    assert [column.header for column in grid.columns] == ["", "albert-tiny", "bert-base"]
    assert "109,482,240" in grid.columns[2]._cells


def test_measuring_gives_the_speed_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 2))  # every look at the clock is two seconds later
    monkeypatch.setattr(speed.time, "perf_counter", lambda: float(next(clock)))
    found = measure_speed(load_preset("albert-tiny", SMALL), 2, 16, seconds=10)
    assert found.seconds_per_step == 2.0
    assert found.tokens_per_second == 16.0
    assert found.steps_taken == 5


def test_of_a_large_batch_one_micro_batch_and_the_update_are_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A step of one micro-batch takes 5 s, 2 s of it the update: four of them take 4 * 3 + 2."""
    preset = load_preset("albert-tiny", [*SMALL, "data.micro_batch_tokens=32"])

    def timed(work: Callable[[], object], _: torch.device) -> float:
        whole = getattr(work, "__func__", None) is SampleTraining.step
        return 5.0 if whole else 2.0

    monkeypatch.setattr(speed, "_timed", timed)
    found = measure_speed(preset, 8, 16, seconds=10)
    assert found.seconds_per_step == 14.0
    assert found.tokens_per_second == 8 * 16 / 14
    assert found.steps_taken == 3


def test_memory_is_estimated_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what measuring leaves behind would count as the process's own."""
    order: list[str] = []
    measured = Speed(seconds_per_step=2.0, tokens_per_second=16.0, steps_taken=3)
    memory = peak_memory(load_preset("albert-tiny"), 2, 16, "fp32", False)
    monkeypatch.setattr(report, "peak_memory", lambda *_: order.append("memory") or memory)
    monkeypatch.setattr(
        planning, "measure_speed", lambda *_, **__: order.append("speed") or measured
    )
    (found,) = plan("albert-tiny", measure=True, budget="1h")
    assert order == ["memory", "speed"]
    assert found.speed == measured
    assert found.budget is not None
    assert (found.budget.tokens, found.budget.seconds) == (3600 * 16, 3600)


def test_measuring_one_preset_does_not_spoil_the_memory_of_the_next() -> None:
    before = peak_memory(load_preset("albert-tiny"), 2, 16, "fp32", False)
    ballast = torch.ones(50_000_000)  # 200 MB
    after = peak_memory(load_preset("albert-tiny"), 2, 16, "fp32", False)
    assert ballast.sum() > 0
    assert before == after


def test_passes_over_a_corpus(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", [["w1q w2q"] * 5] * 5, write_wordpiece(tmp_path / "t"))
    (one,) = plan("albert-tiny", budget="1000tok", corpus=tmp_path / "store")
    assert one.budget is not None
    assert one.budget.passes == pytest.approx(1000 / store.total.tokens)
    sized = plan("albert-tiny", overrides=[f"model.vocab_size={store.tokenizer.vocab_size}"])
    assert one.parameters == sized[0].parameters
    with pytest.raises(SettingsError, match="--corpus: give a --budget, too"):
        plan("albert-tiny", corpus=tmp_path / "store")


def test_measuring_on_a_corpus_takes_its_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents of six tokens in sequences of up to sixteen: tokens are counted, not places."""
    words = write_wordpiece(tmp_path / "t")
    store = make_store(tmp_path / "store", [["w1q w2q w3q"] * 2] * 40, words)
    preset = load_preset("albert-tiny", [*SMALL, "data.batch_by=sequences"])
    found = measure_speed(preset, 4, 16, seconds=0, store=store)
    assert found.tokens_per_second * found.seconds_per_step == pytest.approx(4 * (6 + 3))
    monkeypatch.setattr("litebert.train.plan.measure_speed", partial(measure_speed, seconds=0))
    (planned,) = plan("albert-tiny", overrides=SMALL, measure=True, corpus=tmp_path / "store")
    assert planned.speed is not None


def test_speed_is_tokens_over_the_time_of_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 32 and of 320 tokens, a second for every 32: 32 a second."""
    preset = load_preset("albert-tiny", SMALL)
    batches = [random_batch(preset.model, size, 16) for size in (2, 2, 2, 20)]
    monkeypatch.setattr("litebert.train.speed.random_batches", lambda *_: batches)
    monkeypatch.setattr("litebert.train.speed._timed", clock(batches))
    found = measure_speed(preset, 2, 16, seconds=9)
    assert found.tokens_per_second == pytest.approx(32)


def clock(batches: list[Batch]) -> Callable[..., float]:
    """Instead of a stopwatch: updates take no time, steps as long as their tokens are many."""
    turns = cycle(batches)

    def timed(work: Callable[[], object], device: torch.device) -> float:
        work()
        is_step = getattr(work, "__name__", "") == "step" and isinstance(
            getattr(work, "__self__", None), SampleTraining
        )
        return len(next(turns).ids) / 32 if is_step else 0.0

    return timed

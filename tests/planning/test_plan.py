"""The plan's arithmetic against torch's own counters, and the shape of its answer."""

from __future__ import annotations

import json

import pytest
import torch
from litebert.planning.workload import Workload
from torch.utils.flop_counter import FlopCounterMode

import litebert
from litebert.configs.load import load_preset, preset_names
from litebert.planning.count import MASKED_SHARE, flops_per_token
from litebert.planning.memory import peak_memory
from litebert.planning.report import table

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
    masked = torch.arange(round(MASKED_SHARE * batch * length))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        state = model(ids)
        model.head("masked_lm")(state, masked)
        model.head("sentence_pair")(state)
    expected = sum(flops_per_token(preset, length).values()) * batch * length
    assert counter.get_total_flops() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", [name for name in preset_names() if "large" not in name])
def test_every_small_preset_takes_a_falling_step(name: str) -> None:
    """Tiny versions of every preset: three steps on one batch lower its loss."""
    sets = [*SMALL, "model.hidden_dropout_prob=0.0", "model.attention_probs_dropout_prob=0.0"]
    family = load_preset(name).model.family
    sets.append(f"model.embedding_size={32 if family in ('albert', 'electra') else 64}")
    if family == "electra":
        sets += ["generator.hidden_size=16", "generator.num_attention_heads=1"]
    work = Workload(load_preset(name, sets), batch=2, length=16)
    losses = [work.step().item() for _ in range(3)]
    assert losses[2] < losses[0]


def test_the_answer_is_json_and_adds_up() -> None:
    plan = litebert.plan("albert-base", budget="1Mtok")
    assert json.loads(json.dumps(plan)) == plan
    parts = {k: v for k, v in plan["parameters"].items() if k not in ("total", "with_heads")}
    assert sum(parts.values()) == plan["parameters"]["with_heads"] == 11_813_810
    assert plan["flops_per_token"]["training"] == 3 * plan["flops_per_token"]["forward"]
    memory = plan["memory"]
    assert memory["total"] == sum(v for k, v in memory.items() if k != "total")
    assert plan["budget"]["steps"] == pytest.approx(1e6 / (32 * 128))


def test_electra_counts_both_models() -> None:
    counts = litebert.plan("electra-small")["parameters"]
    assert counts["total"] == 13_483_008  # transformers' ElectraModel of that size
    assert counts["generator.attention"] > 0
    assert "pooler" not in counts


def test_memory_grows_with_tokens_and_shrinks_with_checkpointing() -> None:
    preset = load_preset("albert-base")
    small = peak_memory(preset, 8, 128, "fp32", False)
    large = peak_memory(preset, 16, 128, "fp32", False)
    lean = peak_memory(preset, 16, 128, "fp32", True)
    assert large["activations"] == 2 * small["activations"]
    assert large["weights"] == small["weights"] == 4 * 11_813_810
    assert lean["activations"] < large["activations"] / 10


def test_plans_stand_side_by_side() -> None:
    grid = table([litebert.plan("albert-tiny"), litebert.plan("bert-base")])
    assert [column.header for column in grid.columns] == ["", "albert-tiny", "bert-base"]
    assert "109,482,240" in grid.columns[2]._cells


def test_measuring_gives_the_speed_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    from litebert.planning import measure

    clock = iter(range(0, 1000, 2))  # every look at the clock is two seconds later
    monkeypatch.setattr(measure.time, "perf_counter", lambda: float(next(clock)))
    found = measure.measure(load_preset("albert-tiny", SMALL), 2, 16, seconds=10)
    assert found.seconds_per_step == 2.0
    assert found.tokens_per_second == 16.0
    assert found.steps == 5


def test_measuring_one_preset_does_not_spoil_the_memory_of_the_next() -> None:
    before = peak_memory(load_preset("albert-tiny"), 2, 16, "fp32", False)
    ballast = torch.ones(50_000_000)  # 200 MB
    after = peak_memory(load_preset("albert-tiny"), 2, 16, "fp32", False)
    assert ballast.sum() > 0
    assert before == after

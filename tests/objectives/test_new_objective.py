"""A new objective is a class and a row, its head too: trained, saved, evaluated and planned."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import Tensor, nn
from torch.nn import functional as F

import litebert
from litebert.base.batches import Batch, IntArray
from litebert.base.errors import SettingsError
from litebert.configs.load import load_preset
from litebert.model.config import EncoderConfig
from litebert.model.heads import HEADS, Head
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import ACCURACY, Term, cross_entropy_term
from litebert.objectives.registry import OBJECTIVES
from litebert.train.evaluate import HeldOutReport, evaluate_held_out
from litebert.train.metrics import TrainingMetrics, read_metrics
from litebert.train.plan import plan
from litebert.train.pretrain import pretrain
from tests.train.runs import write_store

SMALL = [
    "model.hidden_size=32", "model.num_attention_heads=4", "model.embedding_size=16",
    "model.intermediate_size=64", "data.max_length=32", "data.batch_size=8", "precision=fp32",
    "evaluation.sequences=16", "log.every=5", "optimizer.learning_rate=1e-2", "budget=40steps",
]  # fmt: skip


class FirstTokenHead(Head):
    """Is the first word one of the vocabulary's first half? Two classes from [CLS]."""

    def __init__(self, config: EncoderConfig, labels: int = 0) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, 2)

    def forward(self, state: State) -> Tensor:
        return self.dense(state.first())


class FirstToken:
    """Two classes a sequence, from what is masked in none of them: its first word."""

    name, head = "first_token", "first_token_half"
    weight, counters, count_offset = 0.5, ACCURACY, 0
    negatives: str | None = None

    def count(self, batch: Batch) -> int:
        return len(batch)

    def reads(self, batch: Batch) -> IntArray:
        return batch.starts

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        half = model.config.vocab_size // 2
        originals = inputs.ids.index_copy(0, inputs.positions, inputs.targets)
        first = originals[inputs.batch.starts + 1]
        return cross_entropy_term(model.head(self.head)(state), (first < half).long())


class Length:
    """The number of tokens, told by an existing head: an error, so there is no accuracy."""

    name, head = "length", "masked_lm"
    weight, counters, count_offset = 0.1, (), 0
    negatives: str | None = "swap"

    def count(self, batch: Batch) -> int:
        return len(batch)

    def reads(self, batch: Batch) -> None:
        return None

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        told = model.head(self.head).dense(state.mean())[:, 0]
        lengths = inputs.ids.new_tensor(inputs.batch.lengths).to(told) / 32
        return Term(F.mse_loss(told, lengths, reduction="sum"))


@pytest.fixture(autouse=True)
def _rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HEADS, "first_token_half", FirstTokenHead)
    monkeypatch.setitem(OBJECTIVES, "first_token", FirstToken)
    monkeypatch.setitem(OBJECTIVES, "length", Length)


def changed(*objectives: str) -> list[str]:
    names = ", ".join(f'"{name}"' for name in objectives)
    return [*SMALL, f"objectives=[{names}]"]


@pytest.mark.parametrize("initialization", ["truncated_normal", "corpus"])
@pytest.mark.parametrize(
    "objectives",
    [("first_token",), ("masked_lm", "first_token"), ("length", "sentence_order", "first_token")],
    ids=" ".join,
)
def test_it_is_pretrained_and_evaluated(
    objectives: tuple[str, ...], initialization: str, tmp_path: Path
) -> None:
    corpus, run = write_store(tmp_path / "corpus"), tmp_path / "run"
    overrides = [*changed(*objectives), f"initialization={initialization}"]
    assert pretrain("albert-tiny", corpus, run, overrides=overrides).finished
    lines = [line for line in read_metrics(run) if isinstance(line, TrainingMetrics)]
    assert tuple(lines[0].loss) == objectives
    assert set(lines[0].accuracy) == set(objectives) - {"length"}
    first, last = lines[0].loss["first_token"], lines[-1].loss["first_token"]
    assert first is not None
    assert last is not None
    assert last < first - 0.02
    heads = {OBJECTIVES[name].head for name in objectives}
    assert set(litebert.load(run / "model").heads) == heads
    report = evaluate_held_out(run, [corpus], sequences=16)
    assert_reported(report, heads)


def assert_reported(report: HeldOutReport, heads: set[str]) -> None:
    """Every objective that a head of the model can be asked for."""
    assert set(report.objectives) == {n for n, one in OBJECTIVES.items() if one.head in heads}
    found = report.objectives["first_token"]
    assert found.accuracy is not None
    assert found.interval is not None
    assert found.interval[0] <= found.accuracy <= found.interval[1]
    if "length" in report.objectives:
        assert report.objectives["length"].loss >= 0
        assert report.objectives["length"].accuracy is None
        assert report.objectives["length"].interval is None


def test_it_is_planned() -> None:
    (found,) = plan("albert-tiny", overrides=changed("masked_lm", "first_token"))
    assert found.parameters["head.first_token_half"] == 2 * 32 + 2
    assert "head.first_token_half" in found.flops


def test_the_samples_it_needs_are_asked_for() -> None:
    with pytest.raises(SettingsError, match="'bert' gives nothing to decide for length"):
        load_preset("albert-tiny", [*changed("length"), "data.input_format=bert"])

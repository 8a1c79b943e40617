"""Steps that are not finite: not applied, told of, and five in a row stop the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from litebert.base.errors import LitebertError
from litebert.train import checkpoint
from litebert.train.pretrain import pretrain
from litebert.train.step import TrainingStep
from tests.train.runs import Notes, last_checkpoint, small


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

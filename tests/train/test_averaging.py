"""The moving average of the weights: what it is, what is made of it, and that it resumes."""

from __future__ import annotations

from pathlib import Path
from signal import SIGKILL

import pytest
import torch
from torch import nn

from litebert.configs.schema import OptimizerSettings
from litebert.model.folder import read_tensors
from litebert.train.averaging import averaged_weights, update_averages
from litebert.train.checkpoint import OPTIMIZER, WEIGHTS
from litebert.train.optimizer import build_optimizer, optimizer_tensors
from tests.train.runs import Blow, assert_equal_endings, last_checkpoint, small, train

DECAY = 0.9


@pytest.mark.parametrize("bias_correction", [True, False])
def test_it_is_the_moving_average(bias_correction: bool) -> None:
    module = nn.Linear(3, 2)
    settings = OptimizerSettings(
        name="adamw", bias_correction=bias_correction, averaging=DECAY, learning_rate=0.1
    )
    optimizer = build_optimizer(module, settings)
    expected = None
    for _ in range(5):
        module(torch.randn(4, 3)).square().sum().backward()
        for group in optimizer.param_groups:
            group["lr"] = 0.1
        optimizer.step()
        update_averages(optimizer)
        now = module.weight.detach().clone()
        expected = now if expected is None else DECAY * expected + (1 - DECAY) * now
    before = module.weight.detach().clone()
    with averaged_weights(optimizer):
        torch.testing.assert_close(module.weight.detach(), expected)
    assert torch.equal(module.weight, before)


def test_without_it_nothing_is_kept() -> None:
    optimizer = build_optimizer(nn.Linear(3, 2), OptimizerSettings())
    update_averages(optimizer)
    assert not optimizer_tensors(optimizer)


@pytest.mark.slow
def test_a_killed_run_has_the_same_averages_and_makes_its_model_of_them(
    corpus: Path, tmp_path: Path
) -> None:
    preset = small("albert-tiny", optimizer={"averaging": DECAY})
    (whole,) = train(preset, corpus, tmp_path / "whole")
    assert whole.result is not None
    train(preset, corpus, tmp_path / "killed", blow=Blow(8, SIGKILL))
    train(preset, corpus, tmp_path / "killed")
    assert_equal_endings(tmp_path / "killed", tmp_path / "whole")
    last = last_checkpoint(tmp_path / "whole")
    weights, state = read_tensors(last / WEIGHTS), read_tensors(last / OPTIMIZER)
    averages = {tuple(t.shape): t for name, t in state.items() if name.endswith("average")}
    (name,) = [n for n in weights if n.endswith("token.weight")]
    model = read_tensors(tmp_path / "whole" / "model" / "model.safetensors")
    (saved,) = [t for n, t in model.items() if n.endswith("word_embeddings.weight")]
    assert torch.equal(saved, averages[tuple(saved.shape)])
    assert not torch.equal(saved, weights[name])

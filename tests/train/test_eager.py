"""A process that trains does not load torch's compiler: two seconds and 50 MB."""

from __future__ import annotations

import subprocess
import sys

import pytest

TRAIN = """
import sys
from litebert.configs.schema import OptimizerSettings
from litebert.model.config import EncoderConfig
from litebert.model.model import Model
from litebert.train.optimizer import build_optimizer, optimizer_tensors, restore_optimizer

config = EncoderConfig(
    vocab_size=20, embedding_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=16,
)
for name, bias_correction in (("adamw", True), ("adamw", False), ("lamb", False)):
    model = Model.create(config, ["masked_lm"])
    settings = OptimizerSettings(name=name, bias_correction=bias_correction)
    optimizer = build_optimizer(model, settings)
    sum(parameter.sum() for parameter in model.parameters()).backward()
    optimizer.step()
    optimizer.zero_grad()
    restore_optimizer(optimizer, optimizer_tensors(optimizer), "here")
print(*sorted({"torch._dynamo", "sympy"} & set(sys.modules)))
"""


def test_no_compiler_is_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", TRAIN], capture_output=True, text=True)
    if done.returncode:
        pytest.fail(done.stderr)
    assert done.stdout.strip() == ""

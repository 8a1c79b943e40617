"""Runs initialized as the setting says; they open in transformers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers

import litebert
from litebert.corpus.store import Store
from litebert.train.pretrain import pretrain
from tests.train.initialization.learners import FAMILIES, SMALL, started


def theirs_name(folder: Path) -> str:
    """The class of `transformers` that a model folder is for."""
    (name,) = json.loads((folder / "config.json").read_text())["architectures"]
    return name


@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_opens_in_transformers(family: str, stores: dict[str, Store], tmp_path: Path) -> None:
    name, kind, overrides = FAMILIES[family]
    result = pretrain(name, stores[kind].folders, tmp_path / "run", overrides=[*SMALL, *overrides])
    assert result.finished
    folders = ["model", "generator"] if family == "electra" else ["model"]
    for folder in folders:
        ours = litebert.load(tmp_path / "run" / folder)
        architecture = getattr(transformers, theirs_name(tmp_path / "run" / folder))
        _, whole = architecture.from_pretrained(tmp_path / "run" / folder, output_loading_info=True)
        assert not whole["missing_keys"]
        assert not whole["unexpected_keys"]
        theirs, report = transformers.AutoModel.from_pretrained(
            tmp_path / "run" / folder, output_loading_info=True
        )
        missing = {key for key in report["missing_keys"] if not key.startswith("pooler.")}
        assert not missing
        trained = "sentence_pair" in ours.heads  # else nothing has trained the pooler
        assert not (trained and report["missing_keys"])
        assert not report["mismatched_keys"]
        ids = torch.randint(5, 200, (2, 9))
        with torch.no_grad():
            hidden = theirs.eval()(ids, attention_mask=torch.ones_like(ids)).last_hidden_state
            torch.testing.assert_close(
                ours(ids).x_NH, hidden.flatten(0, 1), rtol=1e-4, atol=1e-4
            )  # fmt: skip


def test_initialization_is_what_the_setting_says(stores: dict[str, Store], tmp_path: Path) -> None:
    """With a learning rate of nearly nothing the result is the start."""
    name, kind, overrides = FAMILIES["albert"]
    still = ["optimizer.learning_rate=1e-12", "optimizer.name=adamw"]
    learners = dict(zip(("truncated_normal", "corpus"), started("albert", stores)[:2], strict=True))
    for initialization, learner in learners.items():
        out = tmp_path / initialization
        changed = [*SMALL, *overrides, *still, f"initialization={initialization}"]
        pretrain(name, stores[kind].folders, out, overrides=changed)
        model = litebert.load(out / "model")
        for key, tensor in learner.model.state_dict().items():
            torch.testing.assert_close(model.state_dict()[key], tensor, rtol=0, atol=1e-6)

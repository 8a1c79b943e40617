"""Heads at every depth: trained, kept, left by; the same whatever else is in the batch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from litebert.base.errors import FormatError, SettingsError
from litebert.finetuning.exits import ExitLearner
from litebert.finetuning.finetune import finetune_examples
from litebert.inference.calibrate import leave
from litebert.inference.evaluate import evaluate_task
from litebert.inference.exits import DepthDial, calibration_of, parse_exit, read_calibration
from litebert.inference.model_folder import open_tokenizer, task_of
from litebert.inference.run import predict_examples, run_depths
from litebert.model.folder import EXTRA_WEIGHTS
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.tasks.data import TaskData
from litebert.text.tokenizer import load_tokenizer
from tests.tasks.small import TASKS, recipe, sentence, write_start
from tests.test_cli import run

KINDS = ("classify", "pair", "regress", "tag", "classify-mean", "pair-bi-encoder")
LAYERS = 4


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four layers, all shared."""
    return _deeper(write_start(tmp_path_factory.mktemp("start")), sharing="all")


def _deeper(small: Path, **changes: Any) -> Path:
    changes |= {"num_hidden_layers": LAYERS}
    config = Model.load(small).config.model_copy(update=changes)
    folder = small.parent / "-".join(map(str, changes.values()))
    Model.create(config, seed=3).save(folder, overwrite=True, tokenizer=load_tokenizer(small))
    return folder


def tune(start: Path, out: Path, name: str, steps: int = 25, exits: bool = True) -> Path:
    wanted, examples, _ = TASKS[name]
    how = recipe(name, steps).model_copy(update={"exits": exits})
    data = TaskData(wanted, examples, {"dev": examples})
    finetune_examples(Model.load(start), start, data, how, out)
    return out / "model"


@pytest.fixture(scope="module", params=KINDS)
def tuned(request: Any, start: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return request.param, tune(start, tmp_path_factory.mktemp("tuned"), request.param)


def opened(name: str, folder: Path) -> tuple[Any, Model, list[Any], Any]:
    model, examples = Model.load(folder), TASKS[name][1]
    task = task_of(model, folder)
    return task, model, examples, task.features(examples, open_tokenizer(folder))


def test_a_head_at_every_depth_is_kept_in_the_second_file(tuned: tuple[str, Path]) -> None:
    name, folder = tuned
    task, model, examples, features = opened(name, folder)
    assert model.has_exits(task.head)
    assert (folder / EXTRA_WEIGHTS).is_file()
    said = run_depths(task, model, features.batch)
    assert {len(outputs) for outputs in said} == {LAYERS}
    full = task.decode(examples, features, [outputs[-1] for outputs in said])
    plain = predict_examples(task, model, examples, features)
    assert [one.to_json() for one in full] == [one.to_json() for one in plain]
    assert "depth" not in plain[0].to_json()


@pytest.mark.parametrize("name", ["classify", "tag"])
def test_transformers_opens_it_and_says_the_same_at_full_depth(
    name: str, start: Path, tmp_path: Path
) -> None:
    folder = tune(start, tmp_path, name, steps=5)
    task, model, _, features = opened(name, folder)
    theirs = getattr(transformers, f"Albert{TASKS[name][2]}").from_pretrained(folder).eval()
    batch = features.batch.slice(0, 1)
    with torch.no_grad():
        logits = theirs(torch.tensor(batch.ids)[None].long()).logits[0].softmax(-1).numpy()
    ours = run_depths(task, model, batch, precision="fp32")[0][-1]
    expected = logits[batch.positions] if name == "tag" else logits
    np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_regrouped_batches_are_what_the_rule_says_of_each_sequence(
    tuned: tuple[str, Path],
) -> None:
    name, folder = tuned
    task, model, examples, features = opened(name, folder)
    said = run_depths(task, model, features.batch, precision="fp32")
    rules = ["patience=1", "patience=2", "depth=3"]
    rules += [f"confidence={p}" for p in (0.4, 0.6, 0.9, 1.0) if "confidence" in task.exit_rules]
    depths = set()
    for text in rules:
        rule = parse_exit(text, task, None)
        expected = [leave(rule, outputs) for outputs in said]
        found = run_depths(task, model, features.batch, rule, precision="fp32", max_tokens=40)
        assert [len(one) for one in found] == [len(one) for one in expected]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one[-1], other[-1], atol=1e-5)
        predictions = predict_examples(task, model, examples, features, rule=rule)
        depths |= {one.depth for one in predictions}
    assert len(depths) > 1, "the rules never chose between depths"


def test_the_calibration_tells_what_the_rules_give(tuned: tuple[str, Path]) -> None:
    name, folder = tuned
    task, model, examples, features = opened(name, folder)
    calibration = calibration_of(model, folder)
    assert calibration is not None
    assert calibration == read_calibration(folder)
    assert calibration.rows[-1].rule == f"depth={LAYERS}"
    for row in calibration.rows:
        rule = parse_exit(row.rule, task, None)
        predictions = predict_examples(task, model, examples, features, rule=rule, precision="fp32")
        assert task.score(examples, predictions)[calibration.metric] == pytest.approx(row.score)
        depths = [
            len(one) for one in run_depths(task, model, features.batch, rule, precision="fp32")
        ]
        assert row.mean_depth == pytest.approx(np.mean(depths))


def test_the_loss_is_the_papers_mean_over_depths(start: Path, tmp_path: Path) -> None:
    task, model, _, features = opened("classify", tune(start, tmp_path, "classify", steps=2))
    inputs = to_inputs(features.batch, torch.device("cpu"))
    (term,) = ExitLearner(model, task)(inputs)
    expected = 0.0
    for depth in range(1, LAYERS + 1):
        state = inputs.encode(model, depth)
        head = model.head(task.head, depth)
        logits = head(state)
        loss = torch.nn.functional.cross_entropy(logits, inputs.labels, reduction="sum")
        expected += depth * loss.item()
    assert term.loss.item() == pytest.approx(expected / (LAYERS * (LAYERS + 1) / 2), rel=1e-5)
    term.loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name


@pytest.mark.parametrize("changes", [{"sharing": "none"}, {"inner_group_num": 2}])
def test_encoders_of_other_sharing_have_exits_too(
    changes: dict[str, Any], start: Path, tmp_path: Path
) -> None:
    other = _deeper(start, **changes)
    task, model, _, features = opened("classify", tune(other, tmp_path, "classify"))
    rule = parse_exit("patience=1", task, None)
    said = run_depths(task, model, features.batch, precision="fp32")
    found = run_depths(task, model, features.batch, rule, precision="fp32")
    assert [len(one) for one in found] == [len(leave(rule, one)) for one in said]
    inputs = to_inputs(features.batch, torch.device("cpu"))
    states: list[Any] = ExitLearner(model, task)._states(inputs)
    assert len(states) == LAYERS


def test_depth_is_a_dial(start: Path, tmp_path: Path) -> None:
    folder = tune(start, tmp_path / "a", "classify", exits=False)
    task, model, examples, features = opened("classify", folder)
    for depth in (1, LAYERS, 9):
        predictions = predict_examples(task, model, examples, features, depth=depth)
        assert {one.depth for one in predictions} == {depth}
    plain = predict_examples(task, model, examples, features)
    full = predict_examples(task, model, examples, features, depth=LAYERS)
    assert [replace(one, depth=None) for one in full] == plain
    unshared = tune(_deeper(start, sharing="none"), tmp_path / "b", "classify", 1, exits=False)
    other = Model.load(unshared)
    with pytest.raises(SettingsError, match="depth 9: this encoder has 4 layers of its own"):
        DepthDial(depth=9).rule(other, task_of(other, unshared), unshared)


def test_the_commands(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "train.csv"
    rows = [f"{sentence(i)},{'yes' if i % 2 else 'no'}" for i in range(20)]
    table.write_text("\n".join(["text,label", *rows]) + "\n")
    tuned, plain = tmp_path / "tuned", tmp_path / "plain"
    common = ("--task", "classify", "--train", table, "--set", "steps=2")
    assert run(monkeypatch, "finetune", start, *common, "--set", "exits=true", "--out", tuned) == 0
    assert "exit rule           accuracy   mean depth (on dev)" in capsys.readouterr().out
    assert run(monkeypatch, "predict", tuned, "--input", table, "--exit", "patience=1") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["depth"] for line in lines} <= {2, 3, 4}
    assert run(monkeypatch, "evaluate", tuned, "--input", table, "--exit", "accuracy=-0.5") == 0
    assert "mean depth" in capsys.readouterr().out
    assert evaluate_task([tuned], table, depth=2).as_dict()["mean_depth"] == 2
    assert run(monkeypatch, "finetune", start, *common, "--out", plain) == 0
    capsys.readouterr()
    assert run(monkeypatch, "predict", plain, "--input", table, "--exit", "patience=1") == 2
    assert "has no exit heads; fine-tune with --set exits=true" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["qa", "choice"])
def test_other_kinds_have_no_exits(name: str, start: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=f"exits=true: tasks of kind {name} have no heads"):
        tune(start, tmp_path / "out", name)
    assert not (tmp_path / "out").exists()


def test_an_encoder_of_one_layer_has_no_exits(start: Path, tmp_path: Path) -> None:
    config = Model.load(start).config.model_copy(update={"num_hidden_layers": 1})
    Model.create(config).save(tmp_path / "one", tokenizer=load_tokenizer(start))
    with pytest.raises(SettingsError, match="has one layer, before which there is no exit"):
        tune(tmp_path / "one", tmp_path / "out", "classify")


def test_a_calibration_that_was_tampered_with(start: Path, tmp_path: Path) -> None:
    folder = tune(start, tmp_path, "classify", steps=1)
    model = Model.load(folder)
    row = {"rule": "depth=4", "score": float("nan"), "mean_depth": 4}
    for content in (
        {"metric": "f1"},
        {"metric": "f1", "rows": [{"rule": 3}]},
        7,
        {"rows": []},
        {"metric": "f1", "rows": [row]},
    ):
        model.metadata["litebert_exits"] = content
        with pytest.raises(FormatError, match="litebert_exits is malformed"):
            calibration_of(model, folder)

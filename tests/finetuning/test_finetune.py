"""Every task learns a handful of examples by heart, and its saved model says the same again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from litebert.base.batches import pad
from litebert.base.errors import FormatError
from litebert.base.settings import Settings
from litebert.finetuning.finetune import finetune, finetune_examples
from litebert.finetuning.recipe import FOLDER, load_recipe
from litebert.finetuning.runs import new_model
from litebert.inference.evaluate import evaluate_task
from litebert.inference.model_folder import open_tokenizer, task_of
from litebert.inference.predict import predict
from litebert.inference.run import predict_examples
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.tasks.classification import LabelPrediction
from litebert.tasks.data import TaskData
from litebert.tasks.featurize import make_features
from litebert.tasks.registry import build_task
from tests.tasks.small import TASKS, TWO, recipe, sentence, write_start


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("start"))


@pytest.mark.parametrize("name", TASKS)
def test_a_handful_is_learned_by_heart_and_saved(name: str, start: Path, tmp_path: Path) -> None:
    wanted, examples, architecture = TASKS[name]
    data, out = TaskData(wanted, examples, {"dev": examples}), tmp_path / "out"
    done = finetune_examples(Model.load(start), start, data, recipe(name), out)
    assert done.report is not None
    (result,) = done.report.seeds
    assert result.loss is not None
    assert result.loss < 0.05, result
    assert result.collapsed is None
    scores = result.scores["dev"]
    assert scores[wanted.metrics[0]] > 0.99, scores

    model = Model.load(out / "model")
    raw = json.loads((out / "model" / "config.json").read_text())
    assert raw["architectures"] == ["Albert" + architecture]
    task = task_of(model, out)
    features = make_features(task, examples, open_tokenizer(out / "model"), out / "model")
    once = predict_examples(task, model, examples, features)
    model.save(tmp_path / "again", tokenizer=out / "model")
    again = Model.load(tmp_path / "again")
    assert predict_examples(task_of(again, out), again, examples, features) == once
    assert task.score(examples, once)[wanted.metrics[0]] > 0.99


@pytest.mark.parametrize("name", ["classify", "regress", "tag", "qa", "choice"])
def test_transformers_says_the_same(name: str, start: Path, tmp_path: Path) -> None:
    """The saved folder in the class it names, on one example."""
    wanted, examples, architecture = TASKS[name]
    data, out = TaskData(wanted, examples, {"dev": examples}), tmp_path / "out"
    finetune_examples(Model.load(start), start, data, recipe(name, 5), out)
    theirs = getattr(transformers, "Albert" + architecture).from_pretrained(out / "model").eval()
    model = Model.load(out / "model")
    task = task_of(model, out)
    features = make_features(task, examples, open_tokenizer(out / "model"), out / "model")
    group = features.batch.group_size
    part = features.batch.slice(0, group)
    spread = pad(part, 0)
    grid, mask, types = (
        torch.from_numpy(array).long()
        for array in (spread.ids, spread.attention_mask, spread.token_types)
    )
    if name == "choice":
        grid, mask, types = grid[None], mask[None], types[None]
    with torch.no_grad():
        said = theirs(input_ids=grid, attention_mask=mask, token_type_ids=types)
        inputs = to_inputs(part, torch.device("cpu"))
        ours = task.outputs(model, inputs.encode(model), inputs)
    if name == "qa":
        expected = torch.stack([said.start_logits[0], said.end_logits[0]], -1)
    elif name == "regress":
        expected = said.logits[0]
    elif name == "tag":
        expected = said.logits[0][torch.from_numpy(part.positions)].softmax(-1)
    elif name == "choice":
        expected = said.logits[0].softmax(-1)[:, None]
    else:
        expected = said.logits[0].softmax(-1)
    got = np.stack(ours) if name == "choice" else ours[0]
    np.testing.assert_allclose(got, expected.numpy(), atol=1e-5)
    if wanted.labels:
        assert theirs.config.id2label == dict(enumerate(wanted.labels))


@pytest.mark.parametrize("exits", [False, True])
def test_numbers_are_learned_whatever_their_size(exits: bool, start: Path, tmp_path: Path) -> None:
    """Years and thousandths go as numbers around 0 do; the saved head speaks in their units."""
    wanted, examples, _ = TASKS["regress"]
    learned = {}
    for name, mean, deviation in (
        ("plain", 0.0, 1.0),
        ("years", 1900.0, 40.0),
        ("thin", 0.0, 1e-3),
    ):
        moved = [replace(one, label=mean + deviation * float(one.label)) for one in examples]
        data, out = TaskData(wanted, moved, {"dev": moved}), tmp_path / name
        how = recipe("regress", 20).model_copy(update={"exits": exits})
        finetune_examples(Model.load(start), start, data, how, out)
        model = Model.load(out / "model")
        task = task_of(model, out)
        assert (task.settings.label_mean, task.settings.label_deviation) == (0.0, 1.0)
        features = make_features(task, examples, open_tokenizer(out / "model"), out / "model")
        answers = predict_examples(task, model, examples, features)
        learned[name] = [(answer.value - mean) / deviation for answer in answers]
    assert np.std(learned["plain"]) > 0.1
    for name in ("years", "thin"):
        np.testing.assert_allclose(learned[name], learned["plain"], atol=2e-2)


def test_a_model_of_pairs_is_not_asked_of_lone_texts(start: Path, tmp_path: Path) -> None:
    rows = [f"{sentence(i)}\t{sentence(i + 1)}\t{i % 5}" for i in range(20)]
    (tmp_path / "mine.tsv").write_text("text_a\ttext_b\tlabel\n" + "\n".join(rows) + "\n")
    finetune(start, "regress", tmp_path / "out", train=tmp_path / "mine.tsv", baseline=False,
             overrides=["steps=2", "max_length=16", "evaluations=1"])  # fmt: skip
    (tmp_path / "new.csv").write_text("text,label\nw1q,1\n")
    for ask in (lambda: predict([tmp_path / "out"], tmp_path / "new.csv"),
                lambda: evaluate_task([tmp_path / "out"], tmp_path / "new.csv")):  # fmt: skip
        with pytest.raises(FormatError, match="line 2: one text; the model was trained on pairs"):
            ask()


def test_a_head_is_lent_its_units(start: Path) -> None:
    task = build_task(
        TASKS["regress"][0].model_copy(update={"label_mean": 3.0, "label_deviation": 2.0})
    )
    model = new_model(Model.load(start), task, recipe("regress"), 1)
    layer: Any = model.head(task.head).dense
    before = layer.weight.clone(), layer.bias.clone()
    with task.own_units(model):
        torch.testing.assert_close(layer.weight, 2 * before[0])
        torch.testing.assert_close(layer.bias, 2 * before[1] + 3)
    assert torch.equal(layer.weight, before[0])
    assert torch.equal(layer.bias, before[1])
    outputs, answers = torch.tensor([[1.0], [0.0]]), torch.tensor([5.0, torch.nan])
    assert task.loss(outputs, answers).loss == 0.0  # 5 is one deviation above 3
    assert task.soft_loss(outputs, torch.tensor([[5.0], [3.0]]), 1.0) == 0.0


def test_own_file_seeds_predictions_and_votes(start: Path, tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    rows = [f'"{sentence(i)}",{TWO[i % 2]}' for i in range(20)]
    table.write_text("text,label\n" + "\n".join(rows) + "\n")
    overrides = ["steps=3", "batch_size=4", "max_length=16", "evaluations=1"]
    done = finetune(
        start, "classify", tmp_path / "out", train=table, overrides=overrides,
        seeds=2, keep_all=True,
    )  # fmt: skip
    assert done.report is not None
    assert [result.seed for result in done.report.seeds] == [1, 2]
    assert (done.report.train, done.report.dev) == (18, {"dev": 2})
    new = tmp_path / "new.csv"
    new.write_text("text\n" + "\n".join(sentence(i) for i in range(3)) + "\n")
    one = predict([tmp_path / "out"], new)
    assert [set(row.to_json()) for row in one] == [{"id", "text", "label", "probabilities"}] * 3
    seeds = [tmp_path / "out" / f"seed-{i}" for i in (1, 2)]
    first, second, both = (predict(folders, new) for folders in ([seeds[0]], [seeds[1]], seeds))
    for a, b, merged in zip(first, second, both, strict=True):
        assert isinstance(a, LabelPrediction)
        assert isinstance(b, LabelPrediction)
        assert isinstance(merged, LabelPrediction)
        mean = (a.probabilities["yes"] + b.probabilities["yes"]) / 2
        assert merged.probabilities["yes"] == pytest.approx(mean)
    report = evaluate_task([tmp_path / "out"], table)
    assert report.examples == 20
    assert np.sum(report.details["confusion"]) == 20
    again = finetune(
        start, "classify", tmp_path / "out", train=table, overrides=overrides,
        seeds=2, keep_all=True,
    )  # fmt: skip
    assert again.report == done.report


def test_every_shipped_recipe_is_read() -> None:
    found = sorted(FOLDER.glob("*.toml"))
    assert {path.stem for path in found} == {"paper"}
    for path in found:
        for task in ("cola", "squad-2.0", "classify"):
            assert isinstance(load_recipe(path.stem, task), Settings)
    cola = load_recipe("paper", "cola")
    assert (cola.learning_rate, cola.batch_size, cola.steps, cola.max_length) == (
        1e-5,
        16,
        5336,
        512,
    )
    assert round(cola.warmup * 5336) == 320

"""Every task learns a handful of examples by heart, and its saved model says the same again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from litebert.base.batch import padded
from litebert.base.config import Settings
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.tasks.data import Data
from litebert.tasks.finetune import finetune, finetune_examples
from litebert.tasks.making import make_features
from litebert.tasks.measure import measure
from litebert.tasks.predict import predict_examples
from litebert.tasks.recipe import FOLDER, load_recipe
from litebert.tasks.starting import open_tokenizer
from litebert.tasks.using import predict, task_of
from tests.tasks.small import TASKS, TWO, recipe, sentence, write_start


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("start"))


@pytest.mark.parametrize("name", TASKS)
def test_a_handful_is_learned_by_heart_and_saved(name: str, start: Path, tmp_path: Path) -> None:
    wanted, examples, architecture = TASKS[name]
    data, out = Data(wanted, examples, {"dev": examples}), tmp_path / "out"
    done = finetune_examples(Model.load(start), start, data, recipe(name), out)
    assert done.finished
    (result,) = done.report["seeds"]
    assert result["loss"] < 0.05, result
    assert result["collapsed"] is None
    scores = result["scores"]["dev"]
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
    data, out = Data(wanted, examples, {"dev": examples}), tmp_path / "out"
    finetune_examples(Model.load(start), start, data, recipe(name, 5), out)
    theirs = getattr(transformers, "Albert" + architecture).from_pretrained(out / "model").eval()
    model = Model.load(out / "model")
    task = task_of(model, out)
    features = make_features(task, examples, open_tokenizer(out / "model"), out / "model")
    group = features.batch.together
    part = features.batch.part(0, group)
    spread = padded(part, pad=0)
    grid, mask, types = (
        torch.from_numpy(array).long() for array in (spread.ids, spread.mask, spread.types)
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
        expected = said.logits[0][torch.from_numpy(part.positions)].log_softmax(-1)
    elif name == "choice":
        expected = said.logits[0].log_softmax(-1)[:, None]
    else:
        expected = said.logits[0].log_softmax(-1)
    got = np.stack(ours) if name == "choice" else ours[0]
    np.testing.assert_allclose(got, expected.numpy(), atol=1e-5)
    if wanted.labels:
        assert theirs.config.id2label == dict(enumerate(wanted.labels))


def test_own_file_seeds_predictions_and_votes(start: Path, tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    rows = [f'"{sentence(i)}",{TWO[i % 2]}' for i in range(20)]
    table.write_text("text,label\n" + "\n".join(rows) + "\n")
    sets = ["steps=3", "batch=4", "length=16", "looks=1"]
    done = finetune(
        start, "classify", tmp_path / "out", train=table, recipe="small", sets=sets, seeds=2,
        keep_all=True,
    )  # fmt: skip
    assert [result["seed"] for result in done.report["seeds"]] == [1, 2]
    assert (done.report["train"], done.report["dev"]) == (18, {"dev": 2})
    new = tmp_path / "new.csv"
    new.write_text("text\n" + "\n".join(sentence(i) for i in range(3)) + "\n")
    one = predict([tmp_path / "out"], new)
    assert [set(row) for row in one] == [{"id", "label", "scores"}] * 3
    seeds = [tmp_path / "out" / f"seed-{i}" for i in (1, 2)]
    first, second, both = (predict(folders, new) for folders in ([seeds[0]], [seeds[1]], seeds))
    for a, b, merged in zip(first, second, both, strict=True):
        mean = (a["scores"]["yes"] + b["scores"]["yes"]) / 2
        assert merged["scores"]["yes"] == pytest.approx(mean)
    report = measure([tmp_path / "out"], table)
    assert report["examples"] == 20
    assert np.sum(report["confusion"]) == 20
    again = finetune(
        start, "classify", tmp_path / "out", train=table, recipe="small", sets=sets, seeds=2,
        keep_all=True,
    )  # fmt: skip
    assert again.report == done.report


def test_every_shipped_recipe_is_read() -> None:
    found = sorted(FOLDER.glob("*.toml"))
    assert {path.stem for path in found} == {"paper", "base", "small"}
    for path in found:
        for task in ("cola", "squad-2.0", "classify"):
            assert isinstance(load_recipe(path.stem, task), Settings)
    cola = load_recipe("paper", "cola")
    assert (cola.rate, cola.batch, cola.steps, cola.length) == (1e-5, 16, 5336, 512)
    assert round(cola.warm_up * 5336) == 320

"""The linear probe, contrastive pairs, class weights and the plain baseline, each by an oracle."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.class_weight import compute_class_weight

from litebert.base.batches import split_by_tokens
from litebert.base.errors import SettingsError
from litebert.base.intervals import bootstrap, bootstrap_difference
from litebert.finetuning import linear_probe
from litebert.finetuning.baseline import Baseline
from litebert.finetuning.contrastive import ContrastiveBatches, ContrastivePairs
from litebert.finetuning.finetune import finetune
from litebert.finetuning.recipe import Recipe
from litebert.finetuning.recipe_rule import DataFacts, StartFacts, choose_by_rule
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.tasks.features import entropy
from litebert.tasks.metrics.classification import accuracy
from litebert.tasks.readers.text_file import quiet
from litebert.tasks.registry import build_task
from litebert.tasks.texts import TextExample
from litebert.text.tokenizer import load_tokenizer
from tests.finetuning.test_runs import Notes, attempt, tune
from tests.tasks.small import TASKS, TWO, recipe, sentence, write_start


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("start"))


# ------------------------------------------------------------------------------------ the probe


@pytest.mark.parametrize("weights", [(), (0.5, 2.0)])
def test_the_last_layer_is_scikit_learns(weights: tuple[float, ...]) -> None:
    generator = np.random.default_rng(0)
    rows, labels = generator.normal(size=(60, 5)), generator.integers(2, size=60)
    settings = TASKS["classify"][0].model_copy(update={"label_weights": weights})
    weight, bias = linear_probe.fit_linear(
        build_task(settings), torch.from_numpy(rows).float(), torch.from_numpy(labels), 2
    )
    # Two classes of one weight vector: the penalty on both halves is half of one whole.
    theirs = LogisticRegression(C=2 * linear_probe.C, tol=1e-8, max_iter=1000)
    theirs.fit(rows, labels, np.array(weights)[labels] if weights else None)
    ours = rows @ weight.double().numpy().T + bias.double().numpy()
    margin = ours[:, 1] - ours[:, 0]
    np.testing.assert_allclose(margin, theirs.decision_function(rows), atol=2e-3)


def test_the_last_layer_of_a_number_is_ridge() -> None:
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(40, 5))
    values = rows @ np.arange(5) + 3
    weight, bias = linear_probe.fit_linear(
        build_task(TASKS["regress"][0]), torch.from_numpy(rows).float(),
        torch.from_numpy(values).float(), 1,
    )  # fmt: skip
    theirs = Ridge(1 / (2 * linear_probe.C)).fit(rows, values)
    np.testing.assert_allclose(weight.numpy()[0], theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(bias.numpy()[0], theirs.intercept_, atol=1e-3)


@pytest.mark.parametrize("name", ["classify-mean", "pair-bi-encoder", "regress-bi-encoder", "tag"])
def test_a_frozen_encoder_stays_and_its_head_answers(
    name: str, start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_probe, "C", 1e4)  # a handful by heart
    how = recipe(name).model_copy(update={"freeze": True})
    report = tune(start, tmp_path / "out", how, name)
    assert (report.seeds[0].steps, report.seeds[0].tokens) == (0, 0)
    assert report.seeds[0].collapsed is None
    assert report.best > 0.8
    before, after = Model.load(start).state_dict(), Model.load(tmp_path / "out/model").state_dict()
    for tensor in (tensor for tensor in after if tensor.startswith("encoder.")):
        assert torch.equal(before[tensor], after[tensor])


def test_all_may_begin_with_a_probed_head(start: Path, tmp_path: Path) -> None:
    probed = recipe("classify-mean").model_copy(update={"freeze": True})
    still = {"probe_first": True, "steps": 1, "learning_rate": 1e-12, "classifier_dropout": 0.0}
    trained = recipe("classify-mean").model_copy(update=still)
    for name, how in (("probed", probed), ("trained", trained)):
        tune(start, tmp_path / name, how, "classify-mean")
    one, other = (Model.load(tmp_path / name / "model").heads for name in ("probed", "trained"))
    for tensor, expected in one.state_dict().items():
        torch.testing.assert_close(other.state_dict()[tensor], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("name", "setting"), [("qa", "freeze"), ("choice", "freeze"),
                         ("pair", "contrastive"), ("tag", "contrastive")])  # fmt: skip
def test_other_kinds_say_so(name: str, setting: str, start: Path, tmp_path: Path) -> None:
    how = recipe(name).model_copy(update={setting: True})
    with pytest.raises(SettingsError, match=f"{setting} = true: not for tasks of the kind {name}"):
        attempt(start, tmp_path / "out", how, name)
    assert not (tmp_path / "out").exists()


def test_a_frozen_encoder_learns_no_pairs() -> None:
    with pytest.raises(SettingsError, match="freeze and contrastive"):
        Recipe.build({"freeze": True, "contrastive": True}, "recipe")


@pytest.mark.parametrize("setting", ["freeze", "contrastive"])
def test_exits_need_an_encoder_that_learns_with_them(setting: str) -> None:
    """Their heads would stay as they were drawn."""
    with pytest.raises(SettingsError, match="leave freeze and contrastive out"):
        Recipe.build({"exits": True, setting: True}, "recipe")


# ------------------------------------------------------------------------------ contrastive pairs


def test_pairs_of_one_label_are_near_and_others_apart(start: Path) -> None:
    """Against every pair by hand."""
    model, batch = Model.load(start), _batch(start, [0, 1, 0, 2, 1, 0])
    inputs = to_inputs(replace(batch, group_size=6), torch.device("cpu"))
    with torch.no_grad():
        state = inputs.encode(model)
    vectors = torch.nn.functional.normalize(state.mean(), dim=-1)
    near, apart = [], []
    for i in range(6):
        for j in range(i):
            cosine = float(vectors[i] @ vectors[j])
            if batch.labels[i] == batch.labels[j]:
                near.append((1 - cosine) ** 2)
            else:
                apart.append(cosine**2)
    expected = (np.mean(near) + np.mean(apart)) / 2
    assert float(ContrastivePairs().term(model, state, inputs).loss) == pytest.approx(expected)


def test_a_step_has_texts_of_several_labels_and_is_never_parted(start: Path) -> None:
    labels = [0] * 20 + [1] * 3 + [2]
    batches = ContrastiveBatches(_batch(start, labels), 8, seed=1)
    seen = []
    for _ in range(20):
        batch, _ = batches.next(0.0)
        assert len(split_by_tokens(batch, 1)) == 1
        assert ContrastivePairs().count(batch) == 1
        found, counts = np.unique(batch.labels, return_counts=True)
        assert len(found) == 3
        assert (counts <= 2).all()
        seen += batch.keys.tolist()
    assert len(set(seen)) > 15
    again = ContrastiveBatches(_batch(start, labels), 8, seed=1)
    again.restore({"step": 19})
    assert again.next(0.0)[0].keys.tolist() == batch.keys.tolist()


def test_contrastive_pairs_are_learned_and_resumed(start: Path, tmp_path: Path) -> None:
    how = recipe("classify", 20).model_copy(
        update={"contrastive": True, "evaluations": 2, "pooling": "mean", "dropout": 0.1}
    )
    whole = tune(start, tmp_path / "whole", how)
    notes = Notes(stop_at=13)
    assert not attempt(start, tmp_path / "run", how, callbacks=notes).finished
    tune(start, tmp_path / "run", how)
    files = [tmp_path / folder / "model" / "model.safetensors" for folder in ("whole", "run")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert whole.best > 0.99
    lines = (tmp_path / "whole/seed-1/metrics.jsonl").read_text().splitlines()
    losses = [row["loss"]["contrastive"] for row in map(json.loads, lines) if "loss" in row]
    assert losses[-1] < 0.5 * losses[0]


def _batch(start: Path, labels: Sequence[int]) -> Any:
    settings = TASKS["classify"][0].model_copy(update={"labels": ("a", "b", "c")})
    examples = [
        TextExample(str(n), sentence(n), label="abc"[label]) for n, label in enumerate(labels)
    ]
    return build_task(settings).features(examples, load_tokenizer(start)).batch


@pytest.mark.parametrize(("facts", "training", "method"), [
    ({"of_a_label": 8}, "sentence", "contrastive"),
    ({"of_a_label": 500}, "sentence", None),
    ({"of_a_label": 8}, "small", None),
    ({"of_a_label": None}, "sentence", None),
])  # fmt: skip
def test_when_pairs_come_first(facts: Any, training: Any, method: str | None) -> None:
    data = DataFacts(form="text", train=16, dev=100, numeric=False, length=30, **facts)
    choice = choose_by_rule(data, StartFacts(training, 384, 512))
    assert choice.settings.get("contrastive", False) is (method == "contrastive")
    assert any("contrastive" in reason for reason in choice.reasons) is (method is not None)
    frozen = choose_by_rule(data, StartFacts(training, 384, 512), "freeze").settings
    assert frozen["freeze"] is True
    assert "steps" not in frozen


# --------------------------------------------------------------------------------- class weights


def test_balanced_weights_are_scikit_learns() -> None:
    labels = ["no"] * 9 + ["yes"] * 3
    examples = [TextExample(str(n), "text", label=label) for n, label in enumerate(labels)]
    task = build_task(TASKS["classify"][0])
    said: list[str] = []
    weighed = task.configured({"class_weights": "balanced"}, examples, said.append)
    expected = compute_class_weight("balanced", classes=np.array(TWO), y=np.array(labels))
    assert weighed.settings.label_weights == pytest.approx(tuple(expected))
    assert said == ["class weights, so that all labels count alike: no 0.67, yes 2.00"]
    numbers = np.array([TWO.index(label) for label in labels])
    assert entropy(numbers, weighed.settings.label_weights) == pytest.approx(np.log(2))
    with pytest.raises(SettingsError, match="the kind regress has no labels"):
        build_task(TASKS["regress"][0]).configured({"class_weights": "balanced"}, [], quiet)


# ----------------------------------------------------------------------------------- the baseline


def test_the_difference_is_that_of_the_same_examples() -> None:
    labels, first, second = [1, 0, 1, 1] * 20, [1, 0, 1, 0] * 20, [0, 0, 1, 0] * 20
    found = bootstrap_difference(accuracy, labels, first, second)
    assert found.value == pytest.approx(0.25)
    better = [int(a == y) - int(b == y) for y, a, b in zip(labels, first, second, strict=True)]
    mean = bootstrap(lambda _, row: float(np.mean(row)), labels, better)
    assert (found.low, found.high) == pytest.approx((mean.low, mean.high))
    assert bootstrap_difference(accuracy, labels, first, first).high == 0


def test_the_baseline_learns_words() -> None:
    task = build_task(TASKS["classify"][0])
    texts = ["a good film", "good and warm", "a bad film", "bad and cold"] * 5
    train = [TextExample(str(n), text, label=TWO[n % 4 < 2]) for n, text in enumerate(texts)]
    asked = [TextExample("0", "good story"), TextExample("1", "bad story")]
    found = task.baseline(train, asked)
    assert found is not None
    assert [one.label for one in found] == ["yes", "no"]
    alone = task.baseline([one for one in train if one.label == "no"], asked)
    assert alone is not None
    assert [one.label for one in alone] == ["no", "no"]


def test_the_baseline_of_pairs_sees_what_they_share() -> None:
    pairs = [(sentence(n), sentence(n if n % 2 else n + 3)) for n in range(60)]
    train = [TextExample(str(n), *pair, label=float(n % 2)) for n, pair in enumerate(pairs)]
    task = build_task(TASKS["regress"][0])
    found = task.baseline(train[:40], train[40:])
    assert found is not None
    assert task.score(train[40:], found)["pearson"] > 0.9


@pytest.mark.parametrize("name", ["tag", "qa", "choice"])
def test_other_kinds_have_no_baseline(name: str) -> None:
    wanted, examples, _ = TASKS[name]
    assert build_task(wanted).baseline(examples, examples) is None


def test_the_baseline_is_seen_beside(start: Path, tmp_path: Path) -> None:
    report = tune(start, tmp_path / "out", recipe("classify", 2), baseline=True)
    assert report.baseline is not None
    assert report.baseline.scores["accuracy"] > 0.99  # a handful by heart
    written = json.loads((tmp_path / "out/report.json").read_text())["baseline"]
    assert Baseline(**written) == report.baseline
    assert tune(start, tmp_path / "out", recipe("classify", 2)) == report


@pytest.mark.parametrize(("ends", "said"), [
    ([0.01, 0.2], "the fine-tuned model is better"),
    ([-0.01, 0.2], "the dev examples are too few to tell it from the plain baseline"),
    ([-0.19, 0.02], "the plain baseline is as good here"),
    ([-0.2, -0.01], "the plain baseline is better here"),
])  # fmt: skip
def test_what_is_said_of_it(ends: list[float], said: str) -> None:
    assert Baseline("TF-IDF", "dev", {}, {}, "accuracy", 0.1, ends).verdict.startswith(said)


def test_without_scikit_learn_it_is_said(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction.text", None)
    table, notes = tmp_path / "mine.csv", Notes()
    rows = [f'"{sentence(i)}",{TWO[i % 2]}' for i in range(20)]
    table.write_text("text,label\n" + "\n".join(rows) + "\n")
    options: dict[str, Any] = {"train": table, "overrides": ["max_length=16"], "freeze": True}
    done = finetune(start, "classify", tmp_path / "out", callbacks=[notes], **options)
    assert done.report is not None
    assert done.report.baseline is None
    assert done.report.seeds[0].steps == 0
    hint = "pip install 'litebert[baseline]'"
    assert sum(hint in line for line in notes.said) == 1
    silent = Notes()
    finetune(start, "classify", tmp_path / "other", callbacks=[silent], baseline=False, **options)
    assert not any(hint in line for line in silent.said)

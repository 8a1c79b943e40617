"""What users do: the same command again, other data, wild learning rates."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from litebert.base.errors import FileError, SettingsError
from litebert.base.files import json_text
from litebert.finetuning.finetune import FinetuneReport, finetune_examples
from litebert.finetuning.recipe import load_recipe
from litebert.model.model import Model
from litebert.tasks.data import TaskData
from litebert.tasks.texts import TextExample
from litebert.train.callbacks import Callback
from tests.tasks.small import TASKS, recipe, write_start


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("start"))


class Notes(Callback):
    def __init__(self) -> None:
        self.said: list[str] = []

    def on_message(self, message: str) -> None:
        self.said.append(message)


def tune(
    start: Path, out: Path, name: str = "classify", steps: int = 3, **more: Any
) -> FinetuneReport:
    wanted, examples, _ = TASKS[name]
    data = more.pop("data", TaskData(wanted, examples, {"dev": examples}))
    how = recipe(name, steps).model_copy(update=more.pop("update", {}))
    report = finetune_examples(Model.load(start), start, data, how, out, **more).report
    assert report is not None
    return report


def test_a_finished_run_is_left_as_it_is(start: Path, tmp_path: Path) -> None:
    out, notes = tmp_path / "out", Notes()
    first = tune(start, out, seeds=2)
    weights = (out / "model" / "model.safetensors").read_bytes()
    again = tune(start, out, seeds=2, callbacks=notes)
    assert again == first
    assert any("finished before" in message for message in notes.said)
    assert (out / "model" / "model.safetensors").read_bytes() == weights


def test_more_seeds_go_on_from_a_finished_run(start: Path, tmp_path: Path) -> None:
    tune(start, tmp_path / "out", seeds=1)
    more = tune(start, tmp_path / "out", seeds=3)
    whole = tune(start, tmp_path / "whole", seeds=3)
    untimed = [
        replace(report, seeds=tuple(replace(seed, seconds=0) for seed in report.seeds))
        for report in (more, whole)
    ]
    assert untimed[0] == untimed[1]
    one, other = (tmp_path / name / "model" / "model.safetensors" for name in ("out", "whole"))
    assert one.read_bytes() == other.read_bytes()


def test_killed_before_the_end_is_written(start: Path, tmp_path: Path) -> None:
    """Whatever of the last steps was done, the same command brings the run to its end."""
    out = tmp_path / "out"
    done = tune(start, out, seeds=2, keep_all=True)
    about = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**about, "finished": False}))
    (out / "report.json").unlink()
    assert tune(start, out, seeds=2) == done
    assert Model.load(out / "model").heads


def test_other_examples_are_another_run(start: Path, tmp_path: Path) -> None:
    wanted, examples, _ = TASKS["classify"]
    tune(start, tmp_path / "out")
    turned = [
        TextExample(e.id, e.first, None, {"no": "yes", "yes": "no"}[e.label]) for e in examples
    ]
    for data in (
        TaskData(wanted, turned, {"dev": examples}),
        TaskData(wanted, examples, {"dev": turned}),
    ):
        with pytest.raises(FileError, match="a run of other settings"):
            tune(start, tmp_path / "out", data=data)


@pytest.mark.parametrize("name", ["classify", "regress"])
def test_a_run_that_diverges_is_a_collapsed_one(name: str, start: Path, tmp_path: Path) -> None:
    wild = {"learning_rate": 1e30, "warmup": 0.0, "gradient_clipping": 0.0}
    done = tune(start, tmp_path / "out", name, steps=20, update=wild, retry="learning_rate")
    assert done.collapses == 3  # once, and twice again at lower learning rates
    assert "not finite" in (done.seeds[0].collapsed or "")
    assert (tmp_path / "out" / "report.json").read_text() == json_text(asdict(done))
    assert Model.load(tmp_path / "out" / "model").heads


def test_what_the_user_says_of_epochs_holds() -> None:
    assert load_recipe("paper", "sst-2").steps == 20_935
    asked = load_recipe("paper", "sst-2", ["epochs=2"])
    assert (asked.steps, asked.epochs) == (None, 2)
    assert load_recipe("paper", "sst-2", ["epochs=2", "steps=7"]).steps == 7


def test_encoders_without_dropout_are_tuned_without(start: Path) -> None:
    rows = [load_recipe("paper", "race", without_dropout=flag) for flag in (False, True)]
    assert [(row.learning_rate, row.dropout) for row in rows] == [(2e-5, 0.1), (1e-5, 0.0)]
    for task in ("qqp", "rte", "wnli"):
        assert load_recipe("paper", task).dropout == 0.1
        assert load_recipe("paper", task, without_dropout=True).dropout == 0.0
        assert load_recipe("paper", task, ["dropout=0.2"], without_dropout=True).dropout == 0.2


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({"dropout": 0.3}, (0.3, 0.3)),
        ({"dropout": 0.3, "attention_dropout": 0.0}, (0.3, 0.0)),
        ({"attention_dropout": 0.4}, (0.0, 0.4)),  # the encoder itself has none
    ],
)
def test_dropout_of_the_encoder_and_of_attention(
    start: Path, tmp_path: Path, update: dict[str, float], expected: tuple[float, float]
) -> None:
    tune(start, tmp_path / "out", "classify", update=update)
    config = Model.load(tmp_path / "out" / "model").config
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == expected


def test_lone_texts_go_through_no_bi_encoder(start: Path, tmp_path: Path) -> None:
    for name, head in (("classify", "mean_classification"), ("pair", "bi_encoder_classification")):
        tune(start, tmp_path / name, name, update={"bi_encoder": True})
        assert list(Model.load(tmp_path / name / "model").heads) == [head]
    with pytest.raises(SettingsError, match="--overflow stride: not with a bi-encoder"):
        tune(start, tmp_path / "out", "pair", update={"bi_encoder": True}, overflow="stride")

"""Fine-tuning as it goes: stopped and continued, collapsed and repeated, refused."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from litebert.base.errors import FileError, FormatError, SettingsError
from litebert.finetuning.finetune import Finetuned, FinetuneReport, finetune, finetune_examples
from litebert.finetuning.recipe import Recipe
from litebert.finetuning.runs import RunResult
from litebert.inference.evaluate import evaluate_task
from litebert.inference.predict import predict
from litebert.model.model import Model
from litebert.tasks.data import TaskData, open_data
from litebert.tasks.source import DataSource
from litebert.train.callbacks import Callback
from tests.tasks.small import TASKS, recipe, sentence, write_start
from tests.test_cli import run


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("start"))


class Notes(Callback):
    """Remembers messages, and asks to stop at a step."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.said: list[str] = []
        self.steps = 0
        self.stop_at = stop_at

    def on_step(self, step: int, progress: float) -> None:
        self.steps += 1
        if self.steps == self.stop_at:
            os.kill(os.getpid(), signal.SIGTERM)

    def on_message(self, message: str) -> None:
        self.said.append(message)


def attempt(
    start: Path, out: Path, recipe: Recipe, name: str = "classify", **more: Any
) -> Finetuned:
    wanted, examples, _ = TASKS[name]
    data = TaskData(wanted, examples, {"dev": examples})
    return finetune_examples(Model.load(start), start, data, recipe, out, **more)


def tune(start: Path, out: Path, recipe: Recipe, *args: Any, **more: Any) -> FinetuneReport:
    report = attempt(start, out, recipe, *args, **more).report
    assert report is not None
    return report


@pytest.mark.parametrize("name", ["classify", "choice"])
def test_a_stopped_run_ends_like_an_undisturbed_one(name: str, start: Path, tmp_path: Path) -> None:
    how = recipe(name, 20).model_copy(update={"evaluations": 4, "dropout": 0.1, "batch_size": 3})
    whole = tune(start, tmp_path / "whole", how, name, seeds=2)
    notes = Notes(stop_at=27)  # in the second seed
    stopped = attempt(start, tmp_path / "run", how, name, seeds=2, callbacks=notes)
    assert not stopped.finished
    assert not (tmp_path / "run" / "model").exists()
    rest = Notes()
    done = tune(start, tmp_path / "run", how, name, seeds=2, callbacks=rest)
    assert 20 < notes.steps < 40
    assert notes.steps + rest.steps == 40
    assert [_timeless(seed) for seed in done.seeds] == [_timeless(seed) for seed in whole.seeds]
    files = [tmp_path / folder / "model" / "model.safetensors" for folder in ("whole", "run")]
    assert files[0].read_bytes() == files[1].read_bytes()


def _timeless(result: RunResult) -> RunResult:
    return replace(result, seconds=0)


@pytest.mark.parametrize("retry", ["no", "seed", "learning_rate"])
def test_a_collapsed_run_is_said_and_repeated(retry: Any, start: Path, tmp_path: Path) -> None:
    stuck = recipe("classify", 10).model_copy(update={"learning_rate": 1e-12})
    notes = Notes()
    done = tune(start, tmp_path / "run", stuck, retry=retry, callbacks=notes)
    tries = 1 if retry == "no" else 3
    assert done.collapses == tries
    assert sum("collapsed" in message for message in notes.said) == tries
    folders = sorted(path.name for path in (tmp_path / "run").glob("seed-*"))
    assert folders == ["seed-1", "seed-1-again-1", "seed-1-again-2"][:tries]
    (result,) = done.seeds
    assert result.learning_rate == (0.25e-12 if retry == "learning_rate" else 1e-12)
    assert result.seed == (2001 if retry == "seed" else 1)


def test_early_stopping_keeps_the_best(start: Path, tmp_path: Path) -> None:
    how = recipe("classify", 60).model_copy(
        update={"evaluations": 20, "patience": 2, "learning_rate": 1e-12}
    )
    (result,) = tune(start, tmp_path / "run", how).seeds
    assert result.steps == 10  # three evaluations, one the best, two no better; then one step more
    assert result.step == 9  # of tied evaluations the last one


def test_other_settings_are_refused(start: Path, tmp_path: Path) -> None:
    how = recipe("classify", 2)
    tune(start, tmp_path / "run", how)
    with pytest.raises(FileError, match=r"recipe\.learning_rate: 0\.003 there, 0\.1 wanted"):
        tune(start, tmp_path / "run", how.model_copy(update={"learning_rate": 0.1}))


def test_lower_layers_may_learn_less(start: Path, tmp_path: Path) -> None:
    """With a decay of almost nothing the embeddings stay as they were."""
    shared = ("encoder.", "pooler.")
    before = {n: x for n, x in Model.load(start).state_dict().items() if n.startswith(shared)}
    how = recipe("classify", 3).model_copy(update={"layerwise_lr_decay": 1e-9, "weight_decay": 0.0})
    tune(start, tmp_path / "run", how)
    after = Model.load(tmp_path / "run" / "model").state_dict()
    moved = {name: float((after[name] - before[name]).abs().max()) for name in before}
    assert max(far for name, far in moved.items() if name.startswith("encoder.")) < 1e-6
    assert moved["pooler.dense.weight"] > 1e-4


# ------------------------------------------------------------------------------- bad input


def table(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--task", "sst2"], ["no task 'sst2'", "sst-2"]),
        (["--task", "sst-2"], ["--data"]),
        (["--task", "classify"], ["--train"]),
        (["--task", "classify", "--train", "gone.csv"], ["gone.csv"]),
        (["--task", "classify", "--train", "mine.csv", "--column", "text"], ["ROLE=NAME"]),
        (["--task", "classify", "--train", "mine.csv", "--column", "texd=a"], ["text"]),
        (
            ["--task", "classify", "--train", "mine.csv", "--set", "learning_rat=1"],
            ["'learning_rat'", "learning_rate"],
        ),
        (["--task", "classify", "--train", "mine.csv", "--recipe", "papre"], ["paper"]),
        (["--task", "classify", "--train", "mine.csv", "--set", "max_length=4000"], ["positions"]),
        (["--task", "classify", "--train", "mine.csv", "--seeds", "0"], ["--seeds 0"]),
        (["--task", "classify", "--train", "mine.csv", "--retry", "yes"], ["--retry yes"]),
        (["--task", "classify", "--train", "mine.csv", "--dev", "other.csv"], ["'c'", "dev"]),
        (["--task", "classify", "--train", "one.csv"], ["'a'", "two"]),
        (["--task", "regress", "--train", "mine.csv"], ["mine.csv", "line 2"]),
        (["--task", "classify", "--train", "empty.csv"], ["empty.csv", "line 3"]),
    ],
)
def test_one_sentence(
    words: list[str], said: list[str], start: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The last line; what was guessed on the way is said before it."""
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "mine.csv", "text,label", *(f"{sentence(i)},{'ab'[i % 2]}" for i in range(30)))
    table(tmp_path / "other.csv", "text,label", f"{sentence(1)},c")
    table(tmp_path / "one.csv", "text,label", *(f"{sentence(i)},a" for i in range(30)))
    table(tmp_path / "empty.csv", "text,label", f"{sentence(1)},a", ",b")
    assert run(monkeypatch, "finetune", start, "--out", tmp_path / "out", *words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    last = err.splitlines()[-1]
    assert last.startswith("litebert: ")
    for word in said:
        assert word in last, last


def test_a_model_without_a_tokenizer(start: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    Model.load(start).save(bare)
    mine = table(tmp_path / "mine.csv", "text,label", "w1q,a", "w2q,b", "w3q,a")
    with pytest.raises(FileError, match="needs its tokenizer beside it"):
        finetune(bare, "classify", tmp_path / "out", train=mine)


def test_a_model_that_was_never_tuned(start: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="not fine-tuned"):
        predict([start], table(tmp_path / "new.csv", "text", "w1q"))


def test_labels_that_the_model_does_not_know(start: Path, tmp_path: Path) -> None:
    rows = [f"{sentence(i)},{'ab'[i % 2]}" for i in range(6)]
    mine = table(tmp_path / "mine.csv", "text,label", *rows)
    finetune(start, "classify", tmp_path / "run", train=mine, overrides=["steps=1"])
    other = table(tmp_path / "other.csv", "text,label", f"{sentence(1)},c")
    with pytest.raises(FormatError, match="label 'c' is none of the model's: a, b"):
        evaluate_task([tmp_path / "run"], other)


def test_models_of_other_labels_do_not_vote(start: Path, tmp_path: Path) -> None:
    for name, labels in (("one", "ab"), ("two", "xy")):
        rows = [f"{sentence(i)},{labels[i % 2]}" for i in range(6)]
        mine = table(tmp_path / f"{name}.csv", "text,label", *rows)
        finetune(start, "classify", tmp_path / name, train=mine, overrides=["steps=1"])
    with pytest.raises(SettingsError, match="cannot vote"):
        predict([tmp_path / "one", tmp_path / "two"], tmp_path / "one.csv")


def test_guessed_columns_and_the_split_are_said(tmp_path: Path) -> None:
    mine = table(tmp_path / "mine.csv", "review,label", *(f"w{i}q,{i % 2}" for i in range(20)))
    notes = Notes()
    data = open_data("classify", DataSource(train=mine), notes.on_message)
    assert (len(data.train), len(data.dev["dev"])) == (18, 2)
    assert any("text = 'review'" in message for message in notes.said)
    assert any("2 of 20" in message for message in notes.said)

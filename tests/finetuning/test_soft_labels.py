"""Task distillation: texts without labels are learned from a teacher, whatever its tokenizer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from litebert.base.errors import FormatError, SettingsError
from litebert.finetuning import choose, soft_labels
from litebert.finetuning.finetune import finetune, finetune_examples
from litebert.finetuning.recipe_rule import StartFacts
from litebert.finetuning.soft_labels import KEPT, TaskTeacher
from litebert.inference.evaluate import evaluate_task
from litebert.model.model import Model
from litebert.tasks.data import TaskData
from litebert.tasks.registry import build_task
from litebert.train.callbacks import Callback
from litebert.train.metrics import TrainingMetrics, read_metrics
from tests.tasks.small import TASKS, TWO, recipe, sentence, write_start


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("start"))


def teach(name: str, start: Path, folder: Path) -> Path:
    wanted, examples, _ = TASKS[name]
    data = TaskData(wanted, examples, {"dev": examples})
    finetune_examples(Model.load(start), start, data, recipe(name), folder)
    return folder / "model"


@pytest.mark.parametrize("name", ["classify", "pair-bi-encoder", "regress"])
def test_texts_without_labels_are_learned_from_the_teacher(
    name: str, start: Path, tmp_path: Path
) -> None:
    """Of eight examples the student is told the answers of two."""
    wanted, examples, _ = TASKS[name]
    folder = teach(name, start, tmp_path / "teacher")
    told = [examples[0], examples[2 if name != "regress" else -1]]
    others = [replace(one, label=None) for one in examples if one not in told]
    data = TaskData(wanted, told, {"dev": examples})
    done = finetune_examples(
        Model.load(start), start, data, recipe(name), tmp_path / "student",
        teacher=TaskTeacher(folder, others),
    )  # fmt: skip
    assert done.report is not None
    (result,) = done.report.seeds
    assert result.scores["dev"][wanted.metrics[0]] > 0.99
    lines = read_metrics(tmp_path / "student" / "seed-1")
    training = [line for line in lines if isinstance(line, TrainingMetrics)]
    assert set(training[-1].loss) == {wanted.name, "soft_labels"}
    rows = np.load(tmp_path / "student" / KEPT)
    assert len(rows) == len(examples)


def test_the_loss_is_that_of_softened_probabilities() -> None:
    classify, regress = (build_task(TASKS[name][0]) for name in ("classify", "regress"))
    outputs, temperature = torch.tensor([[1.0, -1.0], [0.5, 2.0]]), 3.0
    taught = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    soft = taught ** (1 / temperature)
    soft = soft / soft.sum(-1, keepdim=True)
    ours = torch.exp(outputs / temperature)
    ours = ours / ours.sum(-1, keepdim=True)
    expected = (soft * (soft / ours).log()).sum() * temperature**2
    found: Any = classify
    torch.testing.assert_close(found.soft_loss(outputs, taught, temperature), expected)
    numbers: Any = regress
    assert numbers.soft_loss(outputs[:, :1], taught[:, :1], 9.0).item() == pytest.approx(
        0.1**2 + 0.3**2
    )


def test_an_example_without_a_label_has_no_target_even_if_one_is_called_none() -> None:
    settings, examples, _ = TASKS["classify"]
    task: Any = build_task(settings.model_copy(update={"labels": ("None", "yes")}))
    assert task.target_of(replace(examples[0], label=None)) < 0
    assert task.target_of(replace(examples[0], label="None")) == 0


def test_files_and_a_second_run(start: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """The teacher is asked once; labels go by their names."""
    folder = teach("classify", start, tmp_path / "teacher")
    table, more = tmp_path / "mine.csv", tmp_path / "more.txt"
    rows = [f'"{sentence(i)}",{TWO[i % 2]}' for i in range(20)]
    table.write_text("text,label\n" + "\n".join(rows) + "\n")
    more.write_text("".join(f"{sentence(i)}\n" for i in range(20, 50)))
    asked = []
    ask = soft_labels._ask
    monkeypatch.setattr(soft_labels, "_ask", lambda *args: asked.append(1) or ask(*args))
    options: Any = {
        "train": table, "teacher": folder, "unlabelled": more, "baseline": False,
        "overrides": ["steps=4", "batch_size=8", "max_length=16", "evaluations=1"],
    }  # fmt: skip
    for seeds in (1, 2):
        done = finetune(start, "classify", tmp_path / "out", seeds=seeds, **options)
        assert done.report is not None
        assert len(done.report.seeds) == seeds
    assert len(asked) == 1
    assert done.report.train == 18
    assert len(np.load(tmp_path / "out" / KEPT)) == 18 + 30
    assert evaluate_task([tmp_path / "out"], table).examples == 20
    (tmp_path / "out" / KEPT).write_bytes(b"no array")
    with pytest.raises(FormatError, match="ask the teacher again"):
        finetune(start, "classify", tmp_path / "out", seeds=3, **options)


def test_what_a_teacher_cannot_teach_is_refused(start: Path, tmp_path: Path) -> None:
    folder = teach("classify", start, tmp_path / "teacher")
    table = tmp_path / "mine.csv"
    overrides = ["steps=2"]

    def write(*labels: str) -> None:
        rows = [f'"{sentence(i)}",{labels[i % len(labels)]}' for i in range(20)]
        table.write_text("text,label\n" + "\n".join(rows) + "\n")

    def tune(**options: Any) -> None:
        finetune(start, "classify", tmp_path / "out", train=table, overrides=overrides, **options)

    write("a", "b", "c")
    with pytest.raises(SettingsError, match="with 2 labels, the task has 3"):
        tune(teacher=folder)
    write("a", "d")
    with pytest.raises(SettingsError, match="its labels are no, yes, the task's a, d"):
        tune(teacher=folder)
    write(*TWO)
    with pytest.raises(SettingsError, match="needs --teacher"):
        tune(unlabelled=table)
    with pytest.raises(SettingsError, match="--search cannot be combined"):
        tune(teacher=folder, search="3")
    with pytest.raises(SettingsError, match="freeze and contrastive cannot be combined"):
        tune(teacher=folder, freeze=True)
    with pytest.raises(FormatError, match="not a fine-tuned model"):
        tune(teacher=start)
    overrides.append("exits=true")
    with pytest.raises(SettingsError, match="leave exits out"):
        tune(teacher=folder)


@pytest.mark.parametrize("asked", ["teacher", "exits"])
def test_the_rule_chooses_no_pairs_where_they_would_be_refused(
    asked: str, start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few labels and a sentence encoder: pairs first, unless a teacher or exits are wanted."""
    monkeypatch.setattr(choose, "start_facts", lambda _: StartFacts("sentence", 384, 16))
    table, said = tmp_path / "mine.csv", []
    rows = [f'"{sentence(i)}",{TWO[i % 2]}' for i in range(20)]
    table.write_text("text,label\n" + "\n".join(rows) + "\n")
    options: Any = {"overrides": ["exits=true"]}
    if asked == "teacher":
        options = {"teacher": teach("classify", start, tmp_path / "teacher"), "overrides": []}
    options["overrides"] += ["steps=2", "batch_size=8", "evaluations=1"]
    monkeypatch.setattr(Callback, "on_message", lambda _, text: said.append(text))
    finetune(start, "classify", tmp_path / "out", train=table, baseline=False,
             callbacks=[Callback()], **options)  # fmt: skip
    assert not any("contrastive" in line for line in said)
    assert any("mean pooling" in line for line in said)

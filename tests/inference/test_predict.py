"""Fine-tuned models at work: labels that are not needed, no answers, vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from litebert.base.errors import FormatError, SettingsError
from litebert.base.intervals import wilson
from litebert.finetuning.finetune import FinetuneReport, finetune_examples
from litebert.inference.embed import embed_texts
from litebert.inference.evaluate import evaluate_task
from litebert.inference.model_folder import open_tokenizer, task_of
from litebert.inference.predict import predict
from litebert.inference.pretrained import embed_settings
from litebert.model.model import Model
from litebert.tasks.data import TaskData
from litebert.tasks.questions import QuestionExample
from tests.tasks.small import TASKS, recipe, sentence, write_start
from tests.test_cli import run


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("start"))


def tune(
    start: Path, out: Path, name: str = "classify", steps: int = 3, **more: Any
) -> FinetuneReport:
    wanted, examples, _ = TASKS[name]
    data = more.pop("data", TaskData(wanted, examples, {"dev": examples}))
    how = recipe(name, steps).model_copy(update=more.pop("update", {}))
    report = finetune_examples(Model.load(start), start, data, how, out, **more).report
    assert report is not None
    return report


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_measuring_needs_labels_and_predicting_does_not(start: Path, tmp_path: Path) -> None:
    tune(start, tmp_path / "out")
    strange = write(tmp_path / "new.csv", "body,label", f"{sentence(1)},never heard of")
    columns = {"text": "body"}
    assert len(predict([tmp_path / "out"], strange, columns=columns)) == 1
    with pytest.raises(FormatError, match=r"new.csv, line 2: label 'never heard of' is none"):
        evaluate_task([tmp_path / "out"], strange, columns=columns)
    good = write(tmp_path / "good.csv", "body,label", f"{sentence(1)},yes", f"{sentence(2)},no")
    assert evaluate_task([tmp_path / "out"], good, columns=columns).examples == 2


def test_a_result_that_could_not_be_written_is_known_before(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new = write(tmp_path / "new.csv", "text", "a")
    monkeypatch.setattr(
        "litebert.inference.predict.ask", lambda *_, **__: pytest.fail("asked first")
    )
    missing = tmp_path / "no" / "x.jsonl"
    assert run(monkeypatch, "predict", start, "--input", new, "--out", missing) == 2
    assert "make it first" in capsys.readouterr().err
    assert run(monkeypatch, "predict", start, "--input", new, "--submission", missing) == 2
    assert "make it first" in capsys.readouterr().err


def test_a_model_of_squad_2_says_that_there_is_no_answer(start: Path, tmp_path: Path) -> None:
    name = "qa-impossible"
    examples = TASKS[name][1]
    tune(start, tmp_path / "out", name, steps=150)
    model = Model.load(tmp_path / "out" / "model")
    task = task_of(model, tmp_path)
    assert task.settings.threshold is not None
    source = squad_file(tmp_path / "mine.json", examples)
    said = predict([tmp_path / "out"], source, submission=tmp_path / "sent", precision="fp32")
    expected = ["" if example.impossible else example.answers[0].text for example in examples]
    assert [one.text for one in said] == expected
    assert all(one.candidates for one in said)  # what it would have said
    sent = json.loads((tmp_path / "sent" / "predictions.json").read_text())
    assert list(sent.values()) == expected
    report = evaluate_task([tmp_path / "out"], source, precision="fp32")
    assert report.scores["NoAns_exact"] == 1
    assert report.scores["exact"] == report.scores["best_exact"] == 1
    few = wilson(len(examples), len(examples)).low  # all of them are correct
    assert (report.intervals["f1"].low, report.intervals["f1"].high) == (few, 1)
    both = predict([tmp_path / "out", tmp_path / "out" / "model"], source, precision="fp32")
    assert [one.text for one in both] == expected


def squad_file(path: Path, examples: list[QuestionExample]) -> Path:
    paragraphs = [
        {
            "context": one.passage,
            "qas": [
                {
                    "id": one.id, "question": one.question, "is_impossible": bool(one.impossible),
                    "answers": [{"text": a.text, "answer_start": a.start} for a in one.answers],
                }
            ],
        }
        for one in examples
    ]  # fmt: skip
    content = {"version": "v2.0", "data": [{"title": "T", "paragraphs": paragraphs}]}
    return write(path, json.dumps(content))


def test_vectors_of_a_model_with_few_positions(start: Path) -> None:
    model, tokenizer = Model.load(start), open_tokenizer(start)
    texts = [sentence(1, 100), sentence(2)]
    short, long = (
        embed_texts(model, tokenizer, texts, embed_settings(model, start, max_length=n))
        for n in (64, 128)
    )
    assert (short == long).all()
    with pytest.raises(SettingsError, match=r"max_length = 2: .* greater than or equal to 3"):
        embed_settings(model, start, max_length=2)

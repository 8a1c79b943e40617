"""What users do: the same command again, other data, rare labels, wild rates, unfit files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from litebert.base.errors import FileError, FormatError, SettingsError
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.tasks import fit
from litebert.tasks.base import TaskSettings
from litebert.tasks.data import Data, open_data, read_split
from litebert.tasks.embed import embed
from litebert.tasks.examples import QuestionExample, TextExample
from litebert.tasks.files.roles import Columns
from litebert.tasks.finetune import Finetuned, finetune_examples
from litebert.tasks.measure import measure
from litebert.tasks.recipe import load_recipe
from litebert.tasks.registry import build_task
from litebert.tasks.starting import open_tokenizer
from litebert.tasks.using import predict, task_of
from litebert.train.watch import Watcher
from tests.tasks.small import TASKS, recipe, sentence, settings, write_start
from tests.test_cli import run


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("start"))


class Notes(Watcher):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def tune(start: Path, out: Path, name: str = "classify", steps: int = 3, **more: Any) -> Finetuned:
    wanted, examples, _ = TASKS[name]
    data = more.pop("data", Data(wanted, examples, {"dev": examples}))
    how = recipe(name, steps).model_copy(update=more.pop("update", {}))
    return finetune_examples(Model.load(start), start, data, how, out, **more)


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


# ------------------------------------------------------------------------------- the same again


def test_a_finished_run_is_left_as_it_is(start: Path, tmp_path: Path) -> None:
    out, notes = tmp_path / "out", Notes()
    first = tune(start, out, seeds=2)
    weights = (out / "model" / "model.safetensors").read_bytes()
    again = tune(start, out, seeds=2, watcher=notes)
    assert again.report == first.report
    assert any("finished before" in message for message in notes.said)
    assert (out / "model" / "model.safetensors").read_bytes() == weights


def test_more_seeds_go_on_from_a_finished_run(start: Path, tmp_path: Path) -> None:
    tune(start, tmp_path / "out", seeds=1)
    more = tune(start, tmp_path / "out", seeds=3)
    whole = tune(start, tmp_path / "whole", seeds=3)
    for report in (more.report, whole.report):
        for seed in report["seeds"]:
            del seed["seconds"]
    assert more.report == whole.report
    one, other = (tmp_path / name / "model" / "model.safetensors" for name in ("out", "whole"))
    assert one.read_bytes() == other.read_bytes()


def test_killed_before_the_end_is_written(start: Path, tmp_path: Path) -> None:
    """Whatever of the last steps was done, the same command brings the run to its end."""
    out = tmp_path / "out"
    done = tune(start, out, seeds=2, keep_all=True)
    about = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**about, "finished": False}))
    (out / "report.json").unlink()
    assert tune(start, out, seeds=2).report == done.report
    assert Model.load(out / "model").heads


def test_other_examples_are_another_run(start: Path, tmp_path: Path) -> None:
    wanted, examples, _ = TASKS["classify"]
    tune(start, tmp_path / "out")
    turned = [
        TextExample(e.id, e.first, None, {"no": "yes", "yes": "no"}[e.label]) for e in examples
    ]
    for data in (Data(wanted, turned, {"dev": examples}), Data(wanted, examples, {"dev": turned})):
        with pytest.raises(FileError, match="a run of other settings"):
            tune(start, tmp_path / "out", data=data)


# ----------------------------------------------------------------------------------- wild rates


@pytest.mark.parametrize("name", ["classify", "regress"])
def test_a_run_that_diverges_is_a_collapsed_one(name: str, start: Path, tmp_path: Path) -> None:
    wild = {"rate": 1e30, "warm_up": 0.0, "clip": 0.0}
    done = tune(start, tmp_path / "out", name, steps=20, update=wild, retry="rate")
    assert done.finished
    assert done.report["collapses"] == 3  # once, and twice again at lower rates
    assert "no number" in done.report["seeds"][0]["collapsed"]
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == done.report
    assert Model.load(tmp_path / "out" / "model").heads


def test_answers_that_are_no_numbers_are_a_collapse() -> None:
    assert fit._all_alike([{"value": 1.0}, {"value": float("nan")}])
    assert fit._all_alike([{"value": 1.0}, {"value": 1.0}])
    assert not fit._all_alike([{"value": 1.0}, {"value": 2.0}])


def test_what_the_user_says_of_epochs_holds() -> None:
    assert load_recipe("paper", "sst-2").steps == 20_935
    asked = load_recipe("paper", "sst-2", ["epochs=2"])
    assert (asked.steps, asked.epochs) == (None, 2)
    assert load_recipe("paper", "sst-2", ["epochs=2", "steps=7"]).steps == 7


def test_encoders_without_dropout_are_tuned_without(start: Path) -> None:
    rows = [load_recipe("paper", "race", without_dropout=flag) for flag in (False, True)]
    assert [(row.rate, row.dropout) for row in rows] == [(2e-5, 0.1), (1e-5, 0.0)]
    for task in ("qqp", "rte", "wnli"):
        assert load_recipe("paper", task).dropout == 0.1
        assert load_recipe("paper", task, without_dropout=True).dropout == 0.0
        assert load_recipe("paper", task, ["dropout=0.2"], without_dropout=True).dropout == 0.2


# ------------------------------------------------------------------------- files that do not fit


def choices(path: Path, options: int, questions: int = 4) -> Path:
    letters = [f"option_{n}" for n in range(options)]
    rows = [
        ",".join([sentence(i, 3), *(sentence(9 * i + k, 2) for k in range(options)), "0"])
        for i in range(questions)
    ]
    return write(path, ",".join(["question", *letters, "answer"]), *rows)


def test_another_number_of_options(start: Path, tmp_path: Path) -> None:
    four, three = choices(tmp_path / "four.csv", 4), choices(tmp_path / "three.csv", 3)
    with pytest.raises(
        FormatError, match=r"three.csv, line 2: 3 options; the model chooses among 4"
    ):
        open_data("choice", train=four, dev=three)
    wanted = TaskSettings(name="choice", kind="choice", metrics=("accuracy",), options=4)
    for labelled in (True, False):
        with pytest.raises(FormatError, match=r"three.csv, line 2: 3 options"):
            read_split(wanted, three, labelled=labelled)


def test_a_label_that_only_dev_has_is_named_with_its_line(tmp_path: Path) -> None:
    train = write(tmp_path / "train.csv", "text,label", "a,x", "b,y", "c,x")
    dev = write(tmp_path / "dev.csv", "text,label", "d,x", "e,z")
    with pytest.raises(FormatError, match=r"dev.csv, line 3: label 'z' occurs among the dev"):
        open_data("classify", train=train, dev=dev)


def test_a_label_that_occurs_once_is_not_held_out(tmp_path: Path) -> None:
    for rare in range(41):  # wherever it stands
        rows = [f"text {i},{'c' if i == rare else 'ab'[i % 2]}" for i in range(41)]
        found = open_data("classify", train=write(tmp_path / "t.csv", "text,label", *rows))
        assert "c" in found.settings.labels
        assert all(example.label != "c" for example in found.dev["dev"])
    single = write(tmp_path / "s.csv", "text,label", "one,a", "two,b", "three,c")
    with pytest.raises(SettingsError, match=r"every label occurs once; .* --dev"):
        open_data("classify", train=single)


def test_tags_that_are_not_of_entities(tmp_path: Path) -> None:
    folder = tmp_path / "ner"
    folder.mkdir()
    write(folder / "train.txt", "Ann B-PER", "ran O", "", "Bo PER")
    write(folder / "dev.txt", "Ann B-PER")
    with pytest.raises(FormatError, match=r"train.txt, line 4: 'PER' is not a tag of entities"):
        open_data("ner", data=folder)
    write(folder / "train.txt", "Ann B-PER", "ran O")
    write(folder / "dev.txt", "Ann B-LOC")
    with pytest.raises(FormatError, match=r"dev.txt, line 1: label 'B-LOC' occurs among the dev"):
        open_data("ner", data=folder)
    odd = write(tmp_path / "t.jsonl", *[json.dumps({"words": ["a"], "tags": [t]}) for t in "NNVV"])
    assert open_data("tag", train=odd).settings.metrics == ("accuracy",)
    nearly = [json.dumps({"words": ["a"], "tags": [t]}) for t in ("N-a", "V-a") * 2]
    assert open_data("tag", train=write(odd, *nearly)).settings.metrics == ("accuracy",)


def test_measuring_needs_labels_and_predicting_does_not(start: Path, tmp_path: Path) -> None:
    tune(start, tmp_path / "out")
    strange = write(tmp_path / "new.csv", "body,label", f"{sentence(1)},never heard of")
    columns = Columns(text="body")
    assert len(predict([tmp_path / "out"], strange, columns=columns)) == 1
    with pytest.raises(FormatError, match=r"new.csv, line 2: label 'never heard of' is none"):
        measure([tmp_path / "out"], strange, columns=columns)
    good = write(tmp_path / "good.csv", "body,label", f"{sentence(1)},yes", f"{sentence(2)},no")
    assert measure([tmp_path / "out"], good, columns=columns)["examples"] == 2


def test_published_folders_are_found_for_measuring(tmp_path: Path) -> None:
    ner = settings("tag", metrics=("entity_f1",), labels=("O", "B-PER")).model_copy(
        update={"name": "ner"}
    )
    write(tmp_path / "dev.txt", "Ann B-PER")
    assert len(read_split(ner, tmp_path)) == 1
    squad = settings("qa", metrics=("f1",)).model_copy(update={"name": "squad-1.1"})
    question = {"id": "q", "question": "who?", "answers": [{"text": "Ann", "answer_start": 0}]}
    content = {"version": "1.1", "data": [{"paragraphs": [{"context": "Ann", "qas": [question]}]}]}
    write(tmp_path / "dev-v1.1.json", json.dumps(content))
    assert len(read_split(squad, tmp_path)) == 1
    assert len(
        open_data("qa", train=tmp_path / "dev-v1.1.json", dev=tmp_path / "dev-v1.1.json").train
    )
    mnli = settings("pair", metrics=("accuracy",), labels=("entailment", "neutral"))
    ax = tmp_path / "AX"
    ax.mkdir()
    write(ax / "diagnostic.tsv", "index\tsentence1\tsentence2", "0\tIt rained.\tIt was wet.")
    found = read_split(
        mnli.model_copy(update={"name": "mnli"}), tmp_path, split="ax", labelled=False
    )
    assert [example.first for example in found] == ["It rained."]


def test_repair_is_for_squad_files(tmp_path: Path) -> None:
    table = write(tmp_path / "mine.csv", "question,passage,answer", "who?,Ann ran,Ann")
    with pytest.raises(SettingsError, match=r"--repair: .*mine.csv is not a SQuAD file"):
        open_data("qa", train=table, repair=True)


def test_a_result_that_could_not_be_written_is_known_before(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new = write(tmp_path / "new.csv", "text", "a")
    monkeypatch.setattr("litebert.tasks.using.ask", lambda *_, **__: pytest.fail("asked first"))
    missing = tmp_path / "no" / "x.jsonl"
    assert run(monkeypatch, "predict", start, "--input", new, "--out", missing) == 2
    assert "make it first" in capsys.readouterr().err
    assert run(monkeypatch, "predict", start, "--input", new, "--submission", missing) == 2
    assert "make it first" in capsys.readouterr().err


# ----------------------------------------------------------------------------------------- SQuAD


def test_a_model_of_squad_2_says_that_there_is_no_answer(start: Path, tmp_path: Path) -> None:
    name = "qa-impossible"
    examples = TASKS[name][1]
    tune(start, tmp_path / "out", name, steps=150)
    model = Model.load(tmp_path / "out" / "model")
    task = task_of(model, tmp_path)
    assert task.settings.threshold is not None
    source = squad_file(tmp_path / "mine.json", examples)
    said = predict([tmp_path / "out"], source, submission=tmp_path / "sent")
    expected = ["" if example.impossible else example.answers[0].text for example in examples]
    assert [one["text"] for one in said] == expected
    assert all(one["best"] for one in said)  # what it would have said
    sent = json.loads((tmp_path / "sent" / "predictions.json").read_text())
    assert list(sent.values()) == expected
    report = measure([tmp_path / "out"], source)
    assert report["scores"]["NoAns_exact"] == 1
    assert report["scores"]["exact"] == report["scores"]["best_exact"] == 1
    assert report["intervals"]["f1"] == [1, 1]
    both = predict([tmp_path / "out", tmp_path / "out" / "model"], source)
    assert [one["text"] for one in both] == expected


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


@pytest.mark.parametrize(("length", "words"), [(16, 70), (8, 30), (64, 3)])
def test_a_long_question_leaves_room_for_the_passage(length: int, words: int, start: Path) -> None:
    tokenizer = open_tokenizer(start)
    asked = build_task(settings("qa", metrics=("f1",), length=length))
    example = QuestionExample("1", sentence(1, words), sentence(2, 40))
    batch = asked.features([example], tokenizer).batch
    assert batch.lengths.max() <= length
    covered = batch.inside.sum()
    assert covered >= 40  # every token of the passage is in some window


def test_a_passage_of_nothing(start: Path) -> None:
    task = build_task(settings("qa", metrics=("f1",)))
    example = QuestionExample("1", sentence(1), "\u200b\u200b")
    features = task.features([example], open_tokenizer(start))
    outputs = [np.zeros((len(features.batch.ids), 2))]
    assert task.decode([example], features, outputs)[0]["text"] == ""


# ----------------------------------------------------------------------------- windows, vectors


def test_windows_of_a_pair_cut_only_what_does_not_fit(start: Path) -> None:
    tokenizer = open_tokenizer(start)

    def lengths(first: int, second: int) -> tuple[list[int], int, int]:
        task = build_task(
            settings("pair", metrics=("accuracy",), length=32, long="stride", stride=8)
        )
        example = TextExample("1", sentence(1, first), sentence(2, second), None)
        features = task.features([example], tokenizer)
        return features.batch.lengths.tolist(), features.shortened, features.divided

    assert lengths(20, 9) == ([32], 0, 0)  # fits whole
    assert lengths(24, 9) == ([32], 1, 0)  # the second needs 9 of 29, the first gets the rest
    windows, shortened, divided = lengths(20, 40)
    assert (max(windows), shortened, divided) == (32, 1, 1)
    windows, shortened, divided = lengths(10, 40)
    assert (max(windows), shortened, divided) == (32, 0, 1)


def test_vectors_of_a_model_with_few_positions(start: Path) -> None:
    model, tokenizer = Model.load(start), open_tokenizer(start)
    texts = [sentence(1, 100), sentence(2)]
    short, long = (embed(model, tokenizer, texts, length=n) for n in (64, 128))
    assert (short == long).all()
    with pytest.raises(SettingsError, match="--length 2: at least 3"):
        embed(model, tokenizer, texts, length=2)


# --------------------------------------------------------------------------------- pairs, apart


def test_texts_that_are_read_apart_know_nothing_of_each_other(start: Path) -> None:
    """Each text's vector is the one it has alone, and swapping a pair swaps the vectors."""
    tokenizer, model = open_tokenizer(start), Model.load(start)
    task = build_task(settings("regress", metrics=("pearson",), pooling="apart", length=16))
    texts = [sentence(number, 4 + number) for number in range(4)]
    examples = [TextExample(str(i), texts[i], texts[i + 1], float(i)) for i in range(3)]
    features = task.features(examples, tokenizer)
    assert features.batch.together == 2
    assert features.batch.labels[::2].tolist() == [0, 1, 2]
    assert np.isnan(features.batch.labels[1::2]).all()
    vectors = to_inputs(features.batch, torch.device("cpu")).encode(model).mean()
    alone = embed(model, tokenizer, texts)
    expected = alone[[0, 1, 1, 2, 2, 3]]
    np.testing.assert_allclose(vectors.detach().numpy(), expected, atol=1e-6)


def test_lone_texts_are_not_read_apart(start: Path, tmp_path: Path) -> None:
    for name, head in (("classify", "mean_classification"), ("pair", "apart_classification")):
        tune(start, tmp_path / name, name, update={"pooling": "apart"})
        assert list(Model.load(tmp_path / name / "model").heads) == [head]
    with pytest.raises(SettingsError, match="--long stride: not with pooling = apart"):
        tune(start, tmp_path / "out", "pair", update={"pooling": "apart"}, long="stride")


def test_a_long_pair_read_apart_is_cut_and_counted(start: Path) -> None:
    task = build_task(settings("pair", metrics=("accuracy",), pooling="apart", length=8))
    examples = [TextExample("1", sentence(1, 9), sentence(2, 9)), TextExample("2", "a", "b")]
    features = task.features(examples, open_tokenizer(start))
    assert features.batch.lengths.max() == 8
    assert features.shortened == 1

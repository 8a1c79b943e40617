"""Data that does not fit its task, labels that are rare, and published folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from litebert.base.errors import FormatError, SettingsError
from litebert.tasks.data import open_data, read_split
from litebert.tasks.registry import build_task
from litebert.tasks.source import DataSource
from litebert.tasks.task import TaskSettings
from tests.tasks.small import sentence, settings


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def split_of(settings: TaskSettings, path: Path, **more: Any) -> list[Any]:
    return read_split(build_task(settings), DataSource(data=path), **more)


def choices(path: Path, options: int, questions: int = 4) -> Path:
    letters = [f"option_{n}" for n in range(options)]
    rows = [
        ",".join([sentence(i, 3), *(sentence(9 * i + k, 2) for k in range(options)), "0"])
        for i in range(questions)
    ]
    return write(path, ",".join(["question", *letters, "answer"]), *rows)


def test_another_number_of_options(tmp_path: Path) -> None:
    four, three = choices(tmp_path / "four.csv", 4), choices(tmp_path / "three.csv", 3)
    with pytest.raises(
        FormatError, match=r"three.csv, line 2: 3 options; the model chooses among 4"
    ):
        open_data("choice", DataSource(train=four, dev=three))
    wanted = settings("choice", metrics=("accuracy",), options=4)
    for labelled in (True, False):
        with pytest.raises(FormatError, match=r"three.csv, line 2: 3 options"):
            split_of(wanted, three, labelled=labelled)


def test_a_label_that_only_dev_has_is_named_with_its_line(tmp_path: Path) -> None:
    train = write(tmp_path / "train.csv", "text,label", "a,x", "b,y", "c,x")
    dev = write(tmp_path / "dev.csv", "text,label", "d,x", "e,z")
    with pytest.raises(FormatError, match=r"dev.csv, line 3: label 'z' occurs among the dev"):
        open_data("classify", DataSource(train=train, dev=dev))


def test_a_label_that_occurs_once_is_not_held_out(tmp_path: Path) -> None:
    for rare in range(41):  # wherever it stands
        rows = [f"text {i},{'c' if i == rare else 'ab'[i % 2]}" for i in range(41)]
        mine = write(tmp_path / "t.csv", "text,label", *rows)
        found = open_data("classify", DataSource(train=mine))
        assert "c" in found.settings.labels
        assert all(example.label != "c" for example in found.dev["dev"])
    single = write(tmp_path / "s.csv", "text,label", "one,a", "two,b", "three,c")
    with pytest.raises(SettingsError, match=r"no label occurs in two different texts; .* --dev"):
        open_data("classify", DataSource(train=single))


def test_copies_of_a_text_are_not_held_out_from_it(tmp_path: Path) -> None:
    """Labels that were drawn: what is held out cannot be known by heart."""
    rows = [f"Text {i // 5},{'ab'[(i // 5) % 2]}" for i in range(100)]
    said: list[str] = []
    path = write(tmp_path / "t.csv", "text,label", *rows)
    found = open_data("classify", DataSource(train=path), said.append)
    held = {example.first for example in found.dev["dev"]}
    assert len(found.dev["dev"]) == 10
    assert held.isdisjoint(example.first for example in found.train)
    assert "80 are copies, and stay with theirs" in " ".join(said)
    same = write(tmp_path / "s.csv", "text,label", "one,a", "One,a")
    with pytest.raises(SettingsError, match="copies of a text are one"):
        open_data("classify", DataSource(train=same))
    one = write(tmp_path / "d.csv", "text,label", "text 0,a", "new,b")
    open_data("classify", DataSource(train=path, dev=one), said.append)
    assert "warning: 1 of 2 dev examples are also in train" in said[-1]


def test_copies_with_other_labels_stay_together(tmp_path: Path) -> None:
    """A text whose copies have a rare and a usual label goes to one side with all of them."""
    for rare in range(40):  # wherever it stands
        rows = [f"text {i % 20},{'c' if i == rare else 'ab'[i % 2]}" for i in range(40)]
        mine = write(tmp_path / "t.csv", "text,label", *rows)
        found = open_data("classify", DataSource(train=mine))
        held = {example.first for example in found.dev["dev"]}
        assert held
        assert held.isdisjoint(example.first for example in found.train)
    rare = write(tmp_path / "r.csv", "text,label", "one,a", *["two,b", "three,b"])
    (held_out,) = open_data("classify", DataSource(train=rare)).dev["dev"]
    assert held_out.label == "b"


def test_labels_are_as_frequent_in_what_is_held_out(tmp_path: Path) -> None:
    rows = [f"text {i},{'a' if i % 10 else 'b'}" for i in range(500)]
    found = open_data("classify", DataSource(train=write(tmp_path / "t.csv", "text,label", *rows)))
    assert sorted(example.label for example in found.dev["dev"]) == ["a"] * 45 + ["b"] * 5


def test_one_tag_alone_is_refused(tmp_path: Path) -> None:
    """As of a column that is not the tags'."""
    path = write(tmp_path / "t.conllu", "1 Ann PROPN _", "2 ran VERB _", "", "1 Bo PROPN _")
    with pytest.raises(FormatError, match=r"every word has the tag '_'.* --column words=1"):
        open_data("tag", DataSource(train=path))


def _tagged(tags: Sequence[str]) -> list[str]:
    return [json.dumps({"words": [f"w{n}"], "tags": [tag]}) for n, tag in enumerate(tags)]


def test_tags_that_are_not_of_entities(tmp_path: Path) -> None:
    folder = tmp_path / "ner"
    folder.mkdir()
    write(folder / "train.txt", "Ann B-PER", "ran O", "", "Bo PER")
    write(folder / "dev.txt", "Ann B-PER")
    with pytest.raises(FormatError, match=r"train.txt, line 4: 'PER' is not a tag of entities"):
        open_data("ner", DataSource(data=folder))
    write(folder / "train.txt", "Ann B-PER", "ran O")
    write(folder / "dev.txt", "Ann B-LOC")
    with pytest.raises(FormatError, match=r"dev.txt, line 1: label 'B-LOC' occurs among the dev"):
        open_data("ner", DataSource(data=folder))
    odd = write(tmp_path / "t.jsonl", *_tagged("NNVV"))
    assert open_data("tag", DataSource(train=odd)).settings.metrics == ("accuracy",)
    nearly = _tagged(["N-a", "V-a"] * 2)
    assert open_data("tag", DataSource(train=write(odd, *nearly))).settings.metrics == ("accuracy",)


def test_published_folders_are_found_for_measuring(tmp_path: Path) -> None:
    ner = settings("tag", metrics=("entity_f1",), labels=("O", "B-PER")).model_copy(
        update={"name": "ner"}
    )
    write(tmp_path / "dev.txt", "Ann B-PER")
    assert len(split_of(ner, tmp_path)) == 1
    (tmp_path / "dev.txt").rename(tmp_path / "dev.tsv")  # columns still, and no table
    assert len(split_of(ner, tmp_path)) == 1
    squad = settings("qa", metrics=("f1",)).model_copy(update={"name": "squad-1.1"})
    question = {"id": "q", "question": "who?", "answers": [{"text": "Ann", "answer_start": 0}]}
    content = {"version": "1.1", "data": [{"paragraphs": [{"context": "Ann", "qas": [question]}]}]}
    write(tmp_path / "dev-v1.1.json", json.dumps(content))
    assert len(split_of(squad, tmp_path)) == 1
    file = tmp_path / "dev-v1.1.json"
    assert len(open_data("qa", DataSource(train=file, dev=file)).train)
    mnli = settings("pair", metrics=("accuracy",), labels=("entailment", "neutral"))
    ax = tmp_path / "AX"
    ax.mkdir()
    write(ax / "diagnostic.tsv", "index\tsentence1\tsentence2", "0\tIt rained.\tIt was wet.")
    found = split_of(mnli.model_copy(update={"name": "mnli"}), tmp_path, split="ax", labelled=False)
    assert [example.first for example in found] == ["It rained."]


def test_repair_is_for_squad_files(tmp_path: Path) -> None:
    table = write(tmp_path / "mine.csv", "question,passage,answer", "who?,Ann ran,Ann")
    with pytest.raises(SettingsError, match=r"--repair: .*mine.csv is not a SQuAD file"):
        open_data("qa", DataSource(train=table, repair=True))

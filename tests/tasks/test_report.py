"""The report on examples: each thing that it looks for, planted once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

import litebert
from litebert.base.errors import LitebertError
from litebert.tasks.report import DataReport, show_data
from tests.corpus.stores import write_wordpiece
from tests.test_cli import run


def inspect(path: Path, task: str, **options: object) -> DataReport:
    report = litebert.inspect(path, task=task, **options)  # type: ignore[arg-type]
    assert isinstance(report, DataReport)
    return report


def save(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n")
    return path


def test_all_that_can_be_wrong_with_texts(tmp_path: Path) -> None:
    train = save(
        tmp_path / "train.csv", "text,label", "w1q w2q,a", "W1Q  w2q,b", "w3q,a", "w3q,a", ",a",
        "w4q&nbsp;x,a", f"{'w5q ' * 30},a",
    )  # fmt: skip
    dev = save(tmp_path / "dev.csv", "text,label", "w3q ,a", "unheardof,c")
    tokenizer = write_wordpiece(tmp_path / "tokenizer")
    report = inspect(train, "classify", dev=dev, tokenizer=tokenizer, max_length=20)
    part = report.parts["train"]
    assert part.examples == 6
    assert part.refused == {"'text' is empty": 1}
    assert part.answers == {"a": 5, "b": 1}
    assert part.repeated == 2
    assert part.conflicts == ["train.csv, line 3: as train.csv, line 2, but a and b"]
    assert (part.marked, part.markup) == (1, "`&nbsp;`")
    assert (part.too_long, part.length_unit) == (1, "tokens")
    assert part.unknown_fraction is not None
    assert part.unknown_fraction > 0
    assert (report.shared, report.shared_at) == (1, ["dev.csv, line 2"])
    assert report.only_in_dev == ["c"]
    assert report.parts["dev"].unknown == ["unheardof"]
    for word in ("cannot be read", "another answer", "fewer than 8", "also in train", "markup"):
        assert any(word in warning for warning in report.warnings), word


def test_every_kind(tmp_path: Path) -> None:
    pair = save(tmp_path / "a.tsv", "a\tb\t4.4\na\tb\t1")
    assert inspect(pair, "regress", columns=["text_a=0", "text_b=1", "label=2"]).parts[
        "train"
    ].answers == {"4": 1, "1": 1}
    tags = save(tmp_path / "a.conll", "a O\nb B-x\n\na O")
    assert inspect(tags, "tag").parts["train"].answers == {"O": 2, "B-x": 1}
    row = {"question": "What?", "context": "It's oak.", "answers": []}
    asked = save(tmp_path / "a.jsonl", json.dumps(row | {"answers": ["oak"]}), json.dumps(row))
    found = inspect(asked, "qa").parts["train"]
    assert found.answers == {"an answer": 1, "no answer": 1}
    assert len(found.conflicts) == 1
    choice = {"question": "Who?", "options": ["I", "you"], "answer": "B"}
    chosen = save(tmp_path / "b.jsonl", json.dumps(choice))
    assert inspect(chosen, "choice").parts["train"].answers == {"B": 1}


def test_what_is_odd_about_labels(tmp_path: Path) -> None:
    rows = [f"text {n},{['Good', 'good ', 'bad'][n % 3]}" for n in range(30)]
    report = inspect(save(tmp_path / "a.csv", "text,label", *rows), "classify")
    assert report.parts["train"].answers == {"Good": 10, "good": 10, "bad": 10}
    assert report.warnings == [
        "train: 'Good' and 'good' are different labels; write them alike if they are one"
    ]
    rows = [f"text {n},good" for n in range(30)]
    report = inspect(save(tmp_path / "b.csv", "text,label", *rows), "classify")
    assert report.warnings == ["train: 'good' is the only label, so there is nothing to learn"]


def test_fractions_are_of_all_labels(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", "text,label", *(f"text {n},l{n}" for n in range(400)))
    report = inspect(path, "classify")
    assert report.parts["train"].answered == 400
    console = Console(width=200)
    with console.capture() as shown:
        console.print(show_data(report))
    assert "0.2%" in shown.get()
    assert "and 380 more" in shown.get()


def test_a_row_that_only_others_explain_is_no_bad_one(tmp_path: Path) -> None:
    """Answers from 1 to 2: only the whole file says that they do not begin with 0."""
    rows = [
        {"question": f"Who {n}?", "options": ["I", "you"], "answer": n % 2 + 1} for n in range(9)
    ]
    path = save(tmp_path / "a.jsonl", *map(json.dumps, rows))
    part = inspect(path, "choice").parts["train"]
    assert (part.examples, part.refused) == (9, {})


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path / "train.csv", "text,label", *(f"t{n},{'ab'[n % 2]}" for n in range(20)))
    assert run(monkeypatch, "inspect", tmp_path, "--task", "classify") == 0
    assert "nothing conspicuous" in capsys.readouterr().out
    assert run(monkeypatch, "inspect", path, "--task", "classify", "--json") == 0
    assert json.loads(capsys.readouterr().out)["parts"]["train"]["examples"] == 20
    assert run(monkeypatch, "inspect", path) == 2
    assert "say what they are for, as in --task classify" in capsys.readouterr().err
    with pytest.raises(LitebertError, match="no task 'clasify'"):
        litebert.inspect(path, task="clasify")

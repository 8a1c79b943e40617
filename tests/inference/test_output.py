"""Predictions in every format, echoing what was asked; texts given on the command line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import litebert
from litebert.base.errors import SettingsError
from litebert.tasks.readers.conll import read_conll
from tests.inference.test_predict import start, tune  # noqa: F401
from tests.tasks.small import sentence
from tests.test_cli import run


@pytest.fixture(scope="module")
def tuned(start: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    folder = tmp_path_factory.mktemp("tuned")
    for name in ("classify", "tag"):
        tune(start, folder / name, name)
    return folder


def test_every_format_says_the_same(tuned: Path, tmp_path: Path) -> None:
    texts = [sentence(1), f'{sentence(2)}, "so"\tand\nso']
    made: dict[str, Any] = {}
    for suffix in ("jsonl", "json", "csv", "tsv"):
        out = tmp_path / f"p.{suffix}"
        found = litebert.predict(tuned / "classify", texts, out=out)
        made[suffix] = out.read_text()
    lines = [json.loads(line) for line in made["jsonl"].splitlines()]
    assert lines == json.loads(made["json"]) == [one.to_json() for one in found]
    assert [line["text"] for line in lines] == texts
    assert list(lines[0]) == ["id", "text", "label", "probabilities"]
    rows = list(csv.DictReader(io.StringIO(made["csv"])))
    assert [row["text"] for row in rows] == texts
    assert [row["label"] for row in rows] == [line["label"] for line in lines]
    assert float(rows[0]["probabilities.no"]) == lines[0]["probabilities"]["no"]
    tabs = [line.split("\t") for line in made["tsv"].splitlines()]
    assert tabs[0] == ["id", "text", "label", "probabilities.no", "probabilities.yes"]
    assert tabs[2][1] == " ".join(texts[1].split())


@pytest.mark.parametrize("suffix", ["conll", "bio"])
def test_tags_are_written_in_columns(tuned: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"p.{suffix}"
    found = litebert.predict(tuned / "tag", [sentence(1), sentence(2).split()], out=out)
    assert [(s.words, s.tags) for s in read_conll(out)] == [
        (tuple(sentence(n).split()), one.tags)  # type: ignore[attr-defined]
        for n, one in zip((1, 2), found, strict=True)
    ]


def test_names_that_are_not_written(tuned: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="columns of words are for tags; for classify write"):
        litebert.predict(tuned / "classify", ["a"], out=tmp_path / "p.conll")
    with pytest.raises(SettingsError, match=r"p\.xlsx: predictions are written as \.jsonl"):
        litebert.predict(tuned / "classify", ["a"], out=tmp_path / "p.xlsx")
    with pytest.raises(SettingsError, match=r"give --input FILE .* or texts with --text"):
        litebert.predict(tuned / "classify")
    assert list(tmp_path.iterdir()) == []


def test_texts_of_the_command_line(
    tuned: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ["--text", "w1q w2q", "--text", "w3q"]
    assert run(monkeypatch, "predict", tuned / "classify", *told) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["text"] for line in lines] == ["w1q w2q", "w3q"]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert run(monkeypatch, "predict", tuned / "classify", *told) == 0
    shown = capsys.readouterr().out
    assert "probability" in shown
    assert "w1q w2q" in shown


def test_progress_reaches_its_end(tuned: Path) -> None:
    told: list[tuple[int, int]] = []
    litebert.predict(
        tuned / "classify", [sentence(n) for n in range(3)],
        on_progress=lambda done, size: told.append((done, size)),
    )  # fmt: skip
    assert told[-1] == (3, 3)

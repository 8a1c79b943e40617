"""Curves: a picture comes out, and what cannot be drawn is said in a sentence."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from litebert.base.errors import FileError, FormatError, MissingExtraError, SettingsError
from litebert.train.plot import plot, smooth

PNG = b"\x89PNG\r\n\x1a\n"


def record(kind: str, step: int, objectives: list[str]) -> dict[str, Any]:
    line = {
        "kind": kind, "step": step, "tokens": 100 * step,
        "loss": dict.fromkeys(objectives, 5.0 / step),
        "accuracy": dict.fromkeys(objectives, 0.5),
        "time": {"seconds": 2.0 * step},
    }  # fmt: skip
    if kind == "training":
        line |= {"learning_rate": 1e-3, "gradient_norm": None}
        line["time"] |= {"progress": 0.5, "tokens_per_second": 8.0, "data_fraction": 0.0}
    return line


def make_run(folder: Path, objectives: list[str], unigram_loss: float | None = None) -> Path:
    folder.mkdir(parents=True)
    records = [record("training", step, objectives) for step in range(1, 40)]
    records.insert(20, record("evaluation", 20, objectives))
    lines = [json.dumps(each) for each in records]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + '\n{"kind": "tra')
    if unigram_loss is not None:
        (folder / "run.json").write_text(json.dumps({"unigram_loss": unigram_loss}))
    return folder


@pytest.mark.parametrize("x", ["tokens", "steps", "minutes"])
def test_runs_of_different_objectives_in_one_picture(tmp_path: Path, x: str) -> None:
    pytest.importorskip("matplotlib")
    runs = [
        make_run(tmp_path / "albert", ["masked_lm", "sentence_order"], unigram_loss=6.25),
        make_run(tmp_path / "bert", ["masked_lm", "next_sentence"]),
        make_run(tmp_path / "more" / "bert", ["masked_lm"], unigram_loss=6.5),
    ]
    plot(runs, out=tmp_path / "curves.png", x=x)
    assert (tmp_path / "curves.png").read_bytes().startswith(PNG)


def test_a_run_without_held_out_text_or_masked_lm(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run = tmp_path / "run"
    run.mkdir()
    evaluation = {"kind": "evaluation", "step": 1, "tokens": 10, "time": {"seconds": 1.0}}
    training = record("training", 1, ["replaced_token"])
    (run / "metrics.jsonl").write_text(json.dumps(training) + "\n" + json.dumps(evaluation) + "\n")
    plot([run], out=tmp_path / "curves.PNG")
    assert (tmp_path / "curves.PNG").read_bytes().startswith(PNG)


def test_a_run_of_any_name(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot([make_run(tmp_path / r"_$\frac$", ["masked_lm"])], out=tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(PNG)


def test_smoothing_keeps_a_level_and_few_points() -> None:
    assert smooth([]) == []
    assert smooth([3.0, 1.0, 2.0]) == [3.0, 1.0, 2.0]
    assert smooth([2.0] * 500) == pytest.approx([2.0] * 500)
    noisy = [float(place % 2) for place in range(1000)]
    assert smooth(noisy)[-1] == pytest.approx(0.5, abs=0.05)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match=r"metrics.jsonl: no such file; name the --out folder"):
        plot([tmp_path / "folder"], out=tmp_path / "curves.png")
    with pytest.raises(FileError, match="no such file"):
        plot([tmp_path / "nothing"], out=tmp_path / "curves.png")
    assert not (tmp_path / "curves.png").exists()


@pytest.mark.parametrize("content", [b"", b'{"kind": "tr'])
def test_a_run_that_has_no_metrics_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(content)
    with pytest.raises(FormatError, match="no metrics yet"):
        plot([tmp_path], out=tmp_path / "curves.png")


@pytest.mark.parametrize(
    "content",
    [
        b"\n", b"3\n", b"null\n", b"[]\n", b"{}\n", b'{"kind": "train"}\n', b'{"kind": []}\n',
        b'{"kind": "training"}\n', b'{"kind": "evaluation", "loss": 3}\n', b'{"kind": "tr\n',
    ],
)  # fmt: skip
def test_a_damaged_line_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(content)
    with pytest.raises(FormatError, match=r"line 1: .*no line of metrics"):
        plot([tmp_path], out=tmp_path / "curves.png")


def test_metrics_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match="not readable as metrics"):
        plot([tmp_path], out=tmp_path / "curves.png")


def test_where_and_how_to_draw_is_checked_first(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"ends in \.png"):
        plot([tmp_path], out=tmp_path / "curves.pdf")
    with pytest.raises(SettingsError, match="did you mean 'tokens'"):
        plot([tmp_path], out=tmp_path / "curves.png", x="token")
    with pytest.raises(SettingsError, match="at least one"):
        plot([], out=tmp_path / "curves.png")
    with pytest.raises(FileError, match="folder that exists"):
        plot([tmp_path], out=tmp_path / "nowhere" / "curves.png")


def test_matplotlib_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    run = make_run(tmp_path / "run", ["masked_lm"])
    with pytest.raises(MissingExtraError, match=r"litebert\[plot\]"):
        plot([run], out=tmp_path / "curves.png")

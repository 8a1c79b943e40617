"""Pretraining without a preset: chosen once, by measuring, and frozen for the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from litebert.base.errors import FileError, SettingsError
from litebert.base.files import read_json
from litebert.corpus.store import Store
from litebert.planning.report import Speed
from litebert.train import auto
from litebert.train.pretrain import pretrain
from litebert.train.run_folder import describe, open_run, save_run
from tests.train.runs import Notes

FAST = ["evaluation.sequences=4", "evaluation.every=1.0", "initialization=truncated_normal"]


def test_a_budget_of_tokens_needs_no_measuring(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto, "measure_speed", None)
    notes = Notes()
    for budget in ("5ktok", None):  # the second time it is finished
        made = pretrain("auto", corpus, tmp_path / "run", budget=budget, overrides=FAST,
                        callbacks=[notes])  # fmt: skip
        assert made.finished
    settings = read_json(tmp_path / "run" / "run.json")["settings"]
    assert (settings["model"]["hidden_size"], settings["data"]["max_length"]) == (128, 64)
    assert any('extends = "albert-tiny"' in message for message in notes.said)


def test_what_was_measured_is_frozen(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    speeds: list[Any] = []

    def measure(preset: Any, *_: Any) -> Speed:
        speeds.append(preset.model.hidden_size)
        return Speed(0.1, 1e7 if preset.model.hidden_size == 128 else 1.0, 3)

    monkeypatch.setattr(auto, "measure_speed", measure)

    store, out = Store([corpus]), tmp_path / "run"
    chosen = auto.auto_preset("20m", store, out, {}, lambda _: None)
    assert (chosen.model.hidden_size, speeds) == (128, [128, 256])
    out.mkdir()
    save_run(out, open_run(out, describe(chosen, store.checksum, None)))
    for budget in ("20m", None):
        assert auto.auto_preset(budget, store, out, {}, lambda _: None) == chosen
    assert speeds == [128, 256]  # a resumed run measures nothing
    other = auto.auto_preset("30m", store, out, {}, lambda _: None)
    with pytest.raises(FileError, match="other settings"):
        open_run(out, describe(other, store.checksum, None))


def test_what_cannot_be_chosen_is_refused(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="name a preset"):
        pretrain("auto", corpus, tmp_path / "run")
    with pytest.raises(SettingsError, match="a budget of steps"):
        pretrain("auto", corpus, tmp_path / "run", budget="5steps")

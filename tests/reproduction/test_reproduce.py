"""A tiny table from a command to its report: trained, measured, judged, resumed."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import litebert
from litebert.base.errors import LitebertError
from litebert.reproduction import grid, on_ray, reproduce, scale
from litebert.reproduction.reproduce import GridView
from litebert.reproduction.row import GridRow
from litebert.train.callbacks import Callback
from tests.train.runs import write_store

BUDGET = "6ktok"
TABLE = """
title = "Order or nothing"
source = "our own"
claim = "Sentence order is learned where it is asked."
compare = "tokens"
preset = "albert-base"
[columns.SOP]
title = "sentence order"
measures = ["sentence_order", "sentence_order_probe"]
[columns.MLM]
title = "masked LM"
measures = ["masked_lm_accuracy"]
[rows.none]
title = "None"
set = { objectives = ["masked_lm"], "data.input_format" = "plain-pairs" }
published = { SOP = 53.3, MLM = 54.9 }
[rows.sop]
title = "SOP"
published = { SOP = 86.5, MLM = 54.0 }
[[same]]
column = "MLM"
first = "sop"
second = "none"
"""


class Counting(GridView):
    """Which runs were trained, and what was said."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.runs: list[str] = []
        self.said: list[str] = []
        self.stop_at = stop_at

    def say(self, text: str) -> None:
        self.said.append(text)

    def run(self, name: str) -> Callback:
        self.runs.append(name)
        return Interrupting() if len(self.runs) == self.stop_at else Callback()


class Interrupting(Callback):
    """Presses Ctrl-C at the tenth step."""

    def on_step(self, step: int, progress: float) -> None:
        if step == 10:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = replace(
        scale.SCALES["minutes"], width=1 / 24, depth=1 / 6, head_size=16, max_length=32,
        batch_size=4, sequences=32, learning_rates=(1e-3, 2e-3), sweep=0.2,
    )  # fmt: skip
    for module in (scale, grid, reproduce):
        monkeypatch.setitem(module.SCALES, "minutes", tiny)


def run(table: Path, corpus: Path, out: Path, **options: Any) -> tuple:
    view = options.pop("view", None) or Counting()
    found = litebert.reproduce(
        [str(table)], corpus=corpus, out=out, budget=BUDGET, seeds=2, callbacks=view, **options
    )  # type: ignore[arg-type]
    return found, view


def test_a_table_runs_to_its_report_resumes_and_gives_the_same_numbers(
    corpus: Path, tmp_path: Path
) -> None:
    table = tmp_path / "order.toml"
    table.write_text(TABLE)
    out = tmp_path / "out"
    stopped, view = run(table, corpus, out, view=Counting(stop_at=6))  # both rows have a run
    assert not stopped.finished
    assert len(view.runs) == 6
    found, view = run(table, corpus, out)  # the interrupted run, and what is left
    assert found.finished
    assert len(view.runs) == 3
    assert json.loads((out / "results.json").read_text())[0]["table"] == "order"
    (finding,) = found.findings
    assert [pair.verdict for pair in finding.pairs]
    assert all(pair.ours is not None for pair in finding.pairs)
    for row in finding.rows.values():
        assert row.seeds == [1, 2]
        assert {"masked_lm_accuracy", "sentence_order_probe"} <= set(row.untrained)
    assert "sentence_order" in finding.rows["sop"].values
    assert "sentence_order" not in finding.rows["none"].values

    page, text = (out / "report.html").read_text(), (out / "report.md").read_text()
    for said in ("agrees", "undecided", "SOP: SOP > None", "sha256", "FLOPs", "untrained"):
        assert said in page.replace("&gt;", ">")
        assert said in text
    assert "<svg" in page

    command = next(line for line in text.splitlines() if "order-sop-1" in line)
    assert command.startswith(f"litebert pretrain albert-base --corpus {corpus} --out order-sop-1")
    changes = re.findall(r"--set '([^']*)'", command)
    by_hand = litebert.load_preset("albert-base", changes)
    seed = json.loads((out / "rows" / str(finding.rows["sop"].key) / "seed-1/run.json").read_text())
    for part in ("data", "optimizer", "schedule", "masking"):
        assert by_hand.model_dump(mode="json")[part] == seed["settings"][part]

    again, view = run(table, corpus, out)
    assert view.runs == []
    assert again.findings[0].as_dict() == finding.as_dict()

    shutil.rmtree(next(out.glob("rows/*/seed-2")))  # one run is lost: it alone is trained again
    repeated, view = run(table, corpus, out)
    assert len(view.runs) == 1
    assert without_speed(repeated) == without_speed(found)

    other = write_store(tmp_path / "other", seed=6)
    with pytest.raises(LitebertError, match="began with another corpus"):
        run(table, other, out)


def without_speed(found: litebert.reproduction.reproduce.Reproduction) -> dict:
    content = found.findings[0].as_dict()
    for row in content["rows"].values():
        for part in ("values", "intervals"):
            row[part].pop("speed", None)
    return content


def test_a_failed_row_is_told_and_the_others_go_on(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from litebert.reproduction import row

    table = tmp_path / "order.toml"
    table.write_text(TABLE)
    train = row.pretrain

    def failing(preset: litebert.Preset, *arguments: object, **options: object) -> object:
        if "sentence_order" in preset.objectives:
            raise LitebertError("the disk is full")
        return train(preset, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(row, "pretrain", failing)
    found, view = run(table, corpus, tmp_path / "out", data=tmp_path)
    assert found.failed == 1
    assert found.findings[0].rows["sop"].failed == "the disk is full"
    assert len(found.findings[0].rows["none"].seeds) == 2
    assert "the disk is full" in (tmp_path / "out" / "report.md").read_text()
    assert any("SST-2, 1,000 labels is not measured" in text for text in view.said)


def test_parts_of_a_grid_are_its_rows(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked: list[str] = []
    monkeypatch.setattr(reproduce, "run_row", lambda row, *_: worked.append(row.key))
    table = tmp_path / "order.toml"
    table.write_text(TABLE)
    for part in ("1/2", "2/2"):
        found, _ = run(table, corpus, tmp_path / "out", part=part)
    keys = [row.key for row in found.findings[0].rows.values()]
    assert worked == [keys[0]] * 2 + [keys[1]] * 2  # once for every seed


class OneNode:
    """A cluster of this process; what it is given crosses as it would to a node."""

    gpus = 0

    def completed(self, work: Callable, arguments: list[tuple], *, gpus: int) -> Iterator[tuple]:
        assert gpus == 0
        for number, one in reversed(list(enumerate(arguments))):
            yield number, work(*pickle.loads(pickle.dumps(one)))


def test_a_cluster_is_given_the_rows_and_tells_which_failed(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked: list[tuple[str, int]] = []

    def run_row(
        row: GridRow, rows: object, store: Path, folder: Path, seeds: int, _: object
    ) -> None:
        asks = "sentence_order" in str(row.settings["objectives"])
        worked.append(("SOP" if asks else "None", seeds))
        if asks:
            raise LitebertError("the disk is full")

    monkeypatch.setattr(reproduce, "run_row", run_row)
    monkeypatch.setattr(on_ray, "require_cluster", lambda on: None)
    monkeypatch.setattr(on_ray, "ray_cluster", lambda on: nullcontext(OneNode()))
    table = tmp_path / "order.toml"
    table.write_text(TABLE)
    found, view = run(table, corpus, tmp_path / "out", on="ray")
    assert found.failed == 1
    # Each once by the cluster; what did not fail is then found finished, seed by seed.
    assert worked == [("SOP", 2), ("None", 2), ("None", 1), ("None", 2)]
    assert any(text.endswith(": failed: the disk is full") for text in view.said)
    assert any(text.endswith(": done") for text in view.said)
    with pytest.raises(LitebertError, match="not s3://bucket/out"):
        run(table, corpus, Path("s3://bucket/out"), on="ray")

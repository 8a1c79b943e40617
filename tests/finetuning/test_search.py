"""`--search`: budgets, candidates, halving; stopped and resumed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from litebert.base.errors import SettingsError
from litebert.finetuning.finetune import finetune_examples
from litebert.finetuning.recipe import Recipe
from litebert.finetuning.search import candidates, parse_search, search_data
from litebert.model.model import Model
from litebert.tasks.data import TaskData
from litebert.train.callbacks import Callback
from tests.tasks.small import TASKS, recipe, write_start


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("start"))


def test_budgets() -> None:
    assert parse_search("12").in_runs
    assert parse_search("5m").amount == 300
    for bad in ("0", "", "12steps", "-3", "many"):
        with pytest.raises(SettingsError, match="--search"):
            parse_search(bad)


def test_the_recipe_itself_is_tried_first() -> None:
    own = Recipe(learning_rate=1e-4, pooling="first")
    tried = candidates("text", own)
    assert tried[0] == {"learning_rate": 1e-4, "pooling": "first"}
    assert len(tried) == 6
    assert len({tuple(sorted(one.items())) for one in candidates("pair", own)}) == 9
    assert candidates("words", own)[0] == {"learning_rate": 1e-4}


def test_a_small_dev_set_is_enlarged_for_the_search() -> None:
    settings, examples, _ = TASKS["classify"]
    found = search_data(TaskData(settings, examples, {"dev": examples[:2]}))
    assert len(found.dev["search"]) == round((len(examples) + 2) / 3)
    large = TaskData(settings, examples, {"dev": examples * 100, "other": examples})
    assert search_data(large).dev == {"dev": examples * 100}


class Stop(Callback):
    """Asks to stop at a step, and remembers what is said."""

    def __init__(self, at: int | None = None) -> None:
        self.at, self.steps, self.said = at, 0, []

    def on_step(self, step: int, progress: float) -> None:
        self.steps += 1
        if self.steps == self.at:
            os.kill(os.getpid(), signal.SIGTERM)

    def on_message(self, message: str) -> None:
        self.said.append(message)


def test_halving_within_the_budget_and_resumed(start: Path, tmp_path: Path) -> None:
    settings, examples, _ = TASKS["classify"]
    data = TaskData(settings, examples, {"dev": examples})
    how = recipe("classify", 8)

    def tune(name: str, budget: str, notes: Stop) -> Path:
        finetune_examples(
            Model.load(start), start, data, how, tmp_path / name, search=budget, callbacks=notes
        )
        return tmp_path / name

    whole = Stop()
    out = tune("whole", "6", whole)
    written = json.loads((out / "search.json").read_text())
    steps = [trial["steps"] for trial in written["trials"]]
    assert steps == [2] * 6 + [4] * 3 + [8] * 2 + [8]  # 1.5 + 1.5 + 2 + 1 whole runs
    assert written["spent"] == pytest.approx(6)
    assert (out / "report.json").is_file()
    chosen = [line for line in whole.said if "search: chosen" in line]
    assert len(chosen) == 1

    first = Stop(at=15)
    tune("again", "6", first)
    assert not (tmp_path / "again" / "report.json").exists()
    tune("again", "6", Stop())
    again = json.loads((tmp_path / "again" / "search.json").read_text())
    assert again == written
    models = [tmp_path / name / "model" / "model.safetensors" for name in ("whole", "again")]
    assert models[0].read_bytes() == models[1].read_bytes()

    tune("little", "1", Stop())
    little = json.loads((tmp_path / "little" / "search.json").read_text())
    assert [trial["steps"] for trial in little["trials"]] == [2] * 4

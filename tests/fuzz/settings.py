"""Settings as doors: presets, recipes, options on the command line and tables of papers."""

from __future__ import annotations

import json
import random
from pathlib import Path

import litebert
from litebert.base.files import json_text
from litebert.finetuning.recipe import FOLDER as RECIPES
from litebert.finetuning.recipe import load_recipe
from litebert.inference.minimal_pairs import read_minimal_pairs
from litebert.reproduction.findings import find_out
from litebert.reproduction.scale import SCALES, scaled_preset
from litebert.reproduction.table import load_tables
from tests.fuzz.mutate import VALUES


def build_presets(folder: Path) -> None:
    shipped = Path(litebert.__file__).parent / "configs"
    for name in ("albert-tiny", "electra-small", "bert-base"):
        (folder / f"{name}.toml").write_bytes((shipped / f"{name}.toml").read_bytes())
    (folder / "own.toml").write_text("extends = 'albert-tiny.toml'\n[model]\nhidden_size = 64\n")


def use_presets(folder: Path, out: Path) -> None:
    for path in sorted(folder.glob("*.toml")):
        litebert.load_preset(str(path))


def plan_command(folder: Path, out: Path) -> list[str]:
    return ["plan", *map(str, sorted(folder.glob("*.toml")))]


def build_recipes(folder: Path) -> None:
    for path in RECIPES.glob("*.toml"):
        (folder / path.name).write_bytes(path.read_bytes())


def use_recipes(folder: Path, out: Path) -> None:
    for path in sorted(folder.glob("*.toml")):
        for task in ("sst-2", "classify"):
            load_recipe(str(path), task, without_dropout=True)


def build_options(folder: Path) -> None:
    (folder / "options.json").write_text('{"set": ["model.hidden_size=64"]}')


OPTIONS = (
    "model.hidden_size", "model.num_hidden_layers", "model.sharing", "model", "data.max_length",
    "budget", "objectives", "stages", "optimizer.betas", "masking.probability", "seed", "nothing",
    "model.num_hidden_groups", "model.inner_group_num", "data", "generator.hidden_size", "",
)  # fmt: skip
SOME = (*VALUES, *(8, 16, 24, 64, "none", "all", "1steps", "[]", "[0.9, 0.99]") * 4)


def draw_options(folder: Path, chance: random.Random) -> None:
    """Options are no file: they are drawn here and handed over by one."""
    drawn = [
        f"{chance.choice(OPTIONS)}{chance.choice(('=', '=', '==', '.x='))}{chance.choice(SOME)}"
        for _ in range(chance.choice((0, 1, 1, 2)))
    ]
    more = {
        "budget": chance.choice(
            ("1steps", "5tok", "1h", "", "-1steps", "9" * 400 + "steps", "1e9tok")
        ),
        "batch_size": chance.choice((1, 8, 64, 0, -1, 10**9, 10**30)),
        "max_length": chance.choice((8, 16, 64, 0, -4, 513, 10**30)),
    }
    (folder / "options.json").write_text(json_text({"set": drawn, **more}), errors="replace")


def use_options(folder: Path, out: Path) -> None:
    options = json.loads((folder / "options.json").read_text())
    litebert.plan("albert-tiny", overrides=options.pop("set"), **options)


def build_paper_tables(folder: Path) -> None:
    """A table of a paper, and minimal pairs."""
    shipped = Path(litebert.__file__).parent / "reproduction" / "tables"
    (folder / "t5.toml").write_bytes((shipped / "t5.toml").read_bytes())
    row = {"sentence_good": "A cat sits.", "sentence_bad": "A cat sit.", "UID": "agreement"}
    (folder / "pairs.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row) + "\n")


def use_paper_tables(folder: Path, out: Path) -> None:
    read_minimal_pairs(folder)
    for table in load_tables([str(folder / "t5.toml")]):
        find_out(table, None, None)
        for row in table.rows:
            scaled_preset(table, row, SCALES["minutes"])

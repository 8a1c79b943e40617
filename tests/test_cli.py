"""The command line when all is well: help, presets, plans, models in and out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import litebert
from litebert.cli import main
from tests.parity.families import build, config


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> object:
    """Run the command in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["litebert", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ending:
        main()
    return ending.value.code


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command that must succeed in silence on stderr; what it prints."""

    def call(*arguments: object) -> str:
        code = run(monkeypatch, *arguments)
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return out

    return call


HELP = """
import sys
from litebert.cli import main
sys.argv = ["litebert", *sys.argv[1:]]
try:
    main()
finally:
    print("\\n".join(sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["plan", "--help"], ["prepare", "--help"]], ids=" ".join
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELP, *arguments], capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    assert "litebert.cli" in loaded
    heavy = {"torch", "numpy", "transformers", "safetensors", "litebert.base.settings"}
    names = ("model", "planning", "convert", "demos", "text", "reading", "corpus", "objectives")
    stations = {f"litebert.{name}" for name in names}
    assert not loaded & (heavy | stations)
    assert "Usage: litebert" in done.stdout


def test_help_lists_the_commands(say: Any) -> None:
    text = say("--help")
    for command in ("demo", "prepare", "inspect", "tokenizer", "plan", "import", "export"):
        assert f" {command} " in text


def test_import_litebert_loads_nothing_heavy() -> None:
    code = "import litebert, sys; print(litebert.__version__, *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(litebert.__version__ + " ")
    assert {"torch", "pydantic", "litebert.model"}.isdisjoint(done.stdout.split())


def test_presets_lists_all_with_their_titles(say: Any) -> None:
    lines = [line for line in say("presets").splitlines() if "│" in line]
    rows = [tuple(cell.strip() for cell in line.split("│")[1:3]) for line in lines]
    assert rows == list(litebert.presets().items())
    assert ("albert-base", litebert.load_preset("albert-base").title) in rows


@pytest.mark.parametrize("name", ["albert-base", "bert-base", "spanbert-base", "electra-small"])
def test_the_parts_of_a_plan_add_up(name: str, say: Any) -> None:
    (plan,) = json.loads(say("plan", name, "--json"))
    counts = plan["parameters"]
    total, whole = counts.pop("total"), counts.pop("with_heads")
    kept = {part: n for part, n in counts.items() if not part.startswith("generator.")}
    assert plan["preset"] == name
    assert (len(kept) < len(counts)) == name.startswith("electra")
    assert {f"head.{head}" for head in litebert.load_preset(name).heads} <= set(kept)
    assert sum(kept.values()) == whole
    assert sum(n for part, n in kept.items() if not part.startswith("head.")) == total


def test_several_plans_are_a_list_in_the_order_asked_for(say: Any) -> None:
    names = ["bert-base", "albert-base", "albert-tiny"]
    plans = json.loads(say("plan", *names, "--json", "--batch-size", 2, "--max-length", 16))
    assert [plan["preset"] for plan in plans] == names
    assert [(plan["batch_size"], plan["max_length"]) for plan in plans] == [(2, 16)] * 3
    assert [plan["parameters"]["total"] for plan in plans[:2]] == [109_482_240, 11_683_584]


def test_the_table_shows_the_same_numbers(say: Any) -> None:
    text = say("plan", "albert-base", "bert-base")
    (row,) = [line for line in text.splitlines() if "encoder + pooler" in line]
    assert [cell.strip() for cell in row.split("│")[2:4]] == ["11,683,584", "109,482,240"]


def test_set_reaches_the_plan_and_the_last_one_wins(say: Any) -> None:
    sets = ["--set", "model.embedding_size=256", "--set", "model.embedding_size=64"]
    (plan,) = json.loads(say("plan", "albert-base", *sets, "--json"))
    assert plan["parameters"]["total"] == 9_681_408


def test_a_budget_is_told_in_every_unit_known(say: Any) -> None:
    arguments = ("plan", "albert-tiny", "--batch-size", 4, "--max-length", 8, "--json", "--budget")
    (by_steps,) = json.loads(say(*arguments, "1ksteps"))
    (by_tokens,) = json.loads(say(*arguments, "32ktok"))
    assert by_steps["budget"] == by_tokens["budget"]
    assert by_steps["budget"] == {
        "tokens": 32_000,
        "steps": 1_000,
        "flops": 32_000 * by_steps["training_flops"],
        "seconds": None,
        "passes": None,
    }


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models for pretraining that transformers saved."""
    folder = tmp_path_factory.mktemp("foreign")
    for family in ("albert", "bert"):
        model = build(f"{family.capitalize()}ForPreTraining", config(family, hidden_act="gelu_new"))
        model.save_pretrained(folder / family)
    return folder


@pytest.mark.parametrize("family", ["albert", "bert"])
def test_a_model_goes_in_and_out_through_every_format(
    family: str, foreign: Path, say: Any, tmp_path: Path
) -> None:
    """Hugging Face -> ours -> TensorFlow -> ours -> Hugging Face."""
    expected = litebert.load(foreign / family)
    count = sum(tensor.numel() for tensor in expected.parameters())
    out = say("import", foreign / family, tmp_path / "ours")
    heads = "masked_lm, sentence_pair"
    assert out == f"{tmp_path / 'ours'}: {family}, {count:,} parameters, heads: {heads}\n"
    say("export", tmp_path / "ours", tmp_path / "google", "--format", "tensorflow")
    names = {path.name for path in (tmp_path / "google").iterdir()}
    assert {"model.ckpt.index", "model.ckpt.data-00000-of-00001", f"{family}_config.json"} <= names
    say("import", tmp_path / "google", tmp_path / "folder")
    say("import", tmp_path / "google" / "model.ckpt", tmp_path / "prefix")
    say("export", tmp_path / "folder", tmp_path / "out")
    for name in ("ours", "folder", "prefix", "out"):
        found = litebert.load(tmp_path / name)
        assert list(found.heads) == list(expected.heads)
        assert found.config.model_dump(exclude={"classifier_dropout_prob", "projection"}) == (
            expected.config.model_dump(exclude={"classifier_dropout_prob", "projection"})
        )
        tensors = found.state_dict()
        assert tensors.keys() == expected.state_dict().keys()
        for key, tensor in expected.state_dict().items():
            assert torch.equal(tensors[key], tensor), (name, key)
    open_there = getattr(transformers, f"{family.capitalize()}ForPreTraining").from_pretrained
    theirs = open_there(foreign / family).state_dict()
    again, report = open_there(tmp_path / "out", output_loading_info=True)
    assert not any(report.values()), report
    for key, tensor in theirs.items():
        assert torch.equal(again.state_dict()[key], tensor), key


def test_brackets_in_help_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert run(monkeypatch, "embed", "--help") == 0
    assert "its [CLS]" in capsys.readouterr().out
    assert run(monkeypatch, "prepare", "--help") == 0
    assert "[[links]], &nbsp;, <br>, <ref>" in " ".join(capsys.readouterr().out.split())

"""Training with settings that cannot work, or that do not fit into memory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import litebert
from litebert.configs.load import load_preset
from litebert.corpus.store import Store
from litebert.planning.memory import peak_memory
from litebert.train import build as building
from tests.mistakes.conftest import Refused, Trained
from tests.mistakes.pretraining import ALBERT, ELECTRA, ROBERTA, arguments, assert_all_in


@pytest.mark.parametrize(
    ("preset", "more", "words"),
    [
        (["albert-tny"], [], ["'albert-tny'", "did you mean 'albert-tiny'?"]),
        (["gone.toml"], [], ["gone.toml", "no such preset file"]),
        (
            ALBERT,
            ["optimizer.learning_rat=1"],
            ["'optimizer.learning_rat'", "did you mean 'optimizer.learning_rate'?"],
        ),
        (ALBERT, ["data.lenght=64"], ["'data.lenght'", "did you mean 'data.max_length'?"]),
        (ALBERT, ["data.max_length=7"], ["data.max_length = 7"]),
        (ALBERT, ["optimizer.learning_rate=fast"], ["optimizer.learning_rate = 'fast'"]),
        (ALBERT, ["optimizer.learning_rate=nan"], ["optimizer.learning_rate = nan"]),
        (ALBERT, ["optimizer.name=sgd"], ["optimizer.name = 'sgd'", "'lamb'"]),
        (ALBERT, ["schedule.warmup=1"], ["schedule.warmup = 1"]),
        (ALBERT, ["data.input_format=alpert"], ["'alpert'", "did you mean 'albert'?"]),
        (ALBERT, ["--budget", "5 parsecs"], ["'5 parsecs'", "200Mtok"]),
        (ALBERT, ["--budget", "0steps"], ["'0steps'", "125000steps"]),
        (ALBERT, ["--budget", "-3h"], ["'-3h'", "2h"]),
        (ALBERT, ["--budget", "soon"], ["'soon'", "30m"]),
        (ALBERT, ["objectives=[]"], ["objectives is empty"]),
        (ALBERT, ['objectives=["masked_lm","masked_lm"]'], ["'masked_lm' more than once"]),
        (ALBERT, ['objectives=["masked_ml"]'], ["'masked_ml'", "did you mean 'masked_lm'?"]),
        (ALBERT, ["data.input_format=full-sentences"], ["'full-sentences'", "sentence_order"]),
        (ALBERT, ["data.input_format=spanbert"], ["'spanbert'", "sentence_order", "'albert'"]),
        (ALBERT, ["data.input_format=bert"], ["'bert'", "sentence_order", "next_sentence"]),
        (ALBERT, ["data.max_length=513"], ["data.max_length 513", "512 positions"]),
        (ROBERTA, ["data.max_length=513"], ["data.max_length 513", "512 positions"]),
        (ALBERT, ["stages=[{fraction=0.5}]"], ["stages", "0.5", "expected 1"]),
        (ALBERT, ["stages=[{fraction=0.9},{fraction=0.2}]"], ["stages", "1.1", "expected 1"]),
        (ALBERT, ["stages=[{fraction=1.0,max_length=600}]"], ["600", "512 positions"]),
        (
            ROBERTA,
            ["model.num_hidden_layers=2", "stages=[{fraction=1.0,depth=5}]"],
            ["depth 5", "all shared"],
        ),
        (ALBERT, ['objectives=["replaced_token"]'], ["replaced_token", "[generator]"]),
        (ELECTRA, ['objectives=["replaced_token","masked_lm"]'], ["replaced_token", "alone"]),
        (ELECTRA, ['objectives=["replaced_token","sentence_order"]'], ["replaced_token", "alone"]),
        (ELECTRA, ["masking.unit=word"], ["with_replacement", "'token'"]),
        (ALBERT, ["masking.unit=word"], ["subsampling", "'token'"]),
        (ALBERT, ["masking.mask_fraction=0.95"], ["mask_fraction 0.95", "random_fraction 0.1"]),
    ],
    ids=lambda value: " ".join(value)[-40:] if isinstance(value, list) else None,
)
def test_bad_settings(
    preset: list[str], more: list[str], words: list[str], refused: Refused, corpus: Path,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    sentence = refused(*arguments(preset, corpus, tmp_path / "run", *more))
    assert_all_in(words, sentence)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("betas", ["[0.9,1.0]", "[1.5,0.999]", "[-0.1,0.999]", "[0.9]"])
@pytest.mark.parametrize("preset", [ALBERT, ELECTRA], ids=["torch", "google"])
def test_impossible_betas(
    betas: str, preset: list[str], refused: Refused, stores: dict[str, Store], tmp_path: Path
) -> None:
    folder = stores["pieces" if preset is ALBERT else "wordpiece"].folders[0]
    more = f"optimizer.betas={betas}"
    assert_all_in(["betas"], refused(*arguments(preset, folder, tmp_path / "run", more)))


def test_a_budget_spent_before_the_first_step(
    refused: Refused, corpus: Path, tmp_path: Path
) -> None:
    """Refused, and the folder is free for the next try."""
    out = tmp_path / "run"
    sentence = refused(*arguments(ALBERT, corpus, out, "--budget", "0.01s"))
    assert_all_in(["too short", "starting"], sentence)
    name, *overrides = ALBERT
    assert litebert.pretrain(name, corpus, out, overrides=overrides).finished


def test_a_word_said_once_in_a_bad_budget(refused: Refused, corpus: Path, tmp_path: Path) -> None:
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run", "--budget", "soon"))
    assert sentence.count("budget") == 1, sentence


@pytest.mark.parametrize("kind", ["wordpiece", "pieces"])
def test_segments_that_the_model_has_no_rows_for(
    kind: str, refused: Refused, stores: dict[str, Store], tmp_path: Path
) -> None:
    """RoBERTa has one row of segments; pairs of other tokenizers' pieces need two."""
    folder = stores[kind].folders[0]
    more = ["data.input_format=segment-pair", 'objectives=["masked_lm","next_sentence"]']
    sentence = refused(*arguments(ROBERTA, folder, tmp_path / "run", *more))
    assert_all_in(["type_vocab_size"], sentence)


# ---------------------------------------------------------------------------- memory


def need(store: Store, sequences: int, *more: str) -> int:
    """Bytes that so many sequences of the small preset are said to need."""
    name, *overrides = ALBERT
    preset = building.fit_to_corpus(load_preset(name, [*overrides, *more]), store)
    return peak_memory(preset, sequences, 32, "fp32", False)["total"]


def test_a_batch_that_cannot_fit(
    refused: Refused, stores: dict[str, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stores["pieces"]
    free = need(store, 1000)
    monkeypatch.setattr(building, "memory_free", lambda device: free)
    huge = ["data.batch_size=200000", "data.micro_batch_tokens=4000000"]
    sentence = refused(*arguments(ALBERT, store.folders[0], tmp_path / "run", *huge))
    assert_all_in(
        ["4,000,000 tokens", f"{free / 1e9:.1f} GB are free", "data.micro_batch_tokens="], sentence
    )
    assert f"about {need(store, 4_000_000 // 32) / 1e9:.1f} GB" in sentence
    advised = re.search(r"data\.micro_batch_tokens=(\d+)", sentence)
    assert advised, sentence
    assert need(store, int(advised[1]) // 32) <= free
    assert need(store, 2 * int(advised[1]) // 32) > free


def test_advice_that_is_followed_works(
    refused: Refused, trained: Trained, stores: dict[str, Store], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The same command with the number it names, so in the same folder too."""
    store = stores["pieces"]
    free = (need(store, 16) + need(store, 32)) // 2
    monkeypatch.setattr(building, "memory_free", lambda device: free)
    words = arguments(ALBERT, store.folders[0], tmp_path / "run", "data.batch_size=64")
    sentence = refused(*words)
    advised = re.search(r"--set (data\.micro_batch_tokens=\d+)", sentence)
    assert advised, sentence
    out, _ = trained(*words, "--set", advised[1])
    assert "2 steps" in out


def test_no_batch_can_fit(
    refused: Refused, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "memory_free", lambda device: 1000)
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run"))
    assert_all_in(["GB", "smaller preset"], sentence)
    assert "data.micro_batch_tokens=" not in sentence

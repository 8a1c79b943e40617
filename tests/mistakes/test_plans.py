"""Presets, overrides and preset files that cannot be: one sentence that says what and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mistakes.conftest import Refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["albert-bse"], ["'albert-bse'", "did you mean 'albert-base'?"]),
        (["robrta-large"], ["'robrta-large'", "did you mean 'roberta-large'?"]),
        (["zzz"], ["'zzz'", "known: albert-base", "spanbert-large"]),
        (["../presets/albert-base"], ["'../presets/albert-base'"]),
        (["albert-tiny", "albert-tny"], ["'albert-tny'", "did you mean 'albert-tiny'?"]),
        (["missing.toml"], ["missing.toml: no such preset file"]),
        (["albert-tiny", "--budget", "5"], ["'5'", "200Mtok"]),
        (["albert-tiny", "--budget", "5 parsecs"], ["'5 parsecs'", "200Mtok"]),
        (["albert-tiny", "--budget", "0tok"], ["'0tok'", "200Mtok"]),
        (["albert-tiny", "--budget", "_tok"], ["'_tok'", "200Mtok"]),
        (["albert-tiny", "--budget", ""], ["''", "200Mtok"]),
        (["albert-tiny", "--budget", "2h"], ["time", "--measure"]),
        (["albert-tiny", "--max-length", "513"], ["max_length 513", "8 to 512"]),
        (["roberta-base", "--max-length", "513"], ["max_length 513", "8 to 512"]),
        (["albert-tiny", "--max-length", "0"], ["max_length 0"]),
        (["albert-tiny", "--batch-size", "0"], ["batch_size 0"]),
        (["albert-tiny", "--precision", "fp8"], ["'fp8'", "bf16"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_plans(arguments: list[str], words: list[str], refused: Refused) -> None:
    sentence = refused("plan", *arguments)
    for word in words:
        assert word in sentence


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("model.hiden_size=256", ["'model.hiden_size'", "did you mean 'model.hidden_size'?"]),
        ("modle.hidden_size=256", ["'modle'"]),
        ("hidden_size=256", ["'hidden_size'", "did you mean 'model.hidden_size'?"]),
        ("model.hidden_size", ["--set model.hidden_size:", "key=value"]),
        ("=256", ["--set =256:", "key=value"]),
        ("model.hidden_size=wide", ["model.hidden_size = 'wide'", "integer"]),
        ("model.hidden_size=", ["model.hidden_size = ''", "integer"]),
        ("model.hidden_size=127", ["hidden_size 127", "num_attention_heads 4"]),
        ("model.num_hidden_layers=0", ["model.num_hidden_layers = 0"]),
        ("model.num_hidden_layers=-3", ["model.num_hidden_layers = -3"]),
        ("model.embedding_size=256", ["embedding_size 256", "hidden_size 128", "E <= H"]),
        ("model.num_hidden_groups=5", ["num_hidden_groups 5", "num_hidden_layers 2"]),
        ("model.sharing=some", ["model.sharing = 'some'", "'attention'"]),
        ("model.family=bert", ["'bert'", "embedding_size 64"]),
        ("model.hidden_dropout_prob=1", ["model.hidden_dropout_prob = 1"]),
        ("model.layer_norm_eps=nan", ["model.layer_norm_eps = nan"]),
        ("model.layer_norm_eps=inf", ["model.layer_norm_eps = inf"]),
        ("model.pad_token_id=8000", ["pad_token_id 8000", "vocab_size 8000"]),
        ("model.projection=false", ["projection"]),
        ("model.vocab_size=1000000000000000000", ["vocab_size", "1000000000000000000"]),
        ("model.hidden_size=1000000000000", ["hidden_size", "1000000000000"]),
        ("model=5", ["model = 5"]),
        ('objectives=["masked_langage"]', ["'masked_langage'", "did you mean 'masked_lm'?"]),
    ],
)
def test_bad_sets(assignment: str, words: list[str], refused: Refused) -> None:
    sentence = refused("plan", "albert-tiny", "--set", assignment)
    for word in words:
        assert word in sentence
    assert "{" not in sentence  # what does not fit, not the whole table it stands in


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = = 'x'", ["own.toml", "not valid TOML", "line 1, column 9"]),
        ("extends = 'albert-tiny'\n[model]\nhiden_size = 3", ["own.toml", "'model.hidden_size'?"]),
        ("extends = 'albert-tiny'\ncolour = 3", ["own.toml", "'colour'"]),
        ("extends = 'albert-tny'", ["'albert-tny'", "did you mean 'albert-tiny'?"]),
        ("extends = 'gone.toml'", ["gone.toml", "no such"]),
        ("extends = 'own.toml'", ["own.toml", "circle"]),
        ("extends = 'other.toml'", ["own.toml", "other.toml", "circle"]),
        ("extends = 5", ["own.toml", "extends", "5"]),
        ("extends = ['albert-tiny']", ["own.toml", "extends", "['albert-tiny']"]),
        ("", ["own.toml", "'title' is missing", "'model' is missing"]),
        ("extends = 'albert-tiny'\nmodel = 5", ["own.toml", "model = 5"]),
    ],
)
def test_bad_preset_files(
    text: str, words: list[str], refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.toml").write_text(text)
    (tmp_path / "other.toml").write_text("extends = 'own.toml'")
    monkeypatch.chdir(tmp_path)
    sentence = refused("plan", "own.toml")
    for word in words:
        assert word in sentence

"""A model folder with its tokenizer: saved together, opened together."""

from __future__ import annotations

from pathlib import Path

import pytest
import transformers

import litebert
from litebert.base.errors import FileError, SettingsError

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "lamp", "is", "green", "."]


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    return tmp_path / "vocab.txt"


def model(size: int) -> litebert.Model:
    preset = litebert.load_preset("albert-tiny", [f"model.vocab_size={size}"])
    return litebert.Model.create(preset.model, preset.heads, seed=1)


@pytest.mark.parametrize("given", ["path", "string", "tokenizer"])
def test_the_tokenizer_comes_along(given: str, vocabulary: Path, tmp_path: Path) -> None:
    tokenizer = litebert.load_tokenizer(vocabulary)
    forms = {"path": vocabulary, "string": str(vocabulary), "tokenizer": tokenizer}
    model(10).save(tmp_path / "model", tokenizer=forms[given])
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    ids = tokenizer.encode("The lamp is green.")
    assert theirs("The lamp is green.")["input_ids"] == [2, *ids, 3]
    assert theirs.model_max_length == 512
    assert litebert.load_tokenizer(tmp_path / "model").checksum == tokenizer.checksum
    litebert.load(tmp_path / "model")


def test_a_tokenizer_that_is_missing_or_too_large(vocabulary: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="10 tokens does not fit a model of 9"):
        model(9).save(tmp_path / "model", tokenizer=vocabulary)
    with pytest.raises(FileError, match="nosuch"):
        model(10).save(tmp_path / "model", tokenizer=tmp_path / "nosuch")
    assert not (tmp_path / "model").exists()

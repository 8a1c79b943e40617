"""What `transformers` saves again from our folders opens here: the same weights, ids, predictions.

It leaves the vocabulary's own files out, so a tokenizer comes back from tokenizer.json alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import transformers
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

import litebert
from litebert.base.errors import FormatError
from litebert.model.model import Model
from litebert.tasks.task import TASK_KEY
from litebert.text.tokenizer import Tokenizer
from litebert.text.training import train_from_sentences
from tests.parity.test_transformers import assert_same
from tests.text.conftest import KINDS, NORMALIZATIONS, SENTENCES, many_sentences
from tests.text.test_huggingface import ODD

SIZES = {"sentencepiece": 260, "wordpiece": 500, "bpe": 400}
SHAPE: dict[str, Any] = {
    "vocab_size": 500, "embedding_size": 8, "hidden_size": 16, "num_hidden_layers": 4,
    "num_attention_heads": 2, "intermediate_size": 20, "max_position_embeddings": 40,
}  # fmt: skip
FAMILIES = {
    "albert": {}, "bert": {"embedding_size": 16}, "electra": {},
    "roberta": {"embedding_size": 16, "pad_token_id": 1},
}  # fmt: skip


def trained(kind: str, normalization: str = "multilingual") -> Tokenizer:
    return train_from_sentences(
        many_sentences(), kind, SIZES[kind], normalization, character_coverage=1.0
    )


def assert_same_ids(one: Tokenizer, other: Tokenizer) -> None:
    texts = SENTENCES + ODD
    assert [one.encode(text) for text in texts] == [other.encode(text) for text in texts]
    assert (one.special, one.tokens) == (other.special, other.tokens)
    assert (one.special_mask == other.special_mask).all()
    assert (one.word_starts == other.word_starts).all()


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_tokenizers_come_back(kind: str, normalization: str, tmp_path: Path) -> None:
    ours = trained(kind, normalization)
    ours.save(tmp_path / "ours")
    AutoTokenizer.from_pretrained(tmp_path / "ours").save_pretrained(tmp_path / "again")
    assert not (tmp_path / "again" / "vocab.txt").exists()
    assert_same_ids(litebert.load_tokenizer(tmp_path / "again"), ours)
    config = tmp_path / "again" / "tokenizer_config.json"
    content = json.loads(config.read_text())
    del content["litebert"]  # as other tools do
    config.write_text(json.dumps(content))
    again = litebert.load_tokenizer(tmp_path / "again")
    assert again.normalization == normalization
    assert_same_ids(again, ours)


def test_a_normalizer_that_was_changed_is_refused(tmp_path: Path) -> None:
    trained("wordpiece", "english").save(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    file = tmp_path / "tokenizer.json"
    content = json.loads(file.read_text())
    content["normalizer"]["normalizers"].pop(0)
    file.write_text(json.dumps(content))
    with pytest.raises(FormatError, match=r"tokenizer\.json"):
        litebert.load_tokenizer(tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sharing", ["all", "attention", "ffn", "none"])
def test_weights_come_back(family: str, sharing: str, tmp_path: Path) -> None:
    if family != "albert" and sharing != "none":
        pytest.skip("only ALBERT shares")
    shape = {**SHAPE, **FAMILIES[family], "family": family, "sharing": sharing}
    model = Model.create(litebert.EncoderConfig.build(shape, "test"))
    model.save(tmp_path / "ours")
    theirs = AutoModel.from_pretrained(tmp_path / "ours")
    theirs.save_pretrained(tmp_path / "again")
    assert_same(litebert.load(tmp_path / "again"), model)
    theirs.save_pretrained(tmp_path / "parts", max_shard_size="5KB")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 1
    assert_same(litebert.load(tmp_path / "parts"), model)


PAIRS = list(zip(FAMILIES, [*KINDS[:2], *KINDS[1:]], strict=True))


@pytest.mark.parametrize(("family", "kind"), PAIRS)
def test_a_fine_tuned_folder_predicts_the_same(family: str, kind: str, tmp_path: Path) -> None:
    tokenizer, labels = trained(kind), ("no", "yes", "perhaps")
    sharing = "all" if family == "albert" else "none"
    shape = {**SHAPE, **FAMILIES[family], "family": family, "sharing": sharing}
    model = Model.create(litebert.EncoderConfig.build(shape, "test"), ("classification",), labels)
    model.metadata[TASK_KEY] = {
        "name": "classify", "kind": "classify", "metrics": ["accuracy"], "labels": labels,
        "max_length": 30,
    }  # fmt: skip
    model.save(tmp_path / "ours", tokenizer=tokenizer)
    theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path / "ours")
    theirs.save_pretrained(tmp_path / "again")
    AutoTokenizer.from_pretrained(tmp_path / "ours").save_pretrained(tmp_path / "again")
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": text}) + "\n" for text in SENTENCES))
    again, ours = (litebert.predict(tmp_path / name, rows) for name in ("again", "ours"))
    assert again == ours


def test_tokenizers_of_the_families_own_classes(tmp_path: Path) -> None:
    """Made by transformers itself, saved by it, and read here."""
    for kind, name in (("wordpiece", "Bert"), ("wordpiece", "Electra"), ("bpe", "Roberta")):
        ours = trained(kind, "none" if kind == "bpe" else "lower")
        ours.save(tmp_path / name)
        files: dict[str, Any] = (
            {"vocab": str(tmp_path / name / "vocab.txt")}
            if kind == "wordpiece"
            else {
                k: str(tmp_path / name / f"{k}.{e}")
                for k, e in (("vocab", "json"), ("merges", "txt"))
            }
        )
        theirs = getattr(transformers, f"{name}Tokenizer")(**files)
        theirs.save_pretrained(tmp_path / f"{name}-saved")
        again = litebert.load_tokenizer(tmp_path / f"{name}-saved")
        found = [again.encode(text) for text in SENTENCES]
        assert found == theirs(SENTENCES, add_special_tokens=False)["input_ids"]

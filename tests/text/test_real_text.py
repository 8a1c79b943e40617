"""Official vocabularies and real text, where they are."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from litebert.text.sentences import split_sentences
from litebert.text.tokenizer import load_tokenizer
from litebert.text.training import train_from_sentences

TEXTS = {"enwiki": "en", "kowiki": "ko", "aozora": "ja"}


def sentences(data: Path, name: str, documents: int, most: int) -> list[str]:
    path = data / "text" / f"{name}.jsonl.gz"
    found: list[str] = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for _, line in zip(range(documents), lines, strict=False):
            found += split_sentences(json.loads(line)["text"], TEXTS[name])
    return found[:most]


def batch(tokenizer, texts: list[str]) -> list[list[int]]:
    ids, lengths = tokenizer.encode_batch(texts)
    return [part.tolist() for part in np.split(ids, np.cumsum(lengths)[:-1])]


@pytest.mark.parametrize(("folder", "text", "ids"), [
    ("albert-en", "Hello, my dog is cute", [10975, 15, 51, 1952, 25, 10901]),
    ("bert-base-uncased", "Hello, my dog is cute", [7592, 1010, 2026, 3899, 2003, 10140]),
    ("roberta-base", "Hello world", [31414, 232]),
])  # fmt: skip
def test_known_ids(real_data: Path, folder: str, text: str, ids: list[int]) -> None:
    tokenizer = load_tokenizer(real_data / "tokenizers" / folder)
    assert tokenizer.encode(text) == ids
    assert tokenizer.encode_with_offsets(text).offsets[-1] == (text.rindex(" ") + 1, len(text))


def test_digit_and_comma_stay_as_sentencepiece_has_them(real_data: Path) -> None:
    """Google's later rule would make ▁4, into ▁4 and a comma."""
    tokenizer = load_tokenizer(real_data / "tokenizers" / "albert-en")
    assert "▁4," in tokenizer.encode_with_offsets("4,888 deserts").tokens


@pytest.mark.parametrize("name", TEXTS)
def test_albert_ids_are_sentencepieces(real_data: Path, name: str) -> None:
    folder = real_data / "tokenizers" / "albert-en"
    tokenizer = load_tokenizer(folder)
    reference = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    texts = sentences(real_data, name, 60, 4000)
    assert batch(tokenizer, texts) == reference.encode(
        [tokenizer.normalize(text) for text in texts]
    )


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("folder", ["bert-base-uncased", "roberta-base"])
def test_ids_are_transformers(real_data: Path, folder: str, name: str) -> None:
    from transformers import BertTokenizer, RobertaTokenizer

    path = real_data / "tokenizers" / folder
    kind = BertTokenizer if folder.startswith("bert") else RobertaTokenizer
    theirs = kind.from_pretrained(path)
    texts = sentences(real_data, name, 30, 1500)
    expected = theirs(texts, add_special_tokens=False, verbose=False)["input_ids"]
    assert batch(load_tokenizer(path), texts) == expected


@pytest.mark.parametrize("folder", ["albert-en", "bert-base-uncased", "roberta-base"])
def test_official_vocabularies_saved_for_transformers(
    real_data: Path, folder: str, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    ours = load_tokenizer(real_data / "tokenizers" / folder)
    ours.save(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for name in TEXTS:
        texts = sentences(real_data, name, 10, 500)
        expected = theirs(texts, add_special_tokens=False, verbose=False)["input_ids"]
        assert batch(ours, texts) == expected


@pytest.mark.parametrize("name", ["kowiki", "aozora"])
def test_korean_and_japanese_keep_their_characters(real_data: Path, name: str) -> None:
    texts = sentences(real_data, name, 40, 1500)
    tokenizer = train_from_sentences(texts, "sentencepiece", 3200, language=TEXTS[name])
    encoded = batch(tokenizer, texts)
    unknown = sum(ids.count(tokenizer.special.unk) for ids in encoded)
    assert unknown < 0.001 * sum(map(len, encoded))
    for text, ids in zip(texts, encoded, strict=True):
        if tokenizer.special.unk not in ids:
            assert tokenizer.decode(ids) == tokenizer.normalize(text)

# ruff: noqa: RUF001  (odd characters on purpose)
"""AutoTokenizer on our folders gives our ids, and says nothing."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import pytest

from litebert.text.tokenizer import Tokenizer

from .conftest import KINDS, NORMALIZATIONS, SENTENCES, Trained

EVERY = [(kind, normalization) for kind in KINDS for normalization in NORMALIZATIONS]
ODD = [
    "ΟΔΟΣ ΣΑΣ. ΑΣ' Σ ΑΣ\u0301Α ΑΣ\u0301 ΑΣ9 ΣΣ A.Σ.",
    "a ¨ b´c ﬁ ① ｶﾞ e\u0301 이\u0301 한 ㄱ İ ß ẞ ǅ",
    "\u00a0a\u3000b \t c\u2028d\x85e\x1cf  g ",
    "คำ ก็ हिन्दी বাংলা \u0e31 \u09be \u20dd",
    "qqq zzz ▁ ▁the the▁ 𝕏 \U0001f600\u200d\U0001f600 ﷺ",
    "don't 'tis 2,000.5 £3–4 (a)-(b) ``x'' ...",
    "",
    "   ",
]


@pytest.fixture
def opened(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    from transformers import AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.enable_propagation()

    def open_(tokenizer: Tokenizer, config: str = ""):
        tokenizer.save(tmp_path)
        if config:
            (tmp_path / "config.json").write_text(config)
        with caplog.at_level(logging.WARNING):
            theirs = AutoTokenizer.from_pretrained(tmp_path)
        assert caplog.records == []
        return theirs

    return open_


@pytest.mark.parametrize(("kind", "normalization"), EVERY)
def test_the_ids_are_ours(trained: Trained, opened, kind: str, normalization: str) -> None:
    ours = trained(kind, normalization)
    theirs = opened(ours)
    texts = SENTENCES + ODD
    assert theirs(texts, add_special_tokens=False)["input_ids"] == [ours.encode(t) for t in texts]
    special = ours.special
    a, b = ours.encode("The cat"), ours.encode("sleeps.")
    single, pair = theirs("The cat"), theirs("The cat", "sleeps.")
    assert single["input_ids"] == [special.cls, *a, special.sep]
    if kind == "bpe":
        assert pair["input_ids"] == [special.cls, *a, special.sep, special.sep, *b, special.sep]
        assert "token_type_ids" not in pair
    else:
        assert pair["input_ids"] == [special.cls, *a, special.sep, *b, special.sep]
        assert pair["token_type_ids"] == [0] * (len(a) + 2) + [1] * (len(b) + 1)
    names = ("pad", "unk", "cls", "sep", "mask")
    assert [getattr(theirs, f"{n}_token_id") for n in names] == [getattr(special, n) for n in names]
    assert len(theirs) == theirs.vocab_size == ours.vocab_size


@pytest.mark.parametrize("model_type", ["albert", "bert", "roberta", "electra"])
@pytest.mark.parametrize("kind", KINDS)
def test_beside_a_models_config(trained: Trained, opened, kind: str, model_type: str) -> None:
    ours = trained(kind, "multilingual")
    theirs = opened(ours, f'{{"model_type": "{model_type}"}}')
    texts = SENTENCES + ODD
    assert theirs(texts, add_special_tokens=False)["input_ids"] == [ours.encode(t) for t in texts]


def test_transformers_parses_special_names_and_we_do_not(trained: Trained, opened) -> None:
    ours = trained("sentencepiece", "english")
    theirs = opened(ours)
    mask = ours.special.mask
    assert mask in theirs("the [MASK] sleeps")["input_ids"]
    assert mask not in ours.encode("the [MASK] sleeps")


def test_the_length_of_the_model(trained: Trained, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    trained("wordpiece", "english").save(tmp_path, max_length=128)
    assert AutoTokenizer.from_pretrained(tmp_path).model_max_length == 128


def test_random_words_of_the_vocabulary(trained: Trained, opened) -> None:
    """Scores decide between many ways to cut: user-defined pieces and unknowns included."""
    ours = trained("sentencepiece", "multilingual")
    theirs = opened(ours)
    chooser = random.Random(0)
    alphabet = [piece.replace("▁", " ") for piece in ours.tokens[5:]] + ["ж", "ж", "—", "–", "£"]
    texts = ["".join(chooser.choices(alphabet, k=30)) for _ in range(400)]
    differ = [
        t for t in texts if theirs(t, add_special_tokens=False)["input_ids"] != ours.encode(t)
    ]
    assert differ == []

"""Small tokenizers of every kind, trained once from sentences written for these tests."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from litebert.text.tokenizer import Tokenizer
from litebert.text.training import train_from_sentences

ENGLISH = [
    "The grey cat sleeps on the warm windowsill (as it does every day).",
    "My neighbour's dog, however, prefers to chase the post van down the lane.",
    "It cost £12.50 in 1999, or about 2,000 of the old coins - a lot!",
    "Why would anybody paint a café door bright green?",
    "She read the long letter twice, folded it, and put it in a drawer.",
    "Rain fell on the town for nine days; the river rose by half a metre.",
    "Old Ανδρέας said ΟΔΟΣ and laughed until the lamp went out.",
]
KOREAN = [
    "우리 집 고양이는 하루 종일 창가에서 잠을 잔다.",
    "어제 산 사과는 달고 맛있었지만 조금 비쌌다.",
    "내일은 비가 온다고 하니 우산을 가져가세요!",
    "할머니는 이른 아침마다 마당을 쓸고 꽃에 물을 주신다.",
    "기차가 늦어서 친구를 두 시간이나 기다렸어요.",
]
JAPANESE = [
    "うちの猫は一日じゅう窓のそばで眠っている。",
    "がらがらと音を立てて、古いドアがゆっくり開いた。",
    "プールのあとで食べたパンは、とてもおいしかった。",
    "明日は雨が降るそうだから、傘を持って出かけよう。",
    "電車が遅れたので、駅で友だちを二時間も待ちました。",
]
SENTENCES = ENGLISH + KOREAN + JAPANESE
NORMALIZATIONS = ("english", "multilingual", "lower", "none")
KINDS = ("sentencepiece", "wordpiece", "bpe")
_SIZES = {"sentencepiece": 260, "wordpiece": 500, "bpe": 400}

Trained = Callable[[str, str], Tokenizer]


def many_sentences() -> list[str]:
    """The sentences and shuffles of their words: enough to train on."""
    chooser = random.Random(0)
    shuffled = []
    for sentence in SENTENCES * 20:
        words = sentence.split(" ")
        shuffled.append(" ".join(chooser.sample(words, len(words))))
    return SENTENCES + shuffled


@pytest.fixture(scope="session")
def trained() -> Trained:
    """A tokenizer by kind and normalization."""
    known: dict[tuple[str, str], Tokenizer] = {}

    def get(kind: str, normalization: str) -> Tokenizer:
        if (kind, normalization) not in known:
            known[kind, normalization] = train_from_sentences(
                many_sentences(), kind, _SIZES[kind], normalization, character_coverage=1.0
            )
        return known[kind, normalization]

    return get

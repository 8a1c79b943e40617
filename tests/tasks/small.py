"""A small encoder, and a handful of examples of every kind of task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from litebert.finetuning.recipe import Recipe
from litebert.model.config import EncoderConfig
from litebert.model.model import Model
from litebert.tasks.multiple_choice import ChoiceExample
from litebert.tasks.questions import Answer, QuestionExample
from litebert.tasks.registry import find_kind
from litebert.tasks.tagged import TaggedExample
from litebert.tasks.task import TaskSettings
from litebert.tasks.texts import TextExample
from litebert.text.tokenizer import load_tokenizer
from tests.corpus.stores import write_wordpiece

WORDS = [f"w{number}q" for number in range(15)]  # that the vocabulary has


def write_start(folder: Path) -> Path:
    """A small untrained encoder with a tokenizer of whole words."""
    tokenizer = load_tokenizer(write_wordpiece(folder / "tokenizer"))
    config = EncoderConfig(
        family="albert", vocab_size=tokenizer.vocab_size, embedding_size=16, hidden_size=32,
        num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64,
    )  # fmt: skip
    Model.create(config, ("masked_lm",), seed=1).save(folder / "model", tokenizer=tokenizer)
    return folder / "model"


def sentence(number: int, length: int = 5) -> str:
    chance = np.random.default_rng(number)
    return " ".join(chance.choice(WORDS, length))


def texts(label: Any) -> list[TextExample]:
    return [TextExample(str(i), sentence(i), None, label(i)) for i in range(8)]


def pairs(label: Any) -> list[TextExample]:
    return [TextExample(str(i), sentence(i), sentence(i + 50), label(i)) for i in range(8)]


def tagged() -> list[TaggedExample]:
    tags = ("O", "B-x", "I-x")
    return [
        TaggedExample(
            str(i), tuple(sentence(i).split()), tuple(tags[(i + k) % 3] for k in range(5))
        )
        for i in range(6)
    ]


def questions(impossible: bool) -> list[QuestionExample]:
    examples = []
    for i in range(6):
        passage = sentence(i, 12)
        words = passage.split()
        start = len(" ".join(words[:i])) + bool(i)
        answer = Answer(" ".join(words[i : i + 2]), start)
        gone = impossible and i % 3 == 0
        answers = () if gone else (answer,)
        examples.append(QuestionExample(str(i), sentence(i + 90, 3), passage, answers, gone))
    return examples


def choices() -> list[ChoiceExample]:
    options = [tuple(sentence(10 * i + k, 2) for k in range(3)) for i in range(6)]
    return [
        ChoiceExample(str(i), sentence(i, 8), sentence(i + 70, 3), options[i], i % 3)
        for i in range(6)
    ]


def settings(kind: str, **more: Any) -> TaskSettings:
    return find_kind(kind).settings_class.build({"name": kind, "kind": kind, **more}, "test")


TWO, TAGS = ("no", "yes"), ("O", "B-x", "I-x")
TASKS: dict[str, tuple[TaskSettings, list[Any], str]] = {
    "classify": (
        settings("classify", metrics=("accuracy",), labels=TWO), texts(lambda i: TWO[i % 2]),
        "ForSequenceClassification",
    ),
    "pair": (
        settings("pair", metrics=("f1", "accuracy"), labels=TWO), pairs(lambda i: TWO[i // 2 % 2]),
        "ForSequenceClassification",
    ),
    "regress": (
        settings("regress", metrics=("pearson", "spearman")), texts(lambda i: i / 4),
        "ForSequenceClassification",
    ),
    "tag": (
        settings("tag", metrics=("entity_f1", "accuracy"), labels=TAGS), tagged(),
        "ForTokenClassification",
    ),
    "qa": (settings("qa", metrics=("f1", "exact")), questions(False), "ForQuestionAnswering"),
    "qa-impossible": (
        settings("qa", metrics=("best_f1", "best_exact"), has_unanswerable=True), questions(True),
        "ForQuestionAnswering",
    ),
    "qa-conditional": (
        settings("qa", metrics=("best_f1",), has_unanswerable=True, conditional_head=True),
        questions(True), "Model",
    ),
    "choice": (
        settings("choice", metrics=("accuracy",), options=3), choices(), "ForMultipleChoice",
    ),
    "classify-mean": (
        settings("classify", metrics=("accuracy",), labels=TWO), texts(lambda i: TWO[i % 2]),
        "Model",
    ),
    "pair-bi-encoder": (
        settings("pair", metrics=("accuracy",), labels=TWO), pairs(lambda i: TWO[i // 2 % 2]),
        "Model",
    ),
    "regress-bi-encoder": (
        settings("regress", metrics=("pearson",)), pairs(lambda i: i / 4), "Model",
    ),
}  # fmt: skip


def recipe(name: str, steps: int = 150) -> Recipe:
    return Recipe(
        precision="fp32",  # as on every machine
        steps=steps, batch_size=8, learning_rate=3e-3, classifier_dropout=0.0, dropout=0.0,
        max_length=32, evaluations=1, pooling="mean" if name.endswith("mean") else "first",
        bi_encoder=name.endswith("bi-encoder"), conditional_head=name.endswith("conditional"),
    )  # fmt: skip

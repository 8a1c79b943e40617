"""Edges of the kinds: long questions, empty passages, windows of pairs, bi-encoders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from litebert.inference.embed import embed_texts
from litebert.inference.model_folder import open_tokenizer
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.tasks.questions import QuestionExample
from litebert.tasks.registry import build_task
from litebert.tasks.regression import ValuePrediction
from litebert.tasks.texts import TextExample
from tests.tasks.small import sentence, settings, write_start


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_start(tmp_path_factory.mktemp("start"))


def test_values_that_are_not_finite_are_a_collapse() -> None:
    task = build_task(settings("regress", metrics=("pearson",)))

    def all_alike(*values: float) -> bool:
        return task.all_alike([ValuePrediction("0", value) for value in values])

    assert all_alike(1.0, float("nan"))
    assert all_alike(1.0, 1.0)
    assert not all_alike(1.0, 2.0)


@pytest.mark.parametrize(("length", "words"), [(16, 70), (8, 30), (64, 3)])
def test_a_long_question_leaves_room_for_the_passage(length: int, words: int, start: Path) -> None:
    tokenizer = open_tokenizer(start)
    asked = build_task(settings("qa", metrics=("f1",), max_length=length))
    example = QuestionExample("1", sentence(1, words), sentence(2, 40))
    batch = asked.features([example], tokenizer).batch
    assert batch.lengths.max() <= length
    covered = batch.is_text.sum()
    assert covered >= 40  # every token of the passage is in some window


def test_a_passage_of_nothing(start: Path) -> None:
    task = build_task(settings("qa", metrics=("f1",)))
    example = QuestionExample("1", sentence(1), "\u200b\u200b")
    features = task.features([example], open_tokenizer(start))
    outputs = [np.zeros((len(features.batch.ids), 2))]
    assert task.decode([example], features, outputs)[0].text == ""


def test_windows_of_a_pair_cut_only_what_does_not_fit(start: Path) -> None:
    tokenizer = open_tokenizer(start)

    def lengths(first: int, second: int) -> tuple[list[int], int, int]:
        task = build_task(
            settings("pair", metrics=("accuracy",), max_length=32, overflow="stride", stride=8)
        )
        example = TextExample("1", sentence(1, first), sentence(2, second), None)
        features = task.features([example], tokenizer)
        return features.batch.lengths.tolist(), features.truncated, features.windowed

    assert lengths(20, 9) == ([32], 0, 0)  # fits whole
    assert lengths(24, 9) == ([32], 1, 0)  # the second needs 9 of 29, the first gets the rest
    windows, truncated, windowed = lengths(20, 40)
    assert (max(windows), truncated, windowed) == (32, 1, 1)
    windows, truncated, windowed = lengths(10, 40)
    assert (max(windows), truncated, windowed) == (32, 0, 1)


def test_the_texts_of_a_bi_encoder_know_nothing_of_each_other(start: Path) -> None:
    """Each text's vector is the one it has alone, and swapping a pair swaps the vectors."""
    tokenizer, model = open_tokenizer(start), Model.load(start)
    task = build_task(settings("regress", metrics=("pearson",), bi_encoder=True, max_length=16))
    texts = [sentence(number, 4 + number) for number in range(4)]
    examples = [TextExample(str(i), texts[i], texts[i + 1], float(i)) for i in range(3)]
    features = task.features(examples, tokenizer)
    assert features.batch.group_size == 2
    assert features.batch.labels[::2].tolist() == [0, 1, 2]
    assert np.isnan(features.batch.labels[1::2]).all()
    vectors = to_inputs(features.batch, torch.device("cpu")).encode(model).mean()
    alone = embed_texts(model, tokenizer, texts)
    expected = alone[[0, 1, 1, 2, 2, 3]]
    np.testing.assert_allclose(vectors.detach().numpy(), expected, atol=1e-6)


def test_a_long_pair_of_a_bi_encoder_is_truncated_and_counted(start: Path) -> None:
    task = build_task(settings("pair", metrics=("accuracy",), bi_encoder=True, max_length=8))
    examples = [TextExample("1", sentence(1, 9), sentence(2, 9)), TextExample("2", "a", "b")]
    features = task.features(examples, open_tokenizer(start))
    assert features.batch.lengths.max() == 8
    assert features.truncated == 1

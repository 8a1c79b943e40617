"""Features hold what they should: texts cut as promised, every word once, every answer findable."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.base.batches import take
from litebert.base.errors import LitebertError
from litebert.tasks import featurize
from litebert.tasks.features import Features, join_features
from litebert.tasks.question_answering import QuestionAnswering, QuestionSettings
from litebert.tasks.questions import Answer, QuestionExample
from litebert.tasks.registry import load_task
from litebert.tasks.tagged import TaggedExample
from litebert.tasks.texts import TextExample, fit_pair
from litebert.text.tokenizer import Tokenizer, load_tokenizer
from tests.corpus.stores import write_pieces, write_wordpiece

WORDS = [f"w{number}q" for number in range(30)]
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=40)
calm = settings(max_examples=60, deadline=None, derandomize=True)


@pytest.fixture(scope="module", params=["wordpiece", "sentencepiece"])
def tokenizer(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    write = write_wordpiece if request.param == "wordpiece" else write_pieces
    return load_tokenizer(write(tmp_path_factory.mktemp("tokenizer")))


def task(kind: str, **more: Any) -> Any:
    tree = {"name": kind, "kind": kind, "metrics": ("accuracy",), "labels": ("a", "b"), **more}
    return load_task(tree, "test")


def rows(features: Features) -> list[list[int]]:
    return [row.tolist() for row in np.split(features.batch.ids, features.batch.starts[1:])]


@given(first=st.integers(0, 40), second=st.integers(0, 40), room=st.integers(1, 50))
@calm
def test_a_pair_is_cut_as_google_cuts_it(first: int, second: int, room: int) -> None:
    """One token at a time from the longer one, at a tie from the second."""
    a, b = first, second
    while a + b > room:
        if a > b:
            a -= 1
        else:
            b -= 1
    assert fit_pair(first, second, room) == (a, b)


@given(words=sentences, length=st.integers(8, 30), step=st.integers(1, 30))
@calm
def test_windows_show_every_token(
    tokenizer: Tokenizer, words: list[str], length: int, step: int
) -> None:
    wanted = tokenizer.encode(" ".join(words))
    made = task("classify", max_length=length, overflow="stride", stride=step).features(
        [TextExample("0", " ".join(words), None, "a")], tokenizer
    )
    seen = [row[1:-1] for row in rows(made)]
    assert all(len(row) <= length - 2 for row in seen)
    hop = min(step, length - 2)
    for number, row in enumerate(seen):
        assert row == wanted[number * hop : number * hop + length - 2]
    assert (len(seen) - 1) * hop + len(seen[-1]) == len(wanted)
    assert made.windowed == (len(seen) > 1)
    assert made.truncated == 0


def test_a_long_text_is_cut_off_and_counted(tokenizer: Tokenizer) -> None:
    examples = [TextExample(str(i), " ".join(WORDS[:i]), None, "b") for i in (3, 6, 7)]
    made = task("classify", max_length=8).features(examples, tokenizer)
    assert made.batch.lengths.tolist() == [5, 8, 8]
    assert made.truncated == 1
    assert made.batch.labels.tolist() == [1, 1, 1]
    special = tokenizer.special
    assert all(row[0] == special.cls and row[-1] == special.sep for row in rows(made))


@given(words=sentences, length=st.integers(8, 20))
@calm
def test_every_word_is_asked_once(tokenizer: Tokenizer, words: list[str], length: int) -> None:
    tags = tuple("ab"[i % 2] for i in range(len(words)))
    made = task("tag", max_length=length).features(
        [TaggedExample("0", tuple(words), tags)], tokenizer
    )
    batch = made.batch
    assert batch.targets.tolist() == [i % 2 for i in range(len(words))]
    firsts = [tokenizer.encode(word)[0] for word in words]
    assert batch.ids[batch.positions].tolist() == firsts
    assert (batch.lengths <= length).all()


@given(
    words=sentences, at=st.integers(0, 39), size=st.integers(1, 4), length=st.integers(16, 40),
    stride=st.integers(1, 20),
)  # fmt: skip
@calm
def test_answers_come_back_to_the_letter(
    tokenizer: Tokenizer, words: list[str], at: int, size: int, length: int, stride: int
) -> None:
    at = min(at, len(words) - 1)
    passage = "  ".join(words)  # two spaces: offsets of the original, not of the normalized text
    answer = "  ".join(words[at : at + size])
    start = len("  ".join(words[:at])) + (2 if at else 0)
    example = QuestionExample("0", "w1q w2q", passage, (Answer(answer, start),), False)
    made = task("qa", max_length=length, stride=stride).features([example], tokenizer)
    batch, found = made.batch, 0
    for number in range(len(batch)):
        first, last, missing = batch.labels[number].tolist()
        if missing:
            assert (first, last) == (0, 0)
            continue
        found += 1
        places = made.extras["offsets"][batch.starts[number] :]
        assert passage[places[first, 0] : places[last, 1]] == answer
    # Windows overlap by room - stride tokens, so an answer no longer than that is whole somewhere.
    room = length - 4 - 1
    assert found or len(words[at : at + size]) > room - min(stride, room)
    assert made.extras["owned"][batch.is_text].sum() == len(tokenizer.encode(passage))


@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=8), seed=st.integers(0, 99))
@calm
def test_taking_sequences_out(tokenizer: Tokenizer, lengths: list[int], seed: int) -> None:
    examples = [
        TaggedExample(str(i), tuple(WORDS[i : i + n]), tuple("ab"[k % 2] for k in range(n)))
        for i, n in enumerate(lengths)
    ]
    made = task("tag", max_length=32).features(examples, tokenizer)
    order = np.random.default_rng(seed).permutation(len(examples))
    taken = take(made.batch, order)
    for place, number in enumerate(order.tolist()):
        one, other = taken.slice(place, place + 1), made.batch.slice(number, number + 1)
        for name in ("ids", "token_types", "is_text", "lengths", "keys", "positions", "targets"):
            assert getattr(one, name).tolist() == getattr(other, name).tolist(), name


def test_parts_join_to_the_whole(tokenizer: Tokenizer) -> None:
    examples = [QuestionExample(str(i), WORDS[i], " ".join(WORDS[i:]), (), True) for i in range(12)]
    made = task("qa", max_length=16, stride=4)
    whole = made.features(examples, tokenizer)
    joined = join_features([made.features(examples[:5], tokenizer),
                            made.features(examples[5:], tokenizer)])  # fmt: skip
    for name in ("ids", "lengths", "keys", "labels"):
        np.testing.assert_array_equal(getattr(joined.batch, name), getattr(whole.batch, name))
    np.testing.assert_array_equal(joined.extras["offsets"], whole.extras["offsets"])
    np.testing.assert_array_equal(joined.extras["owned"], whole.extras["owned"])
    assert (joined.windowed, joined.truncated) == (whole.windowed, whole.truncated)


class Deadly(QuestionAnswering):
    """Whoever makes its features is killed, as for want of memory."""

    def features(self, examples: Any, tokenizer: Tokenizer) -> Features:
        os._exit(9)


def test_several_processes_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_wordpiece(tmp_path / "tokenizer")
    tokenizer = load_tokenizer(folder)
    examples = [QuestionExample(str(i), WORDS[i], " ".join(WORDS[i:]), (), True) for i in range(9)]
    made = task("qa", max_length=16, stride=4)
    whole = made.features(examples, tokenizer)
    monkeypatch.setattr(featurize, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr(featurize, "cpu_count", lambda: 2)
    joined = featurize.make_features(made, examples, tokenizer, folder)
    np.testing.assert_array_equal(joined.batch.ids, whole.batch.ids)
    np.testing.assert_array_equal(joined.example_of, whole.example_of)
    with pytest.raises(LitebertError, match="a worker process was killed"):
        featurize.make_features(Deadly(made.settings), examples, tokenizer, folder)


@pytest.mark.parametrize(("tokens", "room"), [(300, 50), (51, 50), (50, 50), (7, 3), (5, 1)])
def test_windows_overlap_whatever_the_stride(tokens: int, room: int) -> None:
    """A stride longer than a window would leave text between two windows, or cut answers there."""
    made = QuestionSettings(name="qa", kind="qa", metrics=("f1",), max_length=64, stride=128)
    windows = QuestionAnswering(made)._windows(tokens, room)
    assert windows[0][0] == 0
    assert windows[-1][1] == tokens
    for (_, end), (start, _) in pairwise(windows):
        assert end - start >= room // 2

"""The feature cache: the same again, damaged files made again, other settings other features."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litebert.finetuning import feature_cache
from litebert.tasks.questions import QuestionExample
from litebert.tasks.registry import load_task
from litebert.tasks.texts import TextExample
from litebert.text.tokenizer import Tokenizer, load_tokenizer
from tests.corpus.stores import write_wordpiece

WORDS = [f"w{number}q" for number in range(30)]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return load_tokenizer(write_wordpiece(tmp_path_factory.mktemp("tokenizer")))


def task(kind: str, **more: Any) -> Any:
    tree = {"name": kind, "kind": kind, "metrics": ("accuracy",), "labels": ("a", "b"), **more}
    return load_task(tree, "test")


def test_the_cache_gives_the_same(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITEBERT_CACHE", str(tmp_path))
    monkeypatch.setattr(feature_cache, "WORTH_KEEPING", 0.0)
    examples = [QuestionExample("0", WORDS[1], " ".join(WORDS), (), True)]
    made = task("qa", max_length=16, stride=4)
    first = feature_cache.cached_features(made, examples, tokenizer, tmp_path)
    (kept,) = tmp_path.rglob("*.safetensors")
    calls: list[int] = []
    monkeypatch.setattr(type(made), "features", lambda *_: calls.append(1))
    again = feature_cache.cached_features(made, examples, tokenizer, tmp_path)
    assert not calls
    np.testing.assert_array_equal(again.batch.ids, first.batch.ids)
    np.testing.assert_array_equal(again.extras["offsets"], first.extras["offsets"])
    monkeypatch.undo()
    monkeypatch.setenv("LITEBERT_CACHE", str(tmp_path))
    whole = kept.read_bytes()
    ids = whole.index(first.batch.ids.tobytes())
    flipped = whole[:ids] + bytes([whole[ids] ^ 1]) + whole[ids + 1 :]
    for damaged in (whole[:100], b"", flipped):
        kept.write_bytes(damaged)
        mended = feature_cache.cached_features(made, examples, tokenizer, tmp_path)
        np.testing.assert_array_equal(mended.batch.ids, first.batch.ids)


def test_other_settings_are_other_features(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bi-encoder's features are not those of a pair that is read at once."""
    monkeypatch.setenv("LITEBERT_CACHE", str(tmp_path))
    monkeypatch.setattr(feature_cache, "WORTH_KEEPING", 0.0)
    examples = [TextExample("0", WORDS[1], WORDS[2], "a")]
    groups = [
        feature_cache.cached_features(
            task("pair", bi_encoder=apart), examples, tokenizer, tmp_path
        ).batch.group_size
        for apart in (False, True, False, True)
    ]
    assert groups == [1, 2, 1, 2]


def test_pooling_is_part_of_the_key(tokenizer: Tokenizer) -> None:
    examples = [TextExample("0", WORDS[1], None, "a")]
    keys = {
        feature_cache._key(task("classify", pooling=pooling), examples, tokenizer)
        for pooling in ("first", "mean")
    }
    assert len(keys) == 2


def test_what_was_not_used_for_longest_gives_way(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITEBERT_CACHE", str(tmp_path))
    monkeypatch.setattr(feature_cache, "WORTH_KEEPING", 0.0)

    def use(word: str) -> set[Path]:
        examples = [TextExample("0", word, None, "a")]
        feature_cache.cached_features(task("classify"), examples, tokenizer, tmp_path)
        return set(tmp_path.rglob("*.safetensors"))

    (first,) = use(WORDS[0])
    (second,) = use(WORDS[1]) - {first}
    os.utime(first, (1, 1))
    os.utime(second, (2, 2))
    use(WORDS[0])  # the older one is used now
    monkeypatch.setattr(feature_cache, "LARGEST_CACHE", int(2.5 * first.stat().st_size))
    kept = use(WORDS[2])
    assert first in kept
    assert second not in kept
    monkeypatch.setattr(feature_cache, "LARGEST_CACHE", 10)
    assert not use(WORDS[3])  # larger by itself: not kept, and there is room for nothing

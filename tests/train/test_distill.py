"""Distillation as a run: resumed to the same bits, opened elsewhere, refused where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from signal import SIGKILL
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import litebert
from litebert.base.errors import SettingsError
from litebert.configs.schema import Preset
from litebert.corpus.loader import Loader, LoaderSettings
from litebert.corpus.store import Store
from litebert.inference.embed import embed_texts
from litebert.model.config import EncoderConfig
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.model.sentence_encoder import SentenceEncoderSettings
from litebert.objectives.distillation import TeacherSettings
from litebert.text.tokenizer import load_tokenizer
from litebert.train.distill import choose_objectives, distill, taught_preset
from litebert.train.initialization.tables import squeezed
from litebert.train.metrics import TrainingMetrics, read_metrics
from litebert.train.teacher import PackedTeacher, unmasked
from litebert.train.vector_cache import VectorCache, text_keys
from tests.train.runs import Blow, assert_equal_endings, small, train

ALL = ("masked_lm", "relations", "hidden_states", "sentence_vectors")


def write_teacher(folder: Path, tokenizer: Path, *, told: bool = True) -> Path:
    loaded = load_tokenizer(tokenizer)
    config = EncoderConfig(
        family="bert", sharing="none", vocab_size=loaded.vocab_size, embedding_size=48,
        hidden_size=48, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, initializer_range=0.2,
    )  # fmt: skip
    model = Model.create(config, seed=3)
    model.sentence_encoder = SentenceEncoderSettings(normalize=True) if told else None
    model.save(folder, tokenizer=loaded)
    return folder


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    return write_teacher(tmp_path_factory.mktemp("teacher") / "same", corpus.parent / "pieces")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A teacher with a tokenizer of its own, of letters."""
    folder = tmp_path_factory.mktemp("foreign")
    letters = [f"{mark}{sign}" for sign in "wq0123456789" for mark in ("", "##")]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces))
    return write_teacher(folder / "teacher", folder / "vocab.txt")


def student(folder: Path, *objectives: str, **changes: Any) -> Preset:
    return taught_preset(small("albert-tiny"), folder, objectives or ALL, changes)


@pytest.mark.parametrize(
    ("which", "objectives", "changes"),
    [
        ("teacher", ALL, {}),
        ("teacher", ("sentence_vectors",), {"data": {"batch_size": 40}}),
        ("foreign", ("masked_lm", "sentence_vectors"), {"teacher": {"cache_megabytes": 0}}),
    ],
)
def test_a_killed_run_ends_like_an_undisturbed_one(
    which: str, objectives: tuple[str, ...], changes: dict[str, Any], corpus: Path, tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    preset = student(request.getfixturevalue(which), *objectives, **changes)
    (whole,) = train(preset, corpus, tmp_path / "whole")
    assert whole.result is not None, whole.error
    (killed,) = train(preset, corpus, tmp_path / "killed", blow=Blow(8, SIGKILL))
    assert killed.result is None
    (told,) = train(preset, corpus, tmp_path / "killed")
    assert told.result is not None
    assert told.begun == (6,)
    assert not any("bit for bit" in message for message in told.said)
    assert_equal_endings(tmp_path / "killed", tmp_path / "whole")
    assert not (tmp_path / "whole" / "teacher.vectors").exists()


def test_the_teachers_vectors_are_learned(teacher: Path, corpus: Path, tmp_path: Path) -> None:
    changes = ["optimizer.learning_rate=1e-2", "log.every=10"]
    result = distill(
        teacher, small("albert-tiny"), corpus, tmp_path / "run", budget="60steps",
        objectives=["sentence_vectors"], overrides=changes,
    )  # fmt: skip
    assert result.finished
    lines = [line for line in read_metrics(tmp_path / "run") if isinstance(line, TrainingMetrics)]
    first, last = (line.loss["sentence_vectors"] for line in (lines[0], lines[-1]))
    assert first is not None
    assert last is not None
    assert last < 0.7 * first
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["taught_by"]


def test_the_student_is_a_sentence_encoder(teacher: Path, corpus: Path, tmp_path: Path) -> None:
    """sentence-transformers makes the same vectors, of length 1."""
    run = tmp_path / "run"
    distill(teacher, small("albert-tiny"), corpus, run, budget="3steps")
    texts = ["w1q w2q w3q", "w7q", "w140q w12q w9q w9q"]
    theirs = SentenceTransformer(str(run / "model"), device="cpu").encode(texts)
    model = litebert.load(run / "model")
    tokenizer = load_tokenizer(run / "model")
    np.testing.assert_allclose(embed_texts(model, tokenizer, texts), theirs, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(theirs, axis=1), 1, atol=1e-6)
    assert list(model.heads) == ["masked_lm"]  # what was needed to learn is not kept


# --------------------------------------------------------------------------------- the teacher


def open_teacher(folder: Path, store: Store, cache: Path | None = None, **options: Any) -> Any:
    settings = TeacherSettings(folder=str(folder), **{"precision": "fp32", **options})
    return PackedTeacher(
        settings, store.tokenizer, torch.device("cpu"), cache, asks_tokens=False, max_length=32
    )


def masked_batch(store: Store) -> Any:
    def mask(batch: Any) -> Any:
        positions = np.array([2, 5])
        ids = batch.ids.copy()
        ids[positions] = store.tokenizer.special.mask
        return batch.__class__(
            **{**vars_of(batch), "ids": ids, "positions": positions,
               "targets": batch.ids[positions]}
        )  # fmt: skip

    loading = LoaderSettings(input_format="doc-sentences", max_length=32, batch_size=12)
    return next(Loader(store, loading, mask))


def vars_of(batch: Any) -> dict[str, Any]:
    return {name: getattr(batch, name) for name in batch.__dataclass_fields__}


@pytest.mark.parametrize("which", ["teacher", "foreign"])
def test_a_teacher_reads_the_text_before_masking(
    which: str, corpus: Path, request: pytest.FixtureRequest
) -> None:
    folder, store = request.getfixturevalue(which), Store([corpus])
    found = open_teacher(folder, store)
    assert found.same_tokens == (which == "teacher")
    batch = masked_batch(store)
    edges = np.cumsum(batch.lengths)[:-1]
    texts = [store.tokenizer.decode(ids) for ids in np.split(unmasked(batch).ids, edges)]
    assert "[MASK]" not in " ".join(texts)
    vectors = found.vectors(to_inputs(batch, torch.device("cpu"))).numpy()
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = embed_texts(Model.load(folder), load_tokenizer(folder), texts)
    np.testing.assert_allclose(vectors, expected, atol=2e-3)  # 16-bit floats


@pytest.mark.parametrize("which", ["teacher", "foreign"])
def test_a_teacher_is_asked_within_a_step_in_bfloat16(
    which: str, corpus: Path, request: pytest.FixtureRequest
) -> None:
    folder, store = request.getfixturevalue(which), Store([corpus])
    inputs = to_inputs(masked_batch(store), torch.device("cpu"))
    expected = open_teacher(folder, store).vectors(inputs)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(open_teacher(folder, store).vectors(inputs), expected)


def test_relations_and_hidden_states_are_the_plain_models(teacher: Path, corpus: Path) -> None:
    store = Store([corpus])
    found, plain = open_teacher(teacher, store), Model.load(teacher)
    inputs = to_inputs(masked_batch(store), torch.device("cpu"))
    before = to_inputs(unmasked(inputs.batch), torch.device("cpu"))
    for layer in (1, 2):
        expected = before.encode(plain, layer).x_NH
        torch.testing.assert_close(
            found.hidden_states(inputs, layer), expected, atol=1e-5, rtol=1e-4
        )
        attention: Any = plain.encoder.attentions[layer - 1]
        state = before.embed(plain) if layer == 1 else before.encode(plain, layer - 1)
        torch.testing.assert_close(
            found.query_key_value(inputs, layer), attention.query_key_value(state.x_NH),
            atol=1e-5, rtol=1e-4,
        )  # fmt: skip


def test_a_text_is_read_once(teacher: Path, corpus: Path, tmp_path: Path, monkeypatch: Any) -> None:
    store = Store([corpus])
    found = open_teacher(teacher, store, tmp_path / "vectors")
    inputs = to_inputs(masked_batch(store), torch.device("cpu"))
    first = found.vectors(inputs)
    monkeypatch.setattr(found, "_encode", pytest.fail)
    assert torch.equal(found.vectors(inputs), first)
    again = open_teacher(teacher, store, tmp_path / "vectors")
    assert again.cache.restore(found.cache.save())
    monkeypatch.setattr(again, "_encode", pytest.fail)
    assert torch.equal(again.vectors(inputs), first)


def test_rows_after_a_checkpoint_are_forgotten(tmp_path: Path) -> None:
    rows = np.arange(12, dtype=np.float16).reshape(4, 3)
    cache = VectorCache(tmp_path / "rows", 3, 10**6)
    cache.add([5, 6, 5], rows[:3])
    saved = cache.save()
    assert saved.rows == 2
    cache.add([7], rows[3:])
    other = VectorCache(tmp_path / "rows", 3, 10**6)
    assert other.restore(saved)
    assert other.missing([7, 5, 6]) == [0]
    known, found = other.get([7, 6])
    assert known == [1]
    assert np.array_equal(found, rows[1:2])
    assert other.save() == saved
    full = VectorCache(None, 3, 2 * full_row())
    full.add([1, 2, 3], rows[:3])
    assert full.missing([1, 2, 3]) == [2]


@pytest.mark.parametrize("place", [0, 9, 20, None])
def test_a_damaged_file_of_rows_is_noticed(place: int | None, tmp_path: Path) -> None:
    """A changed byte, or the last one lost."""
    cache = VectorCache(tmp_path / "rows", 3, 10**6)
    cache.add([5, 6], np.ones((2, 3), np.float16))
    content = bytearray((tmp_path / "rows").read_bytes())
    if place is None:
        content.pop()
    else:
        content[place] ^= 4
    (tmp_path / "rows").write_bytes(content)
    other = VectorCache(tmp_path / "rows", 3, 10**6)
    assert not other.restore(cache.save())
    assert len(other) == 0
    other.add([7], np.ones((1, 3), np.float16))
    assert VectorCache(tmp_path / "rows", 3, 10**6).restore(other.save())


def full_row() -> int:
    return VectorCache(None, 3, 0).record.itemsize


def test_texts_are_named_by_what_was_masked(corpus: Path) -> None:
    batch = masked_batch(Store([corpus]))
    assert text_keys(batch) == text_keys(unmasked(batch))
    assert len(set(text_keys(batch))) == len(batch)


# ------------------------------------------------------------------------------- what is chosen


def test_objectives_follow_from_teacher_and_tokenizer(
    teacher: Path, foreign: Path, corpus: Path, tmp_path: Path
) -> None:
    store = Store([corpus])
    assert choose_objectives(teacher, store) == ("masked_lm", "relations", "sentence_vectors")
    assert choose_objectives(foreign, store) == ("masked_lm", "sentence_vectors")
    plain = write_teacher(tmp_path / "plain", corpus.parent / "pieces", told=False)
    assert choose_objectives(plain, store) == ("masked_lm", "relations")


def test_the_token_table_is_the_teachers(teacher: Path, corpus: Path, tmp_path: Path) -> None:
    """Words that the teacher finds alike are alike before the first step."""
    overrides = ["optimizer.learning_rate=1e-9", "initialization=truncated_normal"]
    run = tmp_path / "run"
    distill(teacher, small("albert-tiny"), corpus, run, budget="1steps", overrides=overrides)
    table = Model.load(teacher).encoder.embeddings.token.weight.detach()
    ours = litebert.load(run).encoder.embeddings.token.weight.detach()
    expected = squeezed(table, ours.shape[1])
    torch.testing.assert_close(
        ours / ours.std(), expected / expected.std(), atol=1e-4, rtol=1e-3
    )  # fmt: skip


def test_what_cannot_be_taught_is_refused(
    teacher: Path, foreign: Path, corpus: Path, tmp_path: Path
) -> None:
    tiny = small("albert-tiny")
    for objectives, message in (
        (["relations"], "--tokenizer"),
        (["masked_lm"], "nothing is learned from the teacher"),
        (["relation"], "nothing is learned"),
        (["masked_lm", "relations", "vectors"], "unknown objective 'vectors'"),
    ):
        with pytest.raises(SettingsError, match=message):
            distill(foreign, tiny, corpus, tmp_path / "run", objectives=objectives)
    with pytest.raises(SettingsError, match=r"reads 64 tokens; --set data\.max_length=64"):
        distill(teacher, tiny, corpus, tmp_path / "long", overrides=["data.max_length=128"])
    with pytest.raises(SettingsError, match=r"needs a \[teacher\]"):
        litebert.load_preset("albert-tiny", ['objectives=["masked_lm", "relations"]'])

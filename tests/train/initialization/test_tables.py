"""Tables, projection and bias that the corpus decides; everything else is as created."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from litebert.base.errors import SettingsError
from litebert.configs.load import load_preset
from litebert.corpus.statistics import token_counts
from litebert.corpus.store import Store
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.train.build import fit_to_corpus
from litebert.train.initialization.corpus import initialize_from_corpus
from litebert.train.initialization.tables import (
    FASTEST,
    LONGEST,
    ROW_LENGTH,
    SEGMENT_LENGTH,
    SPREAD,
    EmbeddingColumns,
    equally_long,
    shorter_where_frequent,
)
from litebert.train.initialization.word_vectors import word_vectors
from tests.corpus.stores import make_store, write_wordpiece
from tests.train.initialization.learners import FAMILIES, assert_orthogonal, fitted, fresh, started


def test_rows_of_frequent_tokens_are_shorter() -> None:
    """For means of tokens: by a / (a + frequency), and as long as others' where text is read."""
    vectors = torch.randn(6, 4, generator=torch.Generator().manual_seed(2))
    vectors[5] = 0.0  # never seen by the teacher
    counts = np.array([8_000, 1_000, 989, 10, 1, 0])
    equal, rows = equally_long(vectors), shorter_where_frequent(vectors, counts)
    torch.testing.assert_close(equal[:5].norm(dim=1), torch.full((5,), ROW_LENGTH))
    assert not equal[5].any()
    assert not rows[5].any()
    torch.testing.assert_close(torch.cosine_similarity(rows[:5], equal[:5]), torch.ones(5))
    lengths = rows[:5].norm(dim=1) / ROW_LENGTH
    weights = 1e-3 / (1e-3 + counts[:3] / 10_000)
    np.testing.assert_allclose(lengths[:3] / lengths[0], weights / weights[0], rtol=1e-5)
    torch.testing.assert_close(lengths[3:], torch.full((2,), LONGEST))
    common = np.array([300, 250, 200, 150, 100, 0])  # none so rare that its length is cut
    lengths = shorter_where_frequent(vectors, common).norm(dim=1).numpy()
    np.testing.assert_allclose((lengths * common).sum() / common.sum(), ROW_LENGTH, rtol=1e-5)


def is_counted(name: str, learner: Learner) -> bool:
    """Whether a tensor, by its name, has a start of its own."""
    owner, _, tail = name.partition(".")
    model = learner.get_submodule(owner)
    assert isinstance(model, Model)
    if tail == "heads.masked_lm.dense.weight":
        return model.encoder.projection is not None  # else E = H, and there is no way back
    if tail == "encoder.embeddings.segment.weight":
        return model.config.type_vocab_size > 1  # else there is nothing to tell apart
    return (tail.startswith("encoder.attentions.") and tail.endswith(
        ("query_key_value.weight", "output.weight")
    )) or tail in (
        "encoder.embeddings.token.weight", "encoder.embeddings.position.weight",
        "encoder.projection.weight", "heads.masked_lm.bias",
        "heads.span_boundary.bias",
    )  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_everything_else_is_as_created(family: str, stores: dict[str, Store]) -> None:
    plain, counted, _ = started(family, stores)
    changed = 0
    for name, tensor in counted.named_parameters():
        before = plain.get_parameter(name)
        assert tensor.shape == before.shape
        assert tensor.isfinite().all()
        assert tensor.dtype == torch.float32
        if is_counted(name, counted):
            assert not torch.equal(tensor, before), f"{name} is as before"
            changed += 1
        else:
            assert torch.equal(tensor, before), f"{name} has changed"
    assert changed >= 4


@pytest.mark.parametrize("family", FAMILIES)
def test_the_token_table_is_the_word_vectors_centred_and_of_one_length(
    family: str, stores: dict[str, Store]
) -> None:
    plain, counted, store = started(family, stores)
    columns = EmbeddingColumns(counted.model.config.embedding_size)
    found = word_vectors(store, token_counts(store), columns.tokens)
    known = found.abs().sum(1) > 0
    table = counted.model.encoder.embeddings.token.weight
    centred = found[known] - found[known].mean(0)
    wanted = centred / centred.square().sum(1, keepdim=True).sqrt() * ROW_LENGTH
    torch.testing.assert_close(table[known][:, : columns.tokens], wanted, rtol=1e-4, atol=1e-5)
    assert not table[known][:, columns.tokens :].any(), "these columns are not the words'"
    before = plain.model.encoder.embeddings.token.weight
    assert torch.equal(table[~known], before[~known])
    special = list(store.tokenizer.special.__dict__.values())
    assert not known[special].any()


@pytest.mark.parametrize("family", FAMILIES)
def test_positions_are_waves(family: str, stores: dict[str, Store]) -> None:
    _, counted, _ = started(family, stores)
    table = counted.model.encoder.embeddings.position.weight.double()
    places, width = table.shape
    waves = width // 8
    for place in (0, 1, 17, places - 1):
        for wave in range(waves):
            angle = place * FASTEST * ((wave + 1) / waves) ** SPREAD
            wanted = torch.tensor([math.sin(angle), math.cos(angle)], dtype=torch.float64)
            first = width - 2 * waves + 2 * wave
            found = table[place, first : first + 2]
            torch.testing.assert_close(found, wanted * ROW_LENGTH / waves**0.5, rtol=0, atol=2e-4)
    torch.testing.assert_close(table.norm(dim=1), torch.full_like(table[:, 0], ROW_LENGTH))
    assert not table[:, : width - 2 * waves].any()


@pytest.mark.parametrize("size", [64, 128])
def test_no_place_is_like_another(size: int) -> None:
    """Neighbours can be picked out: no two places within 512 are nearly alike."""
    columns = EmbeddingColumns(size)
    angles = torch.arange(512)[:, None] * columns.frequencies
    likeness = angles.cos().mean(1)
    assert likeness[0] == 1
    assert likeness[1:].max() < 0.7


@pytest.mark.parametrize("family", FAMILIES)
def test_segments_are_opposites(family: str, stores: dict[str, Store]) -> None:
    _, counted, _ = started(family, stores)
    table = counted.model.encoder.embeddings.segment.weight
    if len(table) < 2:
        return
    wanted = torch.zeros_like(table)
    wanted[:2, EmbeddingColumns(table.shape[1]).segment] = torch.tensor(
        [-SEGMENT_LENGTH, SEGMENT_LENGTH]
    )
    assert torch.equal(table, wanted)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_way_to_the_layers_and_back(family: str, stores: dict[str, Store]) -> None:
    _, counted, _ = started(family, stores)
    for model in counted.models():
        projection = model.encoder.projection
        assert (projection is None) == (family in ("bert", "roberta", "spanbert"))
        if projection is None:
            continue
        assert_orthogonal(projection.weight)
        if "masked_lm" in model.heads:
            head: Any = model.heads["masked_lm"]
            assert torch.equal(head.dense.weight, projection.weight.T)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_output_bias_is_the_log_of_smoothed_frequencies(
    family: str, stores: dict[str, Store]
) -> None:
    _, counted, store = started(family, stores)
    counts = token_counts(store)
    model = counted.generator or counted.model
    head: Any = model.heads["masked_lm"]
    wanted = [math.log((count + 1) / (counts.sum() + len(counts))) for count in counts]
    torch.testing.assert_close(head.bias, torch.tensor(wanted), rtol=1e-5, atol=1e-5)
    assert head.bias.exp().sum().item() == pytest.approx(1, rel=1e-5)


def test_electras_models_share_their_embeddings(stores: dict[str, Store]) -> None:
    _, counted, _ = started("electra", stores)
    assert counted.generator is not None
    assert counted.generator.encoder.embeddings is counted.model.encoder.embeddings


@pytest.mark.parametrize("family", ["albert", "electra"])
def test_the_same_values_every_time(family: str, stores: dict[str, Store]) -> None:
    torch.manual_seed(3)
    _, one, _ = started(family, stores)
    torch.manual_seed(4)
    _, two, _ = started(family, stores)
    for name, tensor in one.named_parameters():
        assert torch.equal(tensor, two.get_parameter(name))


def test_a_text_without_pairs_starts_quietly(tmp_path: Path) -> None:
    """One piece a document: no vectors to take, so the table stays as it was created."""
    documents = [[f"s{number}"] for number in range(30)]
    store = make_store(tmp_path / "store", documents, write_wordpiece(tmp_path / "tokenizer"))
    preset = fit_to_corpus(load_preset("albert-tiny"), store)
    plain, counted = fresh(preset), fresh(preset)
    initialize_from_corpus(counted, store, token_counts(store))
    table = counted.model.encoder.embeddings.token.weight
    assert torch.equal(table, plain.model.encoder.embeddings.token.weight)


def test_a_table_too_narrow_is_refused(stores: dict[str, Store]) -> None:
    preset, store = fitted("albert", stores)
    model = preset.model.model_copy(update={"embedding_size": 4})
    learner = fresh(preset.model_copy(update={"model": model}))
    with pytest.raises(SettingsError, match="embedding_size of 8 or more"):
        initialize_from_corpus(learner, store, token_counts(store))

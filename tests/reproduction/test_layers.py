"""Figure 1: how tokens move through the layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel

import litebert
from litebert.base.errors import LitebertError
from litebert.corpus.store import Store
from litebert.model.config import EncoderConfig
from litebert.model.model import Model
from litebert.reproduction.layers import layer_movements, roughness
from litebert.train.distributed import DistributedGroup
from litebert.train.held_out import held_out_batches
from tests.train.runs import write_store

SMALL = {
    "embedding_size": 16, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 2,
    "intermediate_size": 64, "max_position_embeddings": 64, "initializer_range": 0.2,
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> list[Path]:
    """Shared layers, and layers of their own."""
    folder, tokenizer = tmp_path_factory.mktemp("models"), Store([corpus]).tokenizer
    for sharing in ("all", "none"):
        config = EncoderConfig(vocab_size=tokenizer.vocab_size, sharing=sharing, **SMALL)
        Model.create(config, seed=2).save(folder / sharing, tokenizer=tokenizer)
    return [folder / "all", folder / "none"]


def test_distances_are_those_of_transformers_hidden_states(
    models: list[Path], corpus: Path
) -> None:
    settings = litebert.LoaderSettings(input_format="plain-pairs", max_length=32)
    batches = held_out_batches(Store([corpus]), settings, None, 1, DistributedGroup())
    from litebert.model.inputs import to_inputs

    inputs = to_inputs(next(iter(batches)), torch.device("cpu"))
    ours = layer_movements(litebert.load(models[0]), inputs)
    theirs = AutoModel.from_pretrained(models[0]).eval()
    types = torch.from_numpy(inputs.batch.token_types[None].astype(np.int64))
    with torch.no_grad():
        states = theirs(
            input_ids=inputs.ids[None], token_type_ids=types, output_hidden_states=True
        ).hidden_states
    for layer in range(4):
        before, after = states[layer][0], states[layer + 1][0]
        distance = (after - before).norm(dim=-1).numpy()
        cosine = torch.cosine_similarity(before, after, dim=-1).numpy()
        assert ours.distance_LN[layer] == pytest.approx(distance, abs=1e-4)
        assert ours.cosine_LN[layer] == pytest.approx(cosine, abs=1e-5)


def test_several_models_stand_in_one_picture_with_their_untrained_copies(
    models: list[Path], corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "layers.png"
    curves = litebert.layers(models, corpus=corpus, out=out, sequences=8, max_length=32)
    assert [one.name for one in curves] == ["all", "all, untrained", "none", "none, untrained"]
    assert out.read_bytes().startswith(b"\x89PNG")
    for one in curves:
        assert len(one.distance) == len(one.cosine_deviation) == 4
        assert one.as_dict()["roughness"] == one.roughness >= 0
    (alone,) = litebert.layers(models[:1], corpus=corpus, untrained=False, max_length=32)
    assert alone.tokens > 0


def test_roughness_is_the_change_from_layer_to_layer_without_the_first() -> None:
    assert roughness(np.asarray([9.0, 2.0, 2.0, 2.0])) == 0.0
    assert roughness(np.asarray([0.0, 1.0, 3.0])) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"out": "x.svg"}, "ends in .png"),
        ({"max_length": 100}, "choose 8 to 64"),
        ({"out": "no/such/x.png"}, "make it first"),
    ],
)
def test_what_cannot_be_followed_is_told(
    models: list[Path], corpus: Path, options: dict, said: str
) -> None:
    with pytest.raises(LitebertError) as error:
        litebert.layers(models, corpus=corpus, **options)
    assert said in str(error.value)

"""Training that goes on from another model: what fits, what is new, what is refused."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import litebert
from litebert.corpus.store import Store
from tests.mistakes.conftest import Refused, Trained
from tests.mistakes.pretraining import ALBERT, AS_FOUND, ELECTRA, arguments, assert_all_in, snapshot
from tests.parity.families import build, config


def own_model(store: Store, folder: Path, **changes: Any) -> Path:
    """A model folder of ours, with its tokenizer."""
    tokenizer = store.tokenizer
    size: dict[str, Any] = {
        "vocab_size": tokenizer.vocab_size, "embedding_size": 8, "hidden_size": 16,
        "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20,
        "max_position_embeddings": 64,
    }  # fmt: skip
    shape = litebert.EncoderConfig(**{**size, **changes})
    model = litebert.Model.create(shape, ("masked_lm", "sentence_pair"), seed=1)
    model.save(folder, tokenizer=tokenizer)
    return folder


def test_no_such_start(refused: Refused, corpus: Path, tmp_path: Path) -> None:
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run", "--from", tmp_path / "gone"))
    assert_all_in([str(tmp_path / "gone")], sentence)


def test_a_start_with_another_tokenizer(
    refused: Refused, stores: dict[str, Store], corpus: Path, tmp_path: Path
) -> None:
    model = own_model(stores["wordpiece"], tmp_path / "model")
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run", "--from", model))
    assert_all_in([str(corpus), str(model), "another tokenizer", "litebert prepare"], sentence)


def test_a_start_with_fewer_tokens(stopped: Refused, corpus: Path, tmp_path: Path) -> None:
    build("AlbertModel", config("albert")).save_pretrained(tmp_path / "model")
    sentence = stopped(*arguments(ALBERT, corpus, tmp_path / "run", "--from", tmp_path / "model"))
    assert_all_in(["vocab_size 6245", "99", "litebert prepare"], sentence)


def test_a_start_whose_positions_are_too_few(
    refused: Refused, stores: dict[str, Store], corpus: Path, tmp_path: Path
) -> None:
    model = own_model(stores["pieces"], tmp_path / "model", max_position_embeddings=16)
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run", "--from", model))
    assert_all_in(["32", "16 positions"], sentence)


def test_an_unfinished_run_as_start(refused: Refused, corpus: Path, tmp_path: Path) -> None:
    """Its checkpoints are not a model folder; the sentence names the run."""
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "run.json").write_text("{}")
    sentence = refused(*arguments(ALBERT, corpus, tmp_path / "run", "--from", tmp_path / "first"))
    assert_all_in([str(tmp_path / "first")], sentence)


def large_albert(vocabulary: int) -> Any:
    shape = config(
        "albert", vocab_size=vocabulary, max_position_embeddings=64, num_hidden_layers=1,
        hidden_dropout_prob=0, attention_probs_dropout_prob=0,
    )  # fmt: skip
    return build("AlbertModel", shape)


STILL = ["optimizer.learning_rate=1e-12", "optimizer.weight_decay=0"]


def test_continuing_from_a_hugging_face_model_without_heads(
    trained: Trained, stores: dict[str, Store], corpus: Path, tmp_path: Path
) -> None:
    theirs = large_albert(stores["pieces"].info.vocab_size)
    theirs.save_pretrained(tmp_path / "albert")
    words = arguments(AS_FOUND, corpus, tmp_path / "run", *STILL, "--from", tmp_path / "albert")
    _, err = trained(*words)
    said = " ".join(err.split())
    assert_all_in(["new", "heads.masked_lm", "heads.sentence_pair", "tokenizer"], said)
    ours = litebert.load(tmp_path / "run" / "model")
    before = litebert.load(tmp_path / "albert")
    for name, tensor in before.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], tensor, rtol=0, atol=1e-6)
    opened = transformers.AlbertForPreTraining.from_pretrained(tmp_path / "run" / "model")
    assert opened.config.hidden_size == theirs.config.hidden_size
    settings = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert settings["model"]["hidden_size"] == theirs.config.hidden_size


def test_settings_of_a_model_that_is_there(
    stopped: Refused, trained: Trained, finished: Path, corpus: Path, tmp_path: Path
) -> None:
    """Its shape cannot be changed; what has no tensors, such as dropout or a shared depth, can."""
    start = ["--from", finished]
    words = arguments(AS_FOUND, corpus, tmp_path / "run", "model.hidden_size=256", *start)
    assert_all_in(["does not fit", "(", "wanted"], stopped(*words))
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    free = ["model.hidden_dropout_prob=0.2", "model.num_hidden_layers=3"]
    trained(*arguments(AS_FOUND, corpus, tmp_path / "run", *free, *start))
    model = litebert.load(tmp_path / "run" / "model")
    assert (model.config.hidden_dropout_prob, model.config.num_hidden_layers) == (0.2, 3)
    assert model.config.hidden_size == 16


def test_continuing_from_a_run_of_ours(
    trained: Trained, finished: Path, corpus: Path, tmp_path: Path
) -> None:
    before = snapshot(finished)
    words = arguments(ALBERT, corpus, tmp_path / "run", *STILL, "--from", finished)
    _, err = trained(*words)
    assert "new, as" not in err
    one = litebert.load(finished / "model").state_dict()
    two = litebert.load(tmp_path / "run" / "model").state_dict()
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=0, atol=1e-6)
    assert snapshot(finished) == before
    assert json.loads((tmp_path / "run" / "run.json").read_text())["from"] == str(finished)


@pytest.mark.parametrize("part", ["", "model"])
def test_continuing_from_an_electra_run(
    part: str, trained: Trained, stores: dict[str, Store], tmp_path: Path
) -> None:
    """With its generator; from the discriminator alone a new generator is made and said."""
    folder = stores["wordpiece"].folders[0]
    trained(*arguments(ELECTRA, folder, tmp_path / "first"))
    start = tmp_path / "first" / part
    words = arguments(ELECTRA, folder, tmp_path / "second", *STILL, "--from", start)
    _, err = trained(*words)
    said = re.search(r"new.*generator", err) is not None
    assert said == bool(part)
    for name in ("model", "generator"):
        one = litebert.load(tmp_path / "first" / name).state_dict()
        two = litebert.load(tmp_path / "second" / name).state_dict()
        same = all(torch.allclose(one[key], two[key], rtol=0, atol=1e-6) for key in one)
        assert same or (part and name == "generator")

"""Fine-tuned folders that `transformers` saved: the engine says what `transformers` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from litebert.base.errors import FormatError
from litebert.inference.engine import Engine
from litebert.text.tokenizer import load_tokenizer
from tests.corpus.stores import write_wordpiece
from tests.parity.families import build, config
from tests.tasks.small import sentence

FAMILIES = ("albert", "bert", "roberta", "electra")


def save(folder: Path, family: str, head: str, **changes: Any) -> Any:
    """A tiny model of `transformers` with a tokenizer beside it."""
    tokenizer = load_tokenizer(write_wordpiece(folder / "tokenizer"))
    values = {"vocab_size": tokenizer.vocab_size, "pad_token_id": tokenizer.special.pad, **changes}
    model = build(f"{family.capitalize()}For{head}", config(family, **values), scale=0.3)
    model.save_pretrained(folder / "model")
    tokenizer.save(folder / "model")
    return model


def logits_of(model: Any, engine: Engine, ask: str, inputs: Any) -> Any:
    """What `transformers` says of the sequences that the engine made, one by one."""
    batch, outputs, start = engine.job(ask, inputs).batch, [], 0
    for length in batch.lengths.tolist():
        part = slice(start, start + length)
        ids, types = (
            torch.from_numpy(a[part]).long()[None] for a in (batch.ids, batch.token_types)
        )
        start += length
        with torch.no_grad():
            outputs.append(model(input_ids=ids, token_type_ids=types))
    return outputs


def softmax(logits: torch.Tensor) -> np.ndarray:
    return logits.double().softmax(-1).numpy()


@pytest.mark.parametrize("family", FAMILIES)
def test_sequence_classification(family: str, tmp_path: Path) -> None:
    names = {0: "bad", 1: "fair", 2: "good"}
    model = save(tmp_path, family, "SequenceClassification", id2label=names)
    engine = Engine(tmp_path / "model", precision="fp32")
    asked = [sentence(1), (sentence(2), sentence(3, 9)), sentence(4, 40)]
    said = engine.predict(asked)
    for one, output in zip(said, logits_of(model, engine, "predict", asked), strict=True):
        assert list(one.probabilities) == ["bad", "fair", "good"]
        assert np.allclose(list(one.probabilities.values()), softmax(output.logits[0]), atol=1e-5)


@pytest.mark.parametrize(
    "changes", [{"num_labels": 1}, {"num_labels": 1, "problem_type": "regression"}]
)
def test_regression(changes: dict[str, Any], tmp_path: Path) -> None:
    model = save(tmp_path, "bert", "SequenceClassification", **changes)
    engine = Engine(tmp_path / "model", precision="fp32")
    expected = logits_of(model, engine, "predict", [sentence(1)])[0].logits.item()
    assert engine.predict(sentence(1)).value == pytest.approx(expected, abs=1e-5)


def test_a_problem_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    save(tmp_path, "bert", "SequenceClassification", problem_type="multi_label_classification")
    with pytest.raises(FormatError, match="multi_label_classification: one label a text only"):
        Engine(tmp_path / "model", precision="fp32")


@pytest.mark.parametrize("family", FAMILIES)
def test_token_classification(family: str, tmp_path: Path) -> None:
    names = {0: "O", 1: "B-x", 2: "I-x"}
    model = save(tmp_path, family, "TokenClassification", id2label=names)
    engine = Engine(tmp_path / "model", precision="fp32")
    text = "w1q w2q, w3q (w4q)"
    found = engine.predict(text)
    logits = logits_of(model, engine, "predict", [text])[0].logits[0, 1:-1]  # a token a word here
    assert np.allclose(found.probabilities, softmax(logits), atol=1e-5)
    assert found.tags == tuple(names[int(best)] for best in logits.argmax(-1))


@pytest.mark.parametrize("family", FAMILIES)
def test_question_answering(family: str, tmp_path: Path) -> None:
    model = save(tmp_path, family, "QuestionAnswering")
    engine = Engine(tmp_path / "model", precision="fp32")
    asked = {"question": "w1q w2q", "passage": sentence(5, 20)}
    output = logits_of(model, engine, "predict", [asked])[0]
    start, end = output.start_logits[0, 4:-1], output.end_logits[0, 4:-1]
    scores = start[:, None] + end[None] + torch.full((20, 20), -torch.inf).tril(-1)
    first, last = divmod(int(scores.argmax()), 20)
    found = engine.predict(asked)
    assert found.text == " ".join(asked["passage"].split()[first : last + 1])
    assert found.candidates[0].score == pytest.approx(scores.max().item(), abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_multiple_choice(family: str, tmp_path: Path) -> None:
    model = save(tmp_path, family, "MultipleChoice")
    engine = Engine(tmp_path / "model", precision="fp32")
    for count in (2, 5):
        asked = {"question": "w1q", "passage": sentence(1), "options": ["w2q w3q"] * (count - 1)}
        asked["options"].append("w4q")
        batch = engine.job("predict", [asked]).batch
        parts = np.split(batch.ids, np.cumsum(batch.lengths)[:-1])
        types = np.split(batch.token_types, np.cumsum(batch.lengths)[:-1])
        with torch.no_grad():
            logits = [
                model(
                    input_ids=torch.from_numpy(ids).long()[None, None],
                    token_type_ids=torch.from_numpy(kind).long()[None, None],
                ).logits.item()
                for ids, kind in zip(parts, types, strict=True)
            ]
        expected = softmax(torch.tensor(logits))
        assert np.allclose(engine.predict(asked).probabilities, expected, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_fill_mask(family: str, tmp_path: Path) -> None:
    model = save(tmp_path, family, "MaskedLM")
    engine = Engine(tmp_path / "model", precision="fp32")
    text = "w1q w2q [MASK] w4q ."
    output = logits_of(model, engine, "fill_mask", [text])[0].logits[0, 3]
    best = torch.from_numpy(softmax(output)).topk(4)
    found = engine.fill_mask(text, top=4).masks[0]
    assert [c.token for c in found.candidates] == [engine.tokenizer.tokens[i] for i in best.indices]
    assert np.allclose([c.probability for c in found.candidates], best.values, atol=1e-6)

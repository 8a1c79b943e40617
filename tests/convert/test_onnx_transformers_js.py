"""Exported folders in transformers.js under Node, and in the runtime of browsers (wasm).

npm install --ignore-scripts @huggingface/transformers
LITEBERT_NODE_MODULES=$PWD/node_modules make parity
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

import litebert
from litebert.model.model import Model
from litebert.text.tokenizer import load_tokenizer
from litebert.text.training import train_from_sentences
from tests.convert.test_onnx_parity import make_model
from tests.tasks.small import sentence, write_start
from tests.text.conftest import KINDS, NORMALIZATIONS, SENTENCES, many_sentences

SCRIPT = Path(__file__).with_name("transformers_js.mjs")
NODE_MODULES = Path(os.environ.get("LITEBERT_NODE_MODULES", "node_modules")).resolve()
SIZES = {"sentencepiece": 260, "wordpiece": 500, "bpe": 400}
TEXT, QUESTION, PASSAGE = sentence(1), sentence(2, 3), sentence(3, 8)

pytestmark = [
    pytest.mark.extra,
    pytest.mark.skipif(
        not shutil.which("node") or not (NODE_MODULES / "@huggingface" / "transformers").is_dir(),
        reason="needs node, and LITEBERT_NODE_MODULES with npm's @huggingface/transformers",
    ),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders as they are exported, by head, and the models they came from."""
    root = tmp_path_factory.mktemp("models")
    start = write_start(root / "start")
    for head in ("classification", "masked_lm", "span"):
        model = make_model(Model.load(start).config, (head,), 3)
        model.save(root / "from" / head, tokenizer=start)
        litebert.export_model(root / "from" / head, root / head, "onnx")
    litebert.export_model(root / "from/masked_lm", root / "features", "onnx", head="features")
    return root


def ask(root: Path, folder: str, task: str, inputs: list[Any], dtype: str = "fp32") -> Any:
    job = {"folder": folder, "task": task, "dtype": dtype, "inputs": inputs}
    environment = {**os.environ, "LITEBERT_NODE_MODULES": str(NODE_MODULES)}
    done = subprocess.run(
        ["node", SCRIPT, root, json.dumps([job])], capture_output=True, text=True, check=False,
        env=environment, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)[0]


def ours(root: Path, head: str, *texts: str) -> tuple[Model, Any]:
    """The model, and its state after [CLS] A [SEP] (B [SEP])."""
    folder = root / "from" / head
    model, tokenizer = Model.load(folder).requires_grad_(False), load_tokenizer(folder)
    cls, sep = tokenizer.special.cls, tokenizer.special.sep
    first, *rest = [tokenizer.encode(text) for text in texts]
    ids, types = [cls, *first, sep], [0] * (len(first) + 2)
    for other in rest:
        ids, types = [*ids, *other, sep], [*types, *[1] * (len(other) + 1)]
    with torch.no_grad():
        return model, model(torch.tensor([ids]), segments=torch.tensor([types]))


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_tokenizers_give_our_ids(kind: str, normalization: str, tmp_path: Path) -> None:
    tokenizer = train_from_sentences(many_sentences(), kind, SIZES[kind], normalization)
    tokenizer.save(tmp_path / "tokenizer")
    found = ask(tmp_path, "tokenizer", "ids", SENTENCES)
    cls, sep = tokenizer.special.cls, tokenizer.special.sep
    assert found == [[cls, *tokenizer.encode(text), sep] for text in SENTENCES]


@pytest.mark.parametrize(("dtype", "tolerance"), [("fp32", 1e-4), ("q8", 0.05)])
def test_classification(root: Path, dtype: str, tolerance: float) -> None:
    model, state = ours(root, "classification", TEXT)
    expected = model.head("classification")(state)[0].softmax(-1)
    said = ask(root, "classification", "text-classification", [TEXT, {"top_k": 3}], dtype)
    found = {row["label"]: row["score"] for row in (said[0] if isinstance(said[0], list) else said)}
    for label, probability in zip(model.labels, expected.tolist(), strict=True):
        assert found[label] == pytest.approx(probability, abs=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [("fp32", 1e-4), ("q8", 0.1)])
def test_in_wasm(root: Path, dtype: str, tolerance: float) -> None:
    model, state = ours(root, "classification", TEXT)
    found = ask(root, "classification", "wasm", [TEXT], dtype)
    expected = model.head("classification")(state)[0].tolist()
    assert found["data"] == pytest.approx(expected, abs=tolerance)


def test_features(root: Path) -> None:
    _, state = ours(root, "masked_lm", TEXT)
    found = ask(root, "features", "feature-extraction", [TEXT, {"pooling": "mean"}])
    assert found["data"] == pytest.approx(state.mean()[0].tolist(), abs=1e-4)


def test_fill_mask(root: Path) -> None:
    tokenizer = load_tokenizer(root / "from" / "masked_lm")
    words = TEXT.split()
    model, _ = ours(root, "masked_lm", TEXT)
    ids = [
        tokenizer.special.cls,
        *tokenizer.encode(words[0]),
        tokenizer.special.mask,
        tokenizer.special.sep,
    ]
    with torch.no_grad():
        logits = model.head("masked_lm")(model(torch.tensor([ids])))[2]
    said = ask(root, "masked_lm", "fill-mask", [f"{words[0]} [MASK]"])
    best = said[0][0] if isinstance(said[0], list) else said[0]
    assert best["token"] == int(logits.argmax())
    assert best["score"] == pytest.approx(float(logits.softmax(-1).max()), abs=1e-4)


def test_question_answering(root: Path) -> None:
    """Its pipeline scores a span by the product of two probabilities over the passage's tokens."""
    said = ask(root, "span", "question-answering", [QUESTION, PASSAGE])
    answer = said[0] if isinstance(said, list) else said
    assert answer["answer"] in PASSAGE
    model, state = ours(root, "span", QUESTION, PASSAGE)
    start, end = model.head("span")(state).unbind(-1)
    words = PASSAGE.split()
    first = len(QUESTION.split()) + 2  # [CLS] question [SEP], a token a word
    places = range(first, first + len(words))
    scores = {(i, j): float(start[i] + end[j]) for i in places for j in places if j >= i}
    i, j = max(scores, key=lambda place: scores[place])
    assert answer["answer"] == " ".join(words[i - first : j - first + 1])

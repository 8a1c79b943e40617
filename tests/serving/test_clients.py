"""Clients that others wrote, against the routes they know; skipped where not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebert
from tests.serving.service import LABELS, Service
from tests.tasks.small import sentence

TEXTS = [sentence(number, 6) for number in range(3)]


@pytest.fixture(scope="module")
def vectors(folders: dict[str, Path]) -> Any:
    """What Python says, by model."""
    return {name: litebert.Engine(folder, "fp32").embed(TEXTS) for name, folder in folders.items()}


def test_openai(service: Service, vectors: Any) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{service.port}/v1", api_key="none")
    answer = client.embeddings.create(model="pretrained", input=TEXTS)  # it asks for base64
    found = [one.embedding for one in answer.data]
    np.testing.assert_allclose(found, vectors["pretrained"], atol=1e-5)
    assert answer.usage.total_tokens == sum(len(text.split()) + 2 for text in TEXTS)
    plain = client.embeddings.create(model="tuned", input=TEXTS[0], encoding_format="float")
    np.testing.assert_allclose(plain.data[0].embedding, vectors["tuned"][0], atol=1e-5)
    assert {model.id for model in client.models.list()} == {"tuned", "pretrained"}
    with pytest.raises(openai.NotFoundError, match="no model 'gpt'"):
        client.embeddings.create(model="gpt", input="w1q")
    with pytest.raises(openai.UnprocessableEntityError, match="dimensions"):
        client.embeddings.create(model="tuned", input="w1q", dimensions=7)
    client.close()


HUGGING_FACE = """
import json, sys
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

address, *texts = sys.argv[1:]
client = InferenceClient()
vectors = client.feature_extraction(texts[0], normalize=False, model=f"{address}/embed")
unit = client.feature_extraction(texts, model=f"{address}/embed")
scores = client.text_classification(texts[0], model=f"{address}/predict")
best = client.text_classification(texts[0], top_k=1, model=f"{address}/predict")
near = client.sentence_similarity(texts[0], texts[1:], model=f"{address}/similarity")
try:
    client.feature_extraction(texts[0], prompt_name="query", model=f"{address}/embed")
except HfHubHTTPError as error:
    refused = str(error)
told = [[[one.label, one.score] for one in found] for found in (scores, best)]
print(json.dumps([vectors.tolist(), unit.tolist(), *told, near, refused]))
"""


def test_huggingface_hub(service: Service, vectors: Any, folders: dict[str, Path]) -> None:
    """The client posts to the address that it is given: text-embeddings-inference's routes.

    In a process of its own, as this one has told the library that it is offline.
    """
    pytest.importorskip("huggingface_hub")
    environment = {name: v for name, v in os.environ.items() if name != "HF_HUB_OFFLINE"}
    found = subprocess.run(
        [sys.executable, "-c", HUGGING_FACE, f"http://127.0.0.1:{service.port}", *TEXTS],
        env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    embedded, unit, scores, best, near, refused = json.loads(found.stdout)
    np.testing.assert_allclose(embedded, vectors["tuned"][:1], atol=1e-5)
    rows = litebert.Engine(folders["tuned"], "fp32").embed(TEXTS, normalize=True)
    np.testing.assert_allclose(unit, rows, atol=1e-5)
    np.testing.assert_allclose(near, rows[1:] @ rows[0], atol=1e-5)
    expected = litebert.Engine(folders["tuned"], "fp32").predict(TEXTS[0]).probabilities
    assert dict(scores) == pytest.approx(expected, abs=1e-5)
    assert set(expected) == set(LABELS)
    assert best == scores[:1] == [max(scores, key=lambda row: row[1])]
    assert "no prompts" in refused


def test_plain_requests(service: Service, vectors: Any) -> None:
    """As LangChain and others do it."""
    requests = pytest.importorskip("requests")
    address = f"http://127.0.0.1:{service.port}"
    body = {"input": TEXTS, "model": "pretrained", "user": "somebody", "encoding_format": "float"}
    with requests.Session() as session:
        found = session.post(f"{address}/v1/embeddings", json=body, timeout=30)
        assert found.status_code == 200
        rows = [one["embedding"] for one in found.json()["data"]]
        np.testing.assert_allclose(rows, vectors["pretrained"], atol=1e-5)
        ranked = session.post(
            f"{address}/rerank", json={"query": TEXTS[0], "texts": TEXTS, "return_text": True},
            timeout=30,
        )  # fmt: skip
    assert ranked.json()[0] == {"index": 0, "score": pytest.approx(1, abs=1e-5), "text": TEXTS[0]}

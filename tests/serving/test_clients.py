"""Clients that others wrote, against the routes they know; skipped where not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebert
from tests.serving.service import Service
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

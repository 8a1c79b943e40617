"""The service as clients see it, in a process of its own."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litebert
from tests.serving.service import LABELS, Service
from tests.tasks.small import sentence
from tests.test_cli import run

TUNED, PRETRAINED = "/v1/models/tuned", "/v1/models/pretrained"


@pytest.fixture(scope="module")
def engines(folders: dict[str, Path]) -> dict[str, Any]:
    return {name: litebert.Engine(folder, "fp32") for name, folder in folders.items()}


def test_predictions_are_the_engines(service: Service, engines: dict[str, Any]) -> None:
    texts = [sentence(number, 4 + number) for number in range(5)]
    status, answer = service.post(f"{TUNED}/predict", {"inputs": texts})
    assert status == 200
    assert answer["model"] == "tuned"
    expected = engines["tuned"].predict(texts)
    for one, other in zip(answer["predictions"], expected, strict=True):
        assert one["label"] == other.label
        assert one["probabilities"] == pytest.approx(other.probabilities, abs=1e-5)
    assert answer["usage"]["tokens"] == sum(len(text.split()) + 2 for text in texts)
    status, single = service.post(f"{TUNED}/predict", {"inputs": texts[0]})
    assert status == 200
    assert single["predictions"][0]["label"] == expected[0].label


def test_vectors_masks_and_order(service: Service, engines: dict[str, Any]) -> None:
    engine, text = engines["pretrained"], sentence(3)
    _, answer = service.post(f"{PRETRAINED}/embed", {"inputs": [text]})
    np.testing.assert_allclose(answer["embeddings"], engine.embed([text]), atol=1e-5)
    masked = f"{text} [MASK] {text}"
    _, answer = service.post(f"{PRETRAINED}/fill-mask", {"inputs": masked, "top": 3})
    expected = engine.fill_mask(masked, top=3)
    found = [one["token"] for one in answer["masks"][0][0]]
    assert found == [one.token for one in expected.masks[0].candidates]
    body = {"first": sentence(1), "second": sentence(2)}
    _, answer = service.post(f"{PRETRAINED}/order", body)
    assert answer["in_order"] == pytest.approx(engine.order(*body.values()).probability, abs=1e-5)
    assert answer["in_order"] + answer["swapped"] == pytest.approx(1)
    _, answer = service.post(f"{TUNED}/tokenize", {"inputs": text})
    assert answer["inputs"][0]["tokens"] == text.split()
    start, end = answer["inputs"][0]["offsets"][1]
    assert text[start:end] == text.split()[1]


def test_what_is_never_cut_off_may_be_asked_not_to_be(service: Service) -> None:
    body = {"inputs": "w1q [MASK]", "truncate": False}
    assert service.post(f"{PRETRAINED}/fill-mask", body)[0] == 200
    pair = {"first": "w1q", "second": "w2q", "truncate": False}
    assert service.post(f"{PRETRAINED}/order", pair)[0] == 200
    assert service.post(f"{PRETRAINED}/order", {**pair, "first": "w1q " * 90})[0] == 422
    status, answer = service.post(f"{PRETRAINED}/order", {**pair, "exit": "patience=2"})
    assert (status, answer["error"]["param"]) == (422, "exit")


def test_the_layers_of_a_text(service: Service, engines: dict[str, Any]) -> None:
    text = sentence(4, 6)
    status, answer = service.post(f"{TUNED}/layers", {"input": text, "attention": True})
    assert status == 200, answer
    assert answer["tokens"] == ["[CLS]", *text.split(), "[SEP]"]
    assert np.shape(answer["distance"]) == np.shape(answer["cosine"]) == (3, 8)
    assert np.shape(answer["attention"]) == (3, 2, 8, 8)
    np.testing.assert_allclose(np.sum(answer["attention"], -1), 1, atol=1e-3)
    last = engines["tuned"].predict(text).probabilities
    assert answer["predictions"][-1]["probabilities"] == pytest.approx(last, abs=1e-5)
    middle = engines["tuned"].predict(text, depth=2).probabilities
    assert answer["predictions"][1]["probabilities"] == pytest.approx(middle, abs=1e-5)


def test_other_services_clients(service: Service, engines: dict[str, Any]) -> None:
    text = sentence(5)
    body = {"model": "pretrained", "input": [text, sentence(6)], "encoding_format": "base64"}
    status, answer = service.post("/v1/embeddings", body)
    assert status == 200
    import base64

    rows = [np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in answer["data"]]
    np.testing.assert_allclose(rows, engines["pretrained"].embed(body["input"]), atol=1e-5)
    status, answer = service.post("/predict", {"inputs": [[text], [sentence(7)]]})
    assert status == 200
    assert {one["label"] for one in answer[0]} == set(LABELS)
    assert answer[0][0]["score"] >= answer[0][1]["score"]
    # As text-embeddings-inference has it: a text and a list of one text are one input, and so is a
    # list of two, a pair.
    _, one = service.post("/predict", {"inputs": text})
    assert one == service.post("/predict", {"inputs": [text]})[1] == answer[0]
    _, raw = service.post("/predict", {"inputs": text, "raw_scores": True})
    assert [row["score"] for row in raw] == pytest.approx([np.log(row["score"]) for row in one])
    status, refused = service.post("/predict", {"inputs": [text, text, text]})
    assert (status, refused["error_type"]) == (422, "Validation")
    status, answer = service.post("/rerank", {"query": text, "texts": [sentence(8), text]})
    assert [one["index"] for one in answer] == [1, 0]
    assert answer[0]["score"] == pytest.approx(1, abs=1e-5)
    inputs = {"source_sentence": text, "sentences": [text]}
    assert service.post("/similarity", {"inputs": inputs})[1] == pytest.approx([1], abs=1e-5)
    status, answer = service.post("/embed", {"inputs": ""})
    assert status == 422
    assert answer["error_type"] == "Validation"


@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        ("predict", {"inputs": []}, 422, "inputs"),
        ("predict", {"inputs": ["a"] * 9}, 422, "inputs"),
        ("predict", {"inputs": "x" * 2001}, 422, "inputs"),
        ("predict", {"inputs": "  "}, 422, "inputs"),
        ("predict", {"inputs": 7}, 422, None),
        ("predict", {}, 422, "inputs"),
        ("predict", {"inputs": "a", "depht": 1}, 422, "depht"),
        ("predict", {"inputs": "a", "depth": 0}, 422, "depth"),
        ("predict", {"inputs": "a", "exit": "patience=2"}, 422, None),
        ("predict", {"inputs": "w1q " * 60, "truncate": False}, 422, "inputs"),
        ("predict", b"{", 400, None),
        ("predict", b'{"inputs": NaN}', 422, None),
        ("predict", b'{"inputs": "\\ud800"}', 400, None),
        ("predict", b"[" * 15000, 400, None),
        ("predict", b'"' + b"x" * 21000 + b'"', 413, None),
        ("fill-mask", {"inputs": "no mask"}, 404, None),
        ("embed", {"inputs": "a", "exit": "patience=2"}, 422, "exit"),
    ],
)
def test_bad_requests_are_one_sentence(
    service: Service, path: str, body: Any, status: int, param: str | None
) -> None:
    found, answer = service.post(f"{TUNED}/{path}", body)
    assert found == status, answer
    assert 0 < len(answer["error"]["message"]) < 300
    if param is not None:
        assert answer["error"]["param"] == param


def test_texts_that_are_cut_off_are_counted(service: Service) -> None:
    _, answer = service.post(f"{TUNED}/predict", {"inputs": ["w1q " * 60, "w1q"]})
    assert answer["usage"]["truncated"] == 1


def test_unknown_models_and_paths(service: Service) -> None:
    status, answer = service.post("/v1/models/other/predict", {"inputs": "a"})
    assert status == 404
    assert "tuned" in answer["error"]["message"]
    assert service.get("/nowhere")[0] == 404
    assert service.get("/playground/../serve.py")[0] == 404
    assert service.get(f"{TUNED}/predict")[0] == 405


def test_what_is_served(service: Service) -> None:
    _, answer = service.get("/v1/models")
    cards = {card["id"]: card for card in answer["data"]}
    assert cards["tuned"]["labels"] == list(LABELS)
    assert "predict" in cards["tuned"]["abilities"]
    assert "predict" not in cards["pretrained"]["abilities"]
    assert cards["pretrained"]["mask_token"] == "[MASK]"
    assert service.get("/health/live")[0] == service.get("/health/ready")[0] == 200
    status, page, headers = service.request("GET", "/")
    assert status == 200
    assert b"litebert" in page
    assert "default-src 'self'" in headers["content-security-policy"]
    status, _, _ = service.request("GET", "/", headers={"If-None-Match": headers["etag"]})
    assert status == 304
    _, page = service.get("/metrics")
    assert b'litebert_requests_total{route="/v1/models",status="200"}' in page


def test_runs_are_followed(service: Service) -> None:
    _, answer = service.get("/v1/runs")
    assert [run["name"] for run in answer["runs"]] == ["one"]
    _, answer = service.get("/v1/run?name=one")
    assert [line["step"] for line in answer["lines"]] == [1]
    _, again = service.get(f"/v1/run?name=one&offset={answer['offset']}")
    assert again["lines"] == []
    assert service.get("/v1/run?name=../one")[0] == 404


def test_designs_are_what_plan_says(service: Service) -> None:
    shape = {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12}
    _, answer = service.post("/v1/design", {**shape, "max_length": 128})
    (plan,) = litebert.plan(["albert-base"], max_length=128)
    assert answer["parameters"]["total"] == plan.parameters["total"]
    heads = sum(value for name, value in plan.flops.items() if name.startswith("head."))
    assert answer["flops_per_token"] == pytest.approx(plan.forward_flops - heads)
    status, answer = service.post("/v1/design", {**shape, "num_attention_heads": 7})
    assert status == 422
    assert "multiple" in answer["error"]["message"]


def test_a_request_keeps_its_id(service: Service) -> None:
    _, _, headers = service.request("GET", "/v1/models", headers={"X-Request-ID": "mine-1"})
    assert headers["x-request-id"] == "mine-1"
    _, _, headers = service.request("GET", "/v1/models", headers={"X-Request-ID": "no good"})
    assert headers["x-request-id"] != "no good"


def test_half_a_body_is_no_request(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(
            b"POST /v1/models/tuned/predict HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{"
        )
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: abc\r\n\r\n")
        assert b"400" in connection.recv(200)
    assert service.get("/health/ready")[0] == 200


@pytest.mark.parametrize("case", ["no folder", "no model", "two of a name", "open keys", "port"])
def test_bad_options_are_one_sentence(
    case: str, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    tuned = str(folders["tuned"])
    keys = tmp_path / "keys"
    keys.write_text("secret\n")
    keys.chmod(0o644)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        options, said = {
            "no folder": ([str(tmp_path / "none")], "no such model folder"),
            "no model": ([str(tmp_path)], "it has no config.json"),
            "two of a name": ([tuned, tuned], "two models are called 'tuned'"),
            "open keys": ([tuned, "--api-key-file", str(keys)], "chmod 600"),
            "port": ([tuned, "--port", str(taken.getsockname()[1])], "choose another port"),
        }[case]
        code = run(monkeypatch, "serve", *options)
    error = capsys.readouterr().err
    assert code == 2
    assert said in error
    assert error.splitlines()[-1].startswith("litebert: ")

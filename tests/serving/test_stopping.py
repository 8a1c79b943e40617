"""The first second and the last: not ready before it can answer, and no answer lost."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.serving.service import Service, write_models
from tests.tasks.small import sentence

CLIENTS = 12
# `litebert serve`, whose warm-up ends when a file is there: so that it can be looked at meanwhile.
SLOW_WARM_UP = """
import pathlib, sys, time
import litebert.serving.serve as module
from litebert.cli import main

warm, gate = module.warm, pathlib.Path(sys.argv.pop())

def slow(engine):
    while not gate.exists():
        time.sleep(0.01)
    warm(engine)

module.warm = slow
main()
"""


def test_warming_up_and_stopping_under_load(tmp_path: Path) -> None:
    folder = write_models(tmp_path)["tuned"]
    service = _begin(folder, tmp_path / "warm")
    body = {"inputs": "w1q"}
    assert _status(service, "GET", "/health/live") == 200
    assert _status(service, "GET", "/health/ready") == 503
    status, answer, headers = service.request("POST", "/v1/models/m/predict", body)
    assert (status, headers["retry-after"]) == (503, "2"), answer
    (tmp_path / "warm").touch()
    while not any(line.startswith("ready:") for line in service.lines):
        time.sleep(0.01)
    assert _status(service, "GET", "/health/ready") == 200
    assert service.request("POST", "/v1/models/m/predict", body)[0] == 200
    _stop_under_load(service)


def _stop_under_load(service: Service) -> None:
    clients = [_Client(service.port, number) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    while min(len(client.answers) for client in clients) < 3:
        time.sleep(0.01)
    assert service.stop() == 0
    lines = [json.loads(line) for line in service.lines if line.startswith("{")]
    for client in clients:
        client.join(30)
    received = {key: value for client in clients for key, value in client.answers.items()}
    assert set(received.values()) <= {200, 503, None}
    # Whatever the service says that it answered has arrived, whole.
    said = {line["id"]: line["status"] for line in lines if line.get("id", "").startswith("load")}
    assert {key: received[key] for key in said} == said
    lost = [key for key, status in received.items() if status is None and key in said]
    assert not lost
    in_flight = [line for line in lines if line.get("status") == 200]
    assert len(in_flight) > CLIENTS


class _Client(threading.Thread):
    """Asks on one connection until it is closed; answers by id, None where none came."""

    def __init__(self, port: int, number: int) -> None:
        super().__init__(daemon=True)
        self.port, self.number, self.answers = port, number, dict[str, int | None]()

    def run(self) -> None:
        body = json.dumps({"inputs": [sentence(n, 40) for n in range(40)]}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        for count in range(100_000):
            key = f"load-{self.number}-{count}"
            headers = {"Content-Type": "application/json", "X-Request-ID": key}
            try:
                connection.request("POST", "/v1/models/m/predict", body, headers)
                self.answers[key] = None
                response = connection.getresponse()
                content = json.loads(response.read())
            except (OSError, http.client.HTTPException):
                return  # the service is gone
            whole = len(content.get("predictions", ())) == 40 or "error" in content
            self.answers[key] = response.status if whole else None
            if response.status != 200:
                return


def _begin(folder: Path, gate: Path) -> Service:
    """A service that listens, and waits for a file before it is ready."""
    command = [sys.executable, "-c", SLOW_WARM_UP, "serve", f"m={folder}", "--port", "0"]
    command += ["--log-format", "json", str(gate)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.readline()
    while not said.startswith("listening: http://127.0.0.1:"):
        assert said, process.wait()
        said = process.stderr.readline()
    return Service(process, int(said.rsplit(":", 1)[1].rstrip("/\n")), [said])


def _status(service: Service, method: str, path: str) -> int:
    return service.request(method, path)[0]

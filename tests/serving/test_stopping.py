"""From the first second to the last: not ready before it can answer, and no request lost."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from litebert.serving import serve as serving
from litebert.serving.listener import STOPPING
from tests.serving.service import Service, write_models
from tests.tasks.small import sentence

pytestmark = pytest.mark.slow

CLIENTS, INPUTS = 8, 4
PREDICT = "/v1/models/m/predict"
KEY = {"Authorization": "Bearer secret"}
# `litebert serve` that stands still while files are there: in its warm-up, and between two layers.
HELD = """
import pathlib, sys, time
import litebert.serving.serve as serving
from litebert.cli import main
from litebert.inference.scheduler import Stepper

warm, step, folder = serving.warm, Stepper.step, pathlib.Path(sys.argv.pop())

def held(name, function):
    def wait_first(*given):
        while (folder / name).exists():
            (folder / f"{name}-waits").touch()
            time.sleep(0.005)
        return function(*given)
    return wait_first

serving.warm, Stepper.step = held("warm-up", warm), held("step", step)
main()
"""


def test_a_failure_to_warm_up_ends_the_service(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would listen for ever, and never be ready."""
    monkeypatch.setattr(serving, "warm", lambda engine: 1 / 0)
    switching, handlers = sys.getswitchinterval(), [signal.getsignal(n) for n in STOPPING]
    try:
        with pytest.raises(ZeroDivisionError):
            serving.serve([folders["tuned"]], port=0)
    finally:
        sys.setswitchinterval(switching)
    assert [signal.getsignal(n) for n in STOPPING] == handlers  # Ctrl-C works as before


def test_from_warming_up_to_stopping_under_load(tmp_path: Path) -> None:
    """One process for all of it, as to start one takes longer than the rest."""
    folder = write_models(tmp_path)["tuned"]
    (tmp_path / "warm-up").touch()
    service = _begin(folder, tmp_path)
    try:
        _check_warming_up(service)
        (tmp_path / "warm-up").unlink()
        _until(lambda: any(line.startswith("ready:") for line in service.lines))
        _check_keys(service)
        _check_stopping(service, tmp_path / "step")
    finally:
        (tmp_path / "step").unlink(missing_ok=True)
        service.process.kill()
        service.process.wait()


def _check_warming_up(service: Service) -> None:
    assert service.get("/health/live")[0] == 200
    assert service.get("/health/ready")[0] == 503
    status, answer, headers = service.request("POST", PREDICT, {"inputs": "w1q"}, KEY)
    assert (status, headers["retry-after"]) == (503, "2"), answer


def _check_keys(service: Service) -> None:
    body = {"inputs": sentence(1)}
    assert service.get("/health/ready")[0] == 200
    assert service.post(PREDICT, body)[0] == 401
    assert service.post(PREDICT, body, Authorization="Bearer wrong")[0] == 401
    assert service.post(PREDICT, body, **KEY)[0] == 200
    assert service.get("/metrics")[0] == 401


def _check_stopping(service: Service, hold: Path) -> None:
    clients = [_Client(service.port, number) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    _until(lambda: all(client.answers for client in clients))
    hold.touch()
    _until(hold.with_name("step-waits").exists)
    # And the question for it. Three times: what was computed before has left after the first.
    _until(lambda: all(_in_flight(service) == CLIENTS + 1 for _ in range(3)))
    waiting = {client.asked: client for client in clients}
    service.process.terminate()
    _until(lambda: service.get("/health/ready")[0] == 503)
    status, answer, headers = service.request("POST", PREDICT, {"inputs": "w1q"}, KEY)
    assert (status, headers["connection"]) == (503, "close"), answer
    held_until = time.monotonic() + 0.3  # longer than the server looks whether it should end
    while time.monotonic() < held_until:
        assert service.get("/health/ready")[0] == 503
    assert not any(key in client.answers for key, client in waiting.items())
    hold.unlink()
    assert service.process.wait(30) == 0
    for client in clients:
        client.join(30)
        assert not client.is_alive()
    assert {key: client.answers.get(key) for key, client in waiting.items()} == dict.fromkeys(
        waiting, 200
    )
    _check_log(service, clients)


def _check_log(service: Service, clients: list[_Client]) -> None:
    """Whatever the service says that it answered has arrived, and it does not say the texts."""
    service.reader.join(30)
    lines = [json.loads(line) for line in service.lines if line.startswith("{")]
    assert all(line["event"] == "request" for line in lines)
    said = {line["id"]: line["status"] for line in lines if line.get("id", "").startswith("load")}
    assert {key: value for one in clients for key, value in one.answers.items()} == said
    assert set(said.values()) <= {200, 503}
    asked = [line["status"] for line in lines if line["path"] == PREDICT and line["id"] not in said]
    assert asked == [503, 401, 401, 200, 503]
    assert sentence(1) not in service.log


class _Client(threading.Thread):
    """Asks on one connection until it is told to go, or nobody is there any more."""

    def __init__(self, port: int, number: int) -> None:
        super().__init__(daemon=True)
        self.port, self.number = port, number
        self.asked, self.answers = "", dict[str, int]()  # the newest; status by id, if it was whole

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with (
            contextlib.suppress(OSError, http.client.HTTPException),
            contextlib.closing(connection),
        ):
            while self._ask(connection) == 200:
                pass

    def _ask(self, connection: http.client.HTTPConnection) -> int:
        key = f"load-{self.number}-{len(self.answers)}"
        body = json.dumps({"inputs": [sentence(one, 30) for one in range(INPUTS)]})
        headers = {"Content-Type": "application/json", "X-Request-ID": key, **KEY}
        self.asked = key
        connection.request("POST", PREDICT, body, headers)
        response = connection.getresponse()
        content = json.loads(response.read())
        assert "error" in content or len(content["predictions"]) == INPUTS
        self.answers[key] = response.status
        return response.status


def _in_flight(service: Service) -> int:
    _, page = service.get("/metrics", **KEY)
    (found,) = re.findall(rb"\nlitebert_requests_in_flight (\d+)", page)
    return int(found)


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def _begin(folder: Path, gates: Path) -> Service:
    """A service that listens, and waits before it is ready."""
    keys = gates / "keys"
    keys.write_text("# of the team\nsecret\n")
    keys.chmod(0o600)
    command = [sys.executable, "-c", HELD, "serve", f"m={folder}", "--port", "0", "--log-format"]
    command += ["json", "--api-key-file", str(keys), str(gates)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.readline()
    while not said.startswith("listening: http://127.0.0.1:"):
        assert said, process.wait()
        said = process.stderr.readline()
    return Service(process, int(said.rsplit(":", 1)[1].rstrip("/\n")), [said])

"""A service of small models in a process of its own, and a plain client for it."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from litebert.model.config import EncoderConfig
from litebert.model.model import Model
from litebert.tasks.task import TASK_KEY
from litebert.text.tokenizer import load_tokenizer
from tests.corpus.stores import write_wordpiece

LABELS = ("blame", "praise")


def write_models(folder: Path) -> dict[str, Path]:
    """A classifier and a pretrained encoder with the heads of ALBERT, both untrained."""
    tokenizer = load_tokenizer(write_wordpiece(folder / "tokenizer"))
    config = EncoderConfig(
        vocab_size=tokenizer.vocab_size, embedding_size=16, hidden_size=32, num_hidden_layers=3,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=64,
    )  # fmt: skip
    classifier = Model.create(config, ("classification",), LABELS, seed=1)
    classifier.metadata[TASK_KEY] = {
        "name": "classify", "kind": "classify", "metrics": ["accuracy"], "labels": list(LABELS),
        "max_length": 48,
    }  # fmt: skip
    pretrained = Model.create(config, ("masked_lm", "sentence_pair"), seed=2)
    models = {"tuned": classifier, "pretrained": pretrained}
    for name, model in models.items():
        model.save(folder / name, tokenizer=tokenizer)
    return {name: folder / name for name in models}


@dataclass
class Service:
    """A running service."""

    process: subprocess.Popen[str]
    port: int
    said: list[str]
    lines: list[str] = field(default_factory=list)  # its log, as far as it has been read

    def __post_init__(self) -> None:
        # A pipe that nobody reads is full at 64 kB, and then the service waits, as it must.
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            self.lines.extend(stream)

    @property
    def log(self) -> str:
        """What it said until now."""
        return "".join(self.lines)

    def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Status, decoded body and headers of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        connection.request(method, path, data, sent)
        response = connection.getresponse()
        content, found = response.read(), dict(response.getheaders())
        connection.close()
        is_json = found.get("content-type", "").startswith("application/json")
        return response.status, json.loads(content) if is_json else content, found

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        status, answer, _ = self.request("POST", path, body, headers)
        return status, answer

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        status, answer, _ = self.request("GET", path, None, headers)
        return status, answer

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.process.terminate()
        code = self.process.wait(timeout=30)
        self.reader.join(timeout=30)
        return code


def start(*arguments: str | Path) -> Service:
    """Start `litebert serve` on a free port, and wait until it is ready."""
    command = [sys.executable, "-m", "litebert", "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line.rstrip("\n"))
        if found := re.match(r"ready: http://127\.0\.0\.1:(\d+)/", line):
            said.append(process.stderr.readline().rstrip("\n"))
            return Service(process, int(found[1]), said)
    raise AssertionError(f"exit code {process.wait()}: {said}")

"""A real S3 API on loopback: moto's server in a process of its own, and a proxy that misbehaves."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

BUCKET = "bucket"
FAULTS = ("reset", "error", "slow")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def s3_server() -> Iterator[int]:
    """moto's server; its port."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    environment = {name: v for name, v in os.environ.items() if not name.startswith("AWS_")}
    server = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(300):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield port
    finally:
        server.kill()
        server.wait()


def environment(port: int) -> dict[str, str]:
    """What a client must know."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip


@dataclass
class Proxy:
    """Passes bytes on between clients and a server, until a fault is due: then it misbehaves."""

    server: int
    chance: random.Random
    rate: float = 0.0  # of connections that get a fault
    faults: int = 0
    kinds: dict[str, int] = field(default_factory=dict)

    def __enter__(self) -> Proxy:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """One connection, which may carry many requests."""
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self.server)) as up:
            back = threading.Thread(target=self._pass, args=(up, client, True), daemon=True)
            back.start()
            self._pass(client, up, False)
            back.join()

    def _pass(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                fault = self._fault() if answers else None
                if fault == "slow":
                    time.sleep(0.3)
                elif fault == "reset":
                    target.sendall(data[: len(data) // 2])
                    for end in (target, source):
                        _reset(end)
                    return
                elif fault == "error" and data.startswith(b"HTTP/1.1 "):
                    data = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
                    target.sendall(data)
                    for end in (target, source):
                        end.shutdown(socket.SHUT_RDWR)
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def _fault(self) -> str | None:
        if self.chance.random() >= self.rate:
            return None
        kind = self.chance.choice(FAULTS)
        self.faults += 1
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        return kind


def _reset(end: socket.socket) -> None:
    """Have the other side told that the connection is gone.

    A thread may be reading from it; the connection stays until that is woken.
    """
    with suppress(OSError):
        end.shutdown(socket.SHUT_RD)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    end.close()


def s3_client(port: int) -> Any:
    """A client of the server itself, whatever the environment says."""
    import boto3  # pyright: ignore[reportMissingImports]

    return boto3.client(
        "s3", endpoint_url=f"http://127.0.0.1:{port}", aws_access_key_id="someone",
        aws_secret_access_key="secret", region_name="us-east-1",
    )  # fmt: skip

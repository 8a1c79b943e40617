"""The socket side: a bound port, connections that must not dawdle, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from litebert.base.errors import SettingsError
from litebert.serving.gate import Gate

BACKLOG = 8192  # connections that may wait to be accepted
FILES_APART = 256  # open files that are no connections


def bind(host: str, port: int) -> socket.socket:
    """A listening socket, before anything slow is done."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise SettingsError(
            f"--host {host} --port {port}: cannot be listened on ({error}); choose another port"
        ) from None
    return listener


def allow_many_files() -> int:
    """Raise this process's limit of open files to what it may have; says how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class _Server(uvicorn.Server):
    """uvicorn, but signals end it in order and with exit code 0; and it says when it listens."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._listening = listening

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ours are set in `listen`: uvicorn would raise them again at the end."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        await self._listening()


def protocol_with(header_seconds: float) -> type[HttpToolsProtocol]:
    """Connections that are closed when the first request's headers do not come in time."""

    class Punctual(HttpToolsProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.loop.call_later(header_seconds, self._check)

        def _check(self) -> None:
            if self.cycle is None and not self.transport.is_closing():
                self.transport.close()

    return Punctual


def listen(gate: Gate, listener: socket.socket, listening: Callable[[], Awaitable[None]]) -> None:
    """Serve until SIGTERM or Ctrl-C: then accept nothing new and finish what is in flight."""
    allow_many_files()
    limits = gate.door.limits
    config = uvicorn.Config(
        gate, http=protocol_with(limits.header_seconds), ws="none", lifespan="off",
        log_config=None, access_log=False, server_header=False, backlog=BACKLOG,
        timeout_graceful_shutdown=int(limits.stop_seconds) + 1, timeout_keep_alive=15,
        loop="uvloop",
    )  # fmt: skip
    server = _Server(config, listening)

    async def run() -> None:
        def stop() -> None:
            gate.door.stopping = True
            server.should_exit = True

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop)
        await server.serve([listener])

    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())

"""The socket side: a bound port, connections that must not dawdle, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from litebert.base.errors import SettingsError
from litebert.base.runtime import release_freed_memory
from litebert.serving.gate import HANG_UP, Gate
from litebert.serving.limits import Limits

STOPPING = (signal.SIGTERM, signal.SIGINT)
BACKLOG = 8192  # connections that may wait to be accepted
HEADER_BYTES = 65_536  # of a request's first line and headers
FRAMING = 8  # a chunked body may take so many times its bytes on the wire
CROWD, SETTLE = 1000, 2.0  # so many connections were a crowd; seconds until it has dispersed
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n"


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


def protocol_with(limits: Limits) -> type[HttpToolsProtocol]:
    """Connections that neither dawdle nor send headers without end, nor leave answers unread."""

    crowd = _Crowd()

    class Punctual(HttpToolsProtocol):
        late: asyncio.TimerHandle | None = None  # while a request is on its way to us
        received = 0  # bytes of that request
        running: Any = None  # the request that is being answered; `cycle` is the newest

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.expect()
            crowd.came(len(self.connections))

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.arrived()
            crowd.went(len(self.connections), self.loop)
            if self.running is not None and not self.running.response_complete:
                self.running.disconnected = True  # uvicorn says it of the newest only
                self.running.scope.get(HANG_UP, _nothing)()

        def _start_asgi_task(self, cycle: Any, app: Any) -> None:
            self.running = cycle
            super()._start_asgi_task(cycle, app)

        def data_received(self, data: bytes) -> None:
            if self.late is None:
                self.expect()
            self.received += len(data)
            super().data_received(data)
            # The parser keeps an unfinished header, however long, and all that follow a body.
            headers_only = self.scope is None or "method" not in self.scope
            most = HEADER_BYTES if headers_only else HEADER_BYTES + FRAMING * limits.body_bytes
            if self.late is not None and self.received > most and not self.transport.is_closing():
                self.transport.write(TOO_LARGE)
                self.transport.close()

        def on_message_complete(self) -> None:
            super().on_message_complete()
            self.arrived()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if left := self.transport.get_write_buffer_size():
                self.loop.call_later(limits.body_seconds, self.abandon, left)

        def expect(self) -> None:
            """A request is on its way, and has so many seconds."""
            self.late = self.loop.call_later(limits.header_seconds, self.check)

        def arrived(self) -> None:
            """It is here."""
            self.received = 0
            if self.late is not None:
                self.late.cancel()
                self.late = None

        def check(self) -> None:
            """Time is up; one whose answer is on its way is looked after by the gate."""
            if self.cycle is not None and not self.cycle.response_complete:
                self.expect()
            elif not self.transport.is_closing():
                self.transport.close()

        def abandon(self, left: int) -> None:
            """Answers that nobody reads are not kept."""
            if self.transport.get_write_buffer_size() >= left:
                self.transport.abort()

    return Punctual


class _Crowd:
    """Many connections at once take memory; when they are gone it is given back."""

    most = 0

    def came(self, connections: int) -> None:
        self.most = max(self.most, connections)

    def went(self, connections: int, loop: asyncio.AbstractEventLoop) -> None:
        """After the last of many: what they left behind is collected, and freed to the system."""
        if self.most >= CROWD and connections < CROWD // 10:
            self.most = 0
            loop.call_later(SETTLE, _tidy)


def _tidy() -> None:
    gc.collect()
    release_freed_memory()


def _nothing() -> None:
    pass


def listen(gate: Gate, listener: socket.socket, listening: Callable[[], Awaitable[None]]) -> None:
    """Serve until SIGTERM or Ctrl-C: then accept nothing new and finish what is in flight."""
    allow_many_files()
    limits = gate.door.limits
    config = uvicorn.Config(
        gate, http=protocol_with(limits), ws="none", lifespan="off",
        log_config=None, access_log=False, server_header=False, backlog=BACKLOG,
        timeout_graceful_shutdown=int(limits.stop_seconds) + 1, timeout_keep_alive=15,
        loop="uvloop",
    )  # fmt: skip
    server = _Server(config, listening)

    async def run() -> None:
        async def finish() -> None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(gate.door.empty.wait(), limits.stop_seconds)
            server.should_exit = True

        def stop() -> None:
            # Until the last answer is given, whoever comes is told so, and not cut off.
            if gate.door.stopping:  # asked twice: now
                server.should_exit = server.force_exit = True
            gate.door.stopping = True
            finishing.append(asyncio.ensure_future(finish()))

        finishing: list[asyncio.Future[None]] = []  # so that it is not collected
        for number in STOPPING:
            asyncio.get_running_loop().add_signal_handler(number, stop)
        await server.serve([listener])

    import uvloop

    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run())
    finally:  # the loop leaves handlers behind that do nothing
        for number, handler in before.items():
            signal.signal(number, handler)

"""The door of the service: who may come in, how many at a time, how much they may carry.

One layer of ASGI around everything else: an id for each request, keys, limits of size and time
before a body is read whole, concurrency, stopping, and a line in the log. It never sees what the
texts say, and neither does the log.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from random import getrandbits
from typing import Any

from starlette.requests import ClientDisconnect

from litebert.serving.limits import Limits
from litebert.serving.monitoring import Monitoring
from litebert.serving.problems import Problem, response_to

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

HANG_UP = "litebert.hang_up"  # in the scope: what to call when the connection is lost
CLIENT_CLOSED = 499  # in metrics and the log: the client went away
REQUEST_ID = re.compile(rb"[\w.-]{1,64}")
OPEN_ROUTES = ("/health/", "/playground/")  # no key is asked there: they tell nothing
OPEN_PAGES = frozenset({"/", "/docs", "/openapi.json", "/favicon.ico", "/health"})
# The pages load nothing from elsewhere, are in nobody's frame, and say so to the browser.
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy",
     b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"),
]  # fmt: skip
log = logging.getLogger("litebert.serving")


@dataclass
class Door:
    """What the gate counts; `ready` is set after the warm-up, `stopping` at the end."""

    limits: Limits
    keys: tuple[bytes, ...] = ()
    ready: bool = False
    stopping: bool = False
    inside: int = 0
    empty: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.empty.set()

    def enter(self) -> None:
        """One more; a full house or a closed one raises."""
        if self.stopping:
            raise Problem(503, "the service is stopping", retry_after=5)
        if not self.ready:
            raise Problem(503, "the service is warming up", retry_after=2)
        if self.inside >= self.limits.concurrent_requests:
            raise Problem(429, f"{self.inside} requests are being answered", retry_after=1)
        self.inside += 1
        self.empty.clear()

    def leave(self) -> None:
        """One less."""
        self.inside -= 1
        if not self.inside:
            self.empty.set()

    def check_key(self, headers: dict[bytes, bytes]) -> None:
        """Constant-time, whichever key it is."""
        if not self.keys:
            return
        given = headers.get(b"authorization", b"")
        scheme, _, token = given.partition(b" ")
        if scheme.lower() != b"bearer":
            token = headers.get(b"x-api-key", b"")
        matches = [hmac.compare_digest(token.strip(), key) for key in self.keys]
        if not any(matches):
            raise Problem(401, "a key is needed: Authorization: Bearer KEY")


class Gate:
    """The ASGI layer."""

    def __init__(self, app: App, door: Door, monitoring: Monitoring) -> None:
        self.app, self.door, self.monitoring = app, door, monitoring

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        await _Visit(self, scope, receive, send).go()


class _Visit:
    """One request on its way through the gate."""

    def __init__(self, gate: Gate, scope: Message, receive: Receive, send: Send) -> None:
        self.gate, self.scope, self._receive, self._send = gate, scope, receive, send
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        given = self.headers.get(b"x-request-id", b"")
        self.id = given if given and REQUEST_ID.fullmatch(given) else b"%032x" % getrandbits(128)
        self.status, self.taken, self.began = 0, 0, time.perf_counter()
        self.started = self.complete = self.gone = False

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    async def go(self) -> None:
        """Let the request in, or say why not."""
        door, is_open = self.gate.door, self._is_open()
        entered = False
        self._watch()
        try:
            if not is_open:
                door.check_key(self.headers)
                self._check_size()
                door.enter()
                entered = True
            await self.gate.app(self.scope, self.receive, self.send)
        except Problem as problem:
            await self._refuse(problem)
        except asyncio.CancelledError:
            if not self.gone:
                raise
            self.status = CLIENT_CLOSED
        except ClientDisconnect:
            self.status = CLIENT_CLOSED
        except Exception:
            log.exception("request %s failed", self.id.decode())
            await self._refuse(Problem(500, "an error of ours; the log has more under this id"))
        finally:
            self.scope.pop(HANG_UP, None)  # no circle of references is left behind
            if entered:
                door.leave()
            self._note()

    def _watch(self) -> None:
        """When the client goes away before it is answered, stop; the listener calls this."""
        task = asyncio.current_task()
        assert task is not None

        def hang_up() -> None:
            self.gone = True
            task.cancel()

        self.scope[HANG_UP] = hang_up

    def _is_open(self) -> bool:
        return self.path in OPEN_PAGES or self.path.startswith(OPEN_ROUTES)

    def _check_size(self) -> None:
        length = self.headers.get(b"content-length", b"0")
        most = self.gate.door.limits.body_bytes
        if not length.isdigit():
            raise Problem(400, "Content-Length is not a number")
        if len(length) > 15 or int(length) > most:
            raise Problem(413, f"a body of more than {most:,} bytes")

    async def receive(self) -> Message:
        """The body, piece by piece, not too slowly and not too much."""
        limits = self.gate.door.limits
        left = limits.body_seconds - (time.perf_counter() - self.began)
        try:
            async with asyncio.timeout(None if self.complete else max(left, 0.001)):
                message = await self._receive()
        except TimeoutError:
            raise Problem(408, f"no whole request within {limits.body_seconds:g} s") from None
        if message["type"] == "http.request":
            self.taken += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)
            if self.taken > limits.body_bytes:
                raise Problem(413, f"a body of more than {limits.body_bytes:,} bytes")
        return message

    async def send(self, message: Message) -> None:
        """The response, with our headers."""
        if message["type"] == "http.response.start":
            self.started, self.status = True, message["status"]
            more = [*message["headers"], *HEADERS, (b"x-request-id", self.id)]
            if self.gate.door.stopping or self._leaves_much_unread():
                more.append((b"connection", b"close"))
            message = {**message, "headers": more}
        await self._send(message)

    async def _refuse(self, problem: Problem) -> None:
        if self.started:
            return
        await response_to(problem, self.path)(self.scope, self._receive, self.send)

    def _leaves_much_unread(self) -> bool:
        """Whether the rest of the body, which nobody wants, is long or of unknown length."""
        if self.complete or not self.headers.keys() & {b"content-length", b"transfer-encoding"}:
            return False
        length = self.headers.get(b"content-length", b"")
        small = length.isdigit() and len(length) < 9
        return not small or int(length) > self.gate.door.limits.body_bytes

    def _note(self) -> None:
        seconds = time.perf_counter() - self.began
        self.gate.monitoring.request(route_of(self.scope), self.status, seconds)
        level = logging.DEBUG if self._is_open() or self.path == "/metrics" else logging.INFO
        if log.isEnabledFor(level):
            log.log(level, "request", extra={"fields": {
                "id": self.id.decode(), "method": self.scope["method"], "path": self.path[:200],
                "status": self.status, "milliseconds": round(1000 * seconds, 1),
                "bytes": self.taken,
            }})  # fmt: skip


def route_of(scope: Message) -> str:
    """The route's pattern, so that metrics have few names; "none" for unknown paths."""
    route = scope.get("route")
    return getattr(route, "path", "none")

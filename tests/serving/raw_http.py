"""Bytes that no decent client sends, against a running service: does it live, and stay small?

    python -m tests.serving.raw_http [--mutants 20000] [--seed 0] [--gigabytes 1]

Slow headers, half bodies, wrong lengths, bodies without end, deep JSON, NaN, surrogates, NUL, a
million inputs, answers that nobody reads, and mutants of good requests. After each the service must
answer, with no status of 500 or more but 503 and 504 on the way, and no more memory than BOUND.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.serving.service import Service, start, write_models

PATH = "/v1/models/tuned/predict"
GOOD = b'{"inputs": "w1q w2q w3q"}'
BOUND = 300  # megabytes that an attack may cost
SOON, LONGEST, PATIENCE = 1.0, 3.0, 15.0  # seconds
AT_ONCE, CLOSE = 400, "Connection: close"
CHUNKED = "Transfer-Encoding: chunked"
Attack = Callable[[int], Iterable[bytes]]  # of a port: what was answered


def request(
    body: bytes = GOOD, *headers: str, length: int | str | None = None, path: str = PATH
) -> bytes:
    """A POST, with a length that need not be true."""
    size = len(body) if length is None else length
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", *headers]
    lines += [] if length == "" else [f"Content-Length: {size}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        yield connection


def read_all(connection: socket.socket, seconds: float = PATIENCE) -> bytes:
    """What comes until the other side closes, or for so long."""
    found, end = b"", time.perf_counter() + seconds
    with contextlib.suppress(OSError):
        while True:
            connection.settimeout(max(end - time.perf_counter(), 0.001))
            part = connection.recv(65536)
            if not part:
                return found
            found += part
    return found


def sent(*messages: bytes) -> Attack:
    """Each on a connection of its own, many at once."""

    def attack(port: int) -> Iterator[bytes]:
        for first in range(0, len(messages), AT_ONCE):
            with contextlib.ExitStack() as held:
                waiting = []
                for message in messages[first : first + AT_ONCE]:
                    waiting.append(held.enter_context(connected(port)))
                    with contextlib.suppress(OSError):
                        waiting[-1].sendall(message)
                end = time.perf_counter() + LONGEST
                for connection in waiting:
                    yield read_all(connection, end - time.perf_counter())

    return attack


def bodies(*contents: bytes) -> Attack:
    return sent(*(request(content, CLOSE) for content in contents))


def kept_waiting(*messages: bytes) -> Attack:
    """Beginnings that never end, all at once: the service must hang up by itself."""

    def attack(port: int) -> Iterator[bytes]:
        with contextlib.ExitStack() as held:
            waiting = [held.enter_context(connected(port)) for _ in messages]
            for connection, message in zip(waiting, messages, strict=True):
                connection.sendall(message)
            for connection in waiting:
                yield read_all(connection)
                assert is_closed(connection), "the connection is still open"

    return attack


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def flood(head: bytes, part: bytes, total: int) -> Attack:
    """So many bytes after a beginning, unless the service hangs up before."""

    def attack(port: int) -> Iterator[bytes]:
        with connected(port) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(head)
                for _ in range(total // len(part)):
                    connection.sendall(part)
            yield read_all(connection, SOON)

    return attack


def unread(port: int) -> Iterator[bytes]:
    """Large answers, asked for one after the other and never read."""
    body = json.dumps({"input": " ".join(["w1q"] * 40), "attention": True}).encode()
    asked = request(body, path="/v1/models/tuned/layers")
    with connected(port) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with contextlib.suppress(OSError):
            connection.sendall(asked * 50)
        time.sleep(SOON)
    yield b""


def quick_attacks(millions: float = 0.5) -> dict[str, Attack]:
    """By name; those that wait for the service take as long as its limits."""
    return {
        "slow headers": kept_waiting(
            b"P", b"POST / HTTP/1.1\r\nHost: x\r\n", b"\r\n", b"GET / HTTP/1.1\r\nX: ",
            request(b"{", length=500), chunked(b"5\r\nab"),
        ),
        "half bodies": sent(request(b"{", length=500), request(b"", length=5), chunked(b"f\r\n")),
        "wrong lengths": wrong_lengths(),
        "large bodies": sent(request(b"x", length=10**9), request(b" " * 3_000_000)),
        "deep JSON": deep_bodies(),
        "odd values": odd_values(),
        "many inputs": many_inputs(int(millions * 1e6)),
        "no HTTP": no_http(),
        "large headers": sent(
            get(b"/", b"X: " + b"y" * 70_000), get(b"/" + b"a" * 200_000),
            get(b"/", b"X: y\r\n" * 50_000), get(b"/", b"X: " + b"y" * 1_000_000)[:-4],
        ),
        "pipelined": sent(request() * 200, get(b"/health/live") * 1000),
        "answers unread": unread,
    }  # fmt: skip


def chunked(body: bytes) -> bytes:
    return request(body, CHUNKED, length="")


def get(path: bytes, header: bytes = b"Host: x", version: bytes = b"1.1") -> bytes:
    return b"GET " + path + b" HTTP/" + version + b"\r\n" + header + b"\r\n\r\n"


def wrong_lengths() -> Attack:
    lengths = (3, 10**6, -1, "+5", "0x10", "٣", 10**30, "1 1")
    chunks = (b"zz\r\n", b"ffffffffffffffffff\r\n", b"-1\r\n")
    return sent(
        *(request(GOOD, CLOSE, length=length) for length in lengths), *map(chunked, chunks),
        request(GOOD, "Content-Length: 7"), request(GOOD, CHUNKED), request(b"x", length=10**9),
    )  # fmt: skip


def deep_bodies() -> Attack:
    deep = b"[" * 400_000
    return bodies(deep, b'{"a":' * 200_000, b'{"inputs":' + deep, b"[" * 300 + b"]" * 300)


def odd_values() -> Attack:
    texts = (
        rb"\ud800", rb"\udc00\ud800 w1q", rb"\u0000", rb"w1q \u0000 w2q", b"\x00", b"\xff\xfe",
        "\u202e\u0301\ud7ff\U0010ffff".encode() * 100,
    )  # fmt: skip
    values = (b"NaN", b"-Infinity", b"1e999", b'{"words": []}', b'"w1q", "inputs": 3')
    more = (b'"depth": 1e400', b'"depth": 99999999999999999999', b'"deadline": 1e-300')
    return bodies(
        *(b'{"inputs": "' + text + b'"}' for text in texts),
        *(b'{"inputs": ' + value + b"}" for value in values),
        *(b'{"inputs": "w1q", ' + option + b"}" for option in more),
        b"", b"null", b"NaN", b"{}" * 1000, b"\xef\xbb\xbf" + GOOD,
        GOOD.decode().encode("utf-16"), GOOD,
    )  # fmt: skip


def many_inputs(many: int) -> Attack:
    inside = (b"0", b'""', b"[]", b'{"words":["a"]}')
    listed = [b'{"inputs": [' + one + (b"," + one) * (many // len(one)) + b"]}" for one in inside]
    return bodies(*listed, b'{"inputs": {"words": ["a"' + b',"a"' * (many // 4) + b"]}}")


def no_http() -> Attack:
    return sent(
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\r\n\r\n", get(b"/", version=b"9.9"), b"\x00" * 1000,
        b"\r\n" * 1000, get(b"\xff\xfe"),
        get(b"http://"), b"CONNECT x:1 HTTP/1.1\r\n\r\n", get(b"/%00%ff%2e%2e/"),
        get(b"/v1/run?name=%00&offset=x"), get(b"/v1/models", CLOSE.encode()),
        get(b"/v1/models", b"Connection: upgrade\r\nUpgrade: websocket"),
        get(b"/v1/models", b"X-Request-ID: \xff\r\nAuthorization: \xff"),
    )  # fmt: skip


def long_attacks(gigabytes: float) -> dict[str, Attack]:
    """What has no end, as far as a disk's worth of bytes."""
    total, part = int(gigabytes * 1e9), b"x" * 1_000_000
    chunk, header = b"%x\r\n%s\r\n" % (len(part), part), b"X: y\r\n" * 10_000
    crowd = [request(b"{", length=500)[: 20 + number % 100] for number in range(1000)]
    return {
        "a body without end": flood(request(b"", length=total), part, total),
        "chunks without end": flood(chunked(b""), chunk, total),
        "tiny chunks without end": flood(chunked(b""), b"1\r\nx\r\n" * 10_000, total // 20),
        "a header without end": flood(b"GET / HTTP/1.1\r\nX: ", part, total),
        "headers without end": flood(b"GET / HTTP/1.1\r\n", header, total),
        "trailers without end": flood(chunked(b"0\r\n"), header, total),
        "a body to no page": flood(request(b"", length=total, path="/no"), part, total),
        "a thousand slow ones": kept_waiting(*crowd),
    }


def mutants(count: int, seed: int) -> Iterator[bytes]:
    """Good requests with bytes changed, doubled, left out, or moved."""
    draw = random.Random(seed)
    options = b'{"inputs": ["w1q", "w2q"], "depth": 2, "truncate": false}'
    seeds = [
        request(GOOD, CLOSE), request(options, CLOSE), chunked(b"19\r\n" + GOOD + b"\r\n0\r\n\r\n"),
        request(b'{"input": "w1q w2q", "model": "tuned"}', CLOSE, path="/v1/embeddings"),
        get(b"/v1/models", CLOSE.encode()), get(b"/openapi.json", CLOSE.encode()),
    ]  # fmt: skip
    special = [
        b"\x00",
        b"\r\n",
        b"\xff",
        b"%",
        b"{",
        b"[",
        b'"',
        b"\\u",
        b"9" * 20,
        b"-",
        b":",
        b" ",
    ]
    for _ in range(count):
        message = bytearray(draw.choice(seeds))
        for _ in range(draw.randint(1, 6)):
            place = draw.randrange(len(message) + 1)
            end = min(len(message), place + draw.randint(0, 8))
            message[place:end] = draw.choice(
                [b"", draw.choice(special), draw.randbytes(2), bytes(message[place:end]) * 3]
            )
        yield bytes(message)


STATUS = re.compile(rb"(?:^|\n)HTTP/1\.1 (\d\d\d) ")
ALLOWED = {503, 504}


def statuses(answer: bytes) -> list[int]:
    return [int(found) for found in STATUS.findall(answer)]


def memory(service: Service) -> float:
    """Resident megabytes."""
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


def check_attack(service: Service, attack: Attack) -> list[int]:
    """Attack, and look whether the service is well; the statuses that it answered with."""
    before = memory(service)
    found = [status for answer in attack(service.port) for status in statuses(answer)]
    bad = [status for status in found if status >= 500 and status not in ALLOWED]
    assert not bad, bad
    status, answer = service.post(PATH, json.loads(GOOD))
    assert status == 200, answer
    grown = memory(service) - before
    assert grown < BOUND, f"{grown:.0f} MB more"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mutants", type=int, default=20_000)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of what has no end")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        limits = ["header_seconds=2", "body_seconds=2"]
        folder = write_models(Path(scratch))["tuned"]
        service = start(folder, *(part for limit in limits for part in ("--set", limit)))
        began = memory(service)
        attacks = {**quick_attacks(1.0), **long_attacks(options.gigabytes)}
        attacks["mutants"] = sent(*mutants(options.mutants, options.seed))
        failures = 0
        for name, attack in attacks.items():
            started = time.perf_counter()
            try:
                found = check_attack(service, attack)
                said = f"answered {sorted(set(found))}"
            except AssertionError as error:
                failures, said = failures + 1, f"FAILED: {error}"
            seconds = time.perf_counter() - started
            print(f"{name:24} {seconds:6.1f} s, {memory(service):5.0f} MB  {said}", flush=True)
        print(f"{len(attacks)} attacks, {options.mutants:,} mutants: {failures} failures; memory "
              f"{began:.0f} -> {memory(service):.0f} MB, exit code {service.stop()}")  # fmt: skip
        if "failed" in service.log:
            print(service.log[-3000:])
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())

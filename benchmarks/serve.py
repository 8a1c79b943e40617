"""The service against its own engine, against the usual way, and under more than it can bear.

    python benchmarks/serve.py [--case albert-mini] [--part crowd] [--seconds 10]

Everything on loopback, in one run, on the same weights and sentences:

engine    the engine alone, 64 requests in flight
service   `litebert serve`, asked by wrk (Debian's) or our own client      bar: 90 % of the engine
usual     FastAPI and a transformers pipeline in its thread pool           bar: a service 8x as fast
steady    50 requests a second for 30 seconds                              bar: no failure
crowd     5,000 connections at once, three times           bar: 200 and 429 only, memory goes back
mixed     short requests alone, and beside batches of 512 tokens           bar: p99 at most doubled
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from inference import make_model, sentences

IN_FLIGHT = 64
ROUNDS = 3  # of engine, service and the usual way, in turns
PARTS = ["speed", "mixed", "crowd", "steady"]
WARM_UP = 2.0  # seconds, on every side
SETTLE = 5.0  # seconds after a crowd
SHORT, LONG = 24, 480  # tokens
WRK_SCRIPT = """
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
local place = 0
request = function()
  place = place %% #bodies + 1
  return wrk.format("POST", "%s", {["Content-Type"] = "application/json"}, bodies[place])
end
"""


def engine_rate(folder: Path, precision: str, seconds: float) -> float:
    """Sentences a second of the engine alone, in a process of its own."""
    found = subprocess.run(
        [sys.executable, __file__, "--engine", str(folder), "--precision", precision,
         "--seconds", str(seconds)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(found.stdout)


def run_engine(folder: Path, precision: str, seconds: float) -> None:
    """What `engine_rate` starts: IN_FLIGHT requests, one more for each that is done."""
    import threading

    import litebert

    engine, texts = litebert.Engine(folder, precision), sentences(2000)
    room, done = threading.Semaphore(IN_FLIGHT), [0]

    def finished(_: Any) -> None:
        done[0] += 1
        room.release()

    def run(duration: float) -> float:
        began, before, place = time.perf_counter(), done[0], 0
        while time.perf_counter() - began < duration:
            room.acquire()
            engine.submit(texts[place % len(texts)]).add_done_callback(finished)
            place += 1
        return (done[0] - before) / (time.perf_counter() - began)

    run(WARM_UP)
    print(run(seconds))


class Running:
    """A server in another process, until the end of a `with`."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.port = 0
        for line in self.process.stderr:
            if found := re.search(r"(?:ready: http|running on http)://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        if not self.port:
            sys.exit(f"{' '.join(command)}: did not start")
        import threading

        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def memory(self) -> float:
        """Resident megabytes."""
        return self._status("VmRSS")

    def peak(self) -> float:
        """The most that were resident so far."""
        return self._status("VmHWM")

    def _status(self, name: str) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(rf"{name}:\s+(\d+)", status)[0]) / 1024

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)


def load(port: int, path: str, bodies: list[str], seconds: float) -> tuple[float, int]:
    """Answers a second with IN_FLIGHT connections, and how many were none.

    They are counted by the server, between two moments of a longer run: what is in flight when the
    clients begin and end would be a tenth of a short run otherwise.
    """
    with tempfile.TemporaryDirectory() as scratch:
        lines, script = Path(scratch, "bodies"), Path(scratch, "load.lua")
        lines.write_text("\n".join(bodies) + "\n")
        script.write_text(WRK_SCRIPT % (lines, path))
        own = [sys.executable, __file__, "--clients", str(lines), path]
        wrk = ["wrk", "-t1", f"-c{IN_FLIGHT}", "--timeout", "60s", "-s", str(script)]
        command = wrk if shutil.which("wrk") else own
        clients = subprocess.Popen(
            [*command, f"-d{WARM_UP + seconds + 1:g}s", f"http://127.0.0.1:{port}"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(WARM_UP)
        began, before = time.perf_counter(), answered(port)
        time.sleep(seconds)
        after, ended = answered(port), time.perf_counter()
        said = clients.communicate()[0]
    bad = re.findall(r"(?:Non-2xx or 3xx responses:|connect|read|write|timeout) (\d+)", said)
    return (after - before) / (ended - began), sum(map(int, bad))


def answered(port: int) -> int:
    """How many requests a server has answered well so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
        found = re.findall(r'requests_total\{route="[^"]*predict",status="200"\} ([\d.]+)',
                           page.read().decode())  # fmt: skip
    return int(sum(map(float, found)))


async def run_clients(port: int, path: str, bodies: list[str], seconds: float) -> None:
    """What stands in where there is no wrk."""
    bad, end = 0, time.perf_counter() + seconds

    async def client(place: int) -> None:
        nonlocal bad
        while time.perf_counter() < end:
            status, _ = await ask(port, path, bodies[place % len(bodies)])
            bad, place = bad + (status != 200), place + IN_FLIGHT

    await asyncio.gather(*map(client, range(IN_FLIGHT)))
    print(f"Non-2xx or 3xx responses: {bad}")


async def ask(port: int, path: str, body: str) -> tuple[int, float]:
    """Status and seconds of one request on a connection of its own; 0 where it broke."""
    began = time.perf_counter()
    data = body.encode()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "
            f"application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode()
            + data
        )
        answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        return int(answer.split(b" ", 2)[1]), time.perf_counter() - began
    except (OSError, ValueError, IndexError, TimeoutError):
        return 0, time.perf_counter() - began


async def steady(port: int, path: str, bodies: list[str], rate: int, seconds: int) -> Any:
    """So many requests a second, whatever the answers take."""
    tasks, began = [], time.perf_counter()
    for number in range(rate * seconds):
        await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
        tasks.append(asyncio.create_task(ask(port, path, bodies[number % len(bodies)])))
    return await asyncio.gather(*tasks)


async def crowd(port: int, path: str, body: str, count: int) -> collections.Counter[int]:
    """Many connections at once."""
    found = await asyncio.gather(*(ask(port, path, body) for _ in range(count)))
    return collections.Counter(status for status, _ in found)


def crowds(case: str, service: Running, path: str, body: str) -> None:
    """Three crowds, and the service's memory before, after each, and at its peak."""
    counted, memory = collections.Counter[int](), [service.memory()]
    for _ in range(3):
        counted += asyncio.run(crowd(service.port, path, body, 5000))
        time.sleep(SETTLE)
        memory.append(service.memory())
    print(f"{case}: 5,000 at once, three times: {dict(counted)} (bar: 200 and 429 only), memory "
          f"{' -> '.join(f'{found:.0f}' for found in memory)} MB, at most {service.peak():.0f}",
          flush=True)  # fmt: skip


async def mixed(port: int, path: str, seconds: float) -> tuple[float, float, int]:
    """p99 of short requests, alone and beside a client of large batches; how many failed."""
    short = json.dumps({"inputs": words(SHORT)})
    large = json.dumps({"inputs": [words(LONG) for _ in range(8)]})

    failed = 0

    async def shorts() -> float:
        nonlocal failed
        taken = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            status, found = await ask(port, path, short)
            failed += status != 200
            taken.append(found)
            await asyncio.sleep(0.01)
        return statistics.quantiles(taken, n=100)[98]

    alone = await shorts()
    busy = True

    async def larges() -> None:
        while busy:
            await ask(port, path, large)

    other = asyncio.create_task(larges())
    beside = await shorts()
    busy = False
    await other
    return alone, beside, failed


def words(count: int) -> str:
    chosen = random.Random(count).choices(
        ["a", "fine", "film", "that", "nobody", "should", "miss", "at", "all"], k=count
    )
    return " ".join(chosen)


def run_usual(folder: Path) -> None:
    """The usual way: FastAPI, and a pipeline in its thread pool."""
    import fastapi
    import torch
    import transformers
    import uvicorn

    torch.set_num_threads(2)
    pipeline = transformers.pipeline("text-classification", model=str(folder), device="cpu")
    app, done = fastapi.FastAPI(), [0]

    @app.post("/predict")
    def predict(body: dict[str, Any]) -> Any:
        found = pipeline(body["inputs"])
        done[0] += 1
        return found

    @app.get("/metrics")
    async def metrics() -> Any:
        text = f'requests_total{{route="/predict",status="200"}} {done[0]}'
        return fastapi.responses.PlainTextResponse(text)

    uvicorn.run(app, host="127.0.0.1", port=0, access_log=False)


def compare(case: str, precision: str, seconds: float, scratch: Path, parts: list[str]) -> None:
    folder = make_model(case.removeprefix("albert-"), scratch)
    bodies = [json.dumps({"inputs": text}) for text in sentences(2000)]
    path = "/v1/models/m/predict"
    started = [sys.executable, "-m", "litebert", "serve", f"m={folder}", "--port", "0"]
    with Running([*started, "--precision", precision]) as service:
        if "speed" in parts:
            speeds(case, folder, precision, service.port, path, bodies, seconds)
        if "mixed" in parts:
            alone, beside, failed = asyncio.run(mixed(service.port, path, seconds))
            print(f"{case}: p99 of short requests {1000 * alone:.0f} ms alone, "
                  f"{1000 * beside:.0f} ms beside large batches ({beside / alone:.1f}x, bar 2x), "
                  f"{failed} failed", flush=True)  # fmt: skip
        if "crowd" in parts:
            crowds(case, service, path, bodies[0])
        if "steady" in parts:
            found = asyncio.run(steady(service.port, path, bodies, 50, 30))
            failed = sum(status != 200 for status, _ in found)
            slowest = max(taken for _, taken in found)
            print(f"{case}: 50/s for 30 s: {failed} of {len(found)} failed (bar 0), the slowest "
                  f"took {slowest:.1f} s", flush=True)  # fmt: skip


def speeds(
    case: str, folder: Path, precision: str, port: int, path: str, bodies: list[str], seconds: float
) -> None:
    """Answers a second: the engine alone, the service, the usual way; in turns, medians."""
    found: dict[str, list[float]] = {"engine": [], "service": [], "usual": []}
    bad = 0
    with Running([sys.executable, __file__, "--usual", str(folder)]) as usual:
        for _ in range(ROUNDS):
            found["engine"].append(engine_rate(folder, precision, seconds))
            rate, failed = load(port, path, bodies, seconds)
            slow, slow_failed = load(usual.port, "/predict", bodies, seconds)
            found["service"].append(rate)
            found["usual"].append(slow)
            bad += failed + slow_failed
    for name, rates in found.items():
        print(f"{case}: {name} {', '.join(f'{rate:.1f}' for rate in rates)} a second", flush=True)
    own, rate, slow = (statistics.median(rates) for rates in found.values())
    print(f"{case}: the service does {rate / own:.0%} of the engine (bar 90%) and is "
          f"{rate / slow:.1f}x as fast as the usual way (bar 8x at base); {bad} not answered",
          flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--case", action="append", choices=["albert-mini", "albert-base"])
    parser.add_argument("--part", action="append", choices=PARTS, help="all, unless some are named")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--precision", default="int8")
    parser.add_argument("--models", type=Path, help="keep the models here")
    parser.add_argument("--engine", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--usual", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--clients", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("-d", help=argparse.SUPPRESS)
    parser.add_argument("address", nargs="?", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.clients:
        lines, path = chosen.clients
        port, bodies = int(chosen.address.rsplit(":", 1)[1]), Path(lines).read_text().splitlines()
        return asyncio.run(run_clients(port, path, bodies, float(chosen.d.rstrip("s"))))
    if chosen.engine:
        return run_engine(chosen.engine, chosen.precision, chosen.seconds)
    if chosen.usual:
        return run_usual(chosen.usual)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = chosen.models or scratch
        for case in chosen.case or ["albert-mini", "albert-base"]:
            compare(case, chosen.precision, chosen.seconds, Path(scratch), chosen.part or PARTS)
    return None


if __name__ == "__main__":
    main()

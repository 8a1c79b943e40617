"""Latency under mixed load: the engine's requests at different depths against static batches of 32.

    python benchmarks/load.py --size mini --requests 1500
    python benchmarks/load.py --size base --requests 300 --precision int8

Short sentences and long reviews arrive one by one, at random (Poisson), at 70 % of what the slower
side can do. All sides answer the same texts at the same moments with the same packed int8 weights,
in turns; only the scheduling differs:

engine    `submit`: sequences join and leave at every layer
full      static batches: 32 requests are waited for, and answered together
greedy    static batches: whatever waits, up to 32, as soon as the batch before has ended

Bar: the engine's 99th percentile is at most half of that of static batches. Weights are random.
"""

from __future__ import annotations

import json
import queue
import random
import tempfile
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import litebert
from inference import make_model, sentences
from litebert.demos.reviews import write_texts

TOGETHER, LOAD = 32, 0.7
SIDES = ("engine", "full", "greedy")


class StaticBatches:
    """What a service without an engine does: a queue, and batches that end before others begin."""

    def __init__(self, engine: litebert.Engine, *, waits: bool) -> None:
        self._engine, self._waits = engine, waits
        self._queue: queue.Queue[tuple[str, Future[Any]] | None] = queue.Queue()
        threading.Thread(target=self._work, daemon=True).start()

    def submit(self, text: str) -> Future[Any]:
        future: Future[Any] = Future()
        self._queue.put((text, future))
        return future

    def end(self) -> None:
        """The last batch may be smaller."""
        self._queue.put(None)

    def _work(self) -> None:
        ended = False
        while not ended:
            batch = []
            while len(batch) < TOGETHER and not ended:
                try:
                    one = self._queue.get(block=self._waits or not batch)
                except queue.Empty:
                    break
                ended = one is None
                batch += [] if one is None else [one]
            if batch:
                answers = self._engine.predict([text for text, _ in batch])
                for (_, future), answer in zip(batch, answers, strict=True):
                    future.set_result(answer)


def texts_of(count: int, long: float) -> list[str]:
    """Short sentences, and among them a fraction of whole reviews."""
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as scratch:
        write_texts(Path(scratch) / "reviews.jsonl")
        with (Path(scratch) / "reviews.jsonl").open(encoding="utf-8") as lines:
            reviews = [json.loads(line)["text"] for line in islice(lines, 400)]
    short = sentences(800)
    return [draw.choice(reviews if draw.random() < long else short) for _ in range(count)]


def measure(side: str, engine: litebert.Engine, texts: Sequence[str], arrivals: Any) -> Any:
    """The latencies of a side, in seconds, and requests a second."""
    static = None if side == "engine" else StaticBatches(engine, waits=side == "full")
    done = [0.0] * len(texts)
    futures: list[Future[Any]] = []
    began = time.perf_counter()
    for number, (text, arrival) in enumerate(zip(texts, arrivals, strict=True)):
        time.sleep(max(0.0, began + arrival - time.perf_counter()))
        future = engine.submit(text) if static is None else static.submit(text)
        future.add_done_callback(
            lambda _, number=number: done.__setitem__(number, time.perf_counter())
        )
        futures.append(future)
    if static is not None:
        static.end()
    for future in futures:
        future.result()
    return np.array(done) - began - arrivals, len(texts) / (max(done) - began)


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", default="mini", choices=["mini", "base"])
    parser.add_argument("--requests", type=int, default=1500)
    parser.add_argument("--long", type=float, default=0.1, help="fraction of whole reviews")
    parser.add_argument("--precision", default="int8")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", help="keep the model here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        model = make_model(options.size, Path(options.out or scratch))
        engine = litebert.Engine(model, precision=options.precision, threads=options.threads)
        compare(engine, options)


def compare(engine: litebert.Engine, options: Namespace) -> None:
    texts = texts_of(options.requests, options.long)
    some, at_once = texts[: max(200, len(texts) // 4)], np.zeros(max(200, len(texts) // 4))
    for side in SIDES:
        measure(side, engine, some[:64], at_once[:64])  # warm
    capacity = {side: measure(side, engine, some, at_once)[1] for side in SIDES}
    told = ", ".join(f"{side} {found:.1f}" for side, found in capacity.items())
    rate = LOAD * min(capacity.values())
    print(f"albert-{options.size} {options.precision}, all at once, requests/s: {told}")
    print(f"{len(texts)} arrivals at {rate:.1f}/s, {options.long:.0%} of them long; milliseconds:")
    found: dict[str, list[np.ndarray]] = {side: [] for side in SIDES}
    for seed in range(options.rounds):
        gaps = np.random.default_rng(seed).exponential(1 / rate, len(texts))
        for side in SIDES:
            found[side].append(measure(side, engine, texts, np.cumsum(gaps))[0])
    tails = {}
    for side, rounds in found.items():
        every = 1e3 * np.concatenate(rounds)
        p50, p90, p99 = np.percentile(every, (50, 90, 99))
        tails[side] = p99
        print(f"{side:8} p50 {p50:8.1f}  p90 {p90:8.1f}  p99 {p99:8.1f}  max {every.max():8.1f}")
    for side in SIDES[1:]:
        print(f"p99 of the engine is {tails['engine'] / tails[side]:.2f} of {side} static batches")
    print("bar: 0.50")


if __name__ == "__main__":
    main()

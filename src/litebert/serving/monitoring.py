"""Prometheus' view of the service: requests, waiting tokens, answers, depths."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TOKENS = (8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384)
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Monitoring:
    """Counters of one service; its own registry, so that several can live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "litebert_requests", "Requests by route and status", ["route", "status"],
            registry=self.registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "litebert_request_seconds", "From the request's headers to the end of its answer",
            ["route"], buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self._tokens = Histogram(
            "litebert_request_tokens", "Tokens of a request, by model", ["model"], buckets=TOKENS,
            registry=self.registry,
        )  # fmt: skip
        self._waiting = Gauge(
            "litebert_queued_tokens", "Tokens that wait, by model",
            ["model"], registry=self.registry,
        )  # fmt: skip

        self._inside = Gauge(
            "litebert_requests_in_flight", "Requests that are being answered",
            registry=self.registry,
        )  # fmt: skip

    def request(self, route: str, status: int, seconds: float) -> None:
        """One request is over."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def tokens(self, model: str, tokens: int) -> None:
        """One request was admitted."""
        self._tokens.labels(model).observe(tokens)

    def watch_queue(self, model: str, tokens: Callable[[], int]) -> None:
        """A model's queue, read when Prometheus asks."""
        self._waiting.labels(model).set_function(tokens)

    def watch_inside(self, requests: Callable[[], int]) -> None:
        """How many are inside, read when Prometheus asks; that question is one of them."""
        self._inside.set_function(requests)

    def text(self) -> bytes:
        """The page that Prometheus reads."""
        return generate_latest(self.registry)

"""What one client may ask for, and when the service says no. Pure arithmetic, no HTTP here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pydantic import Field

from litebert.base.settings import Settings


class Limits(Settings):
    """Bounds that hold for every request; `--set name=value` changes one."""

    concurrent_requests: int = Field(default=512, ge=1, description="beyond: 429")
    queued_tokens: int = Field(default=65_536, ge=1, description="waiting, a model; beyond: 429")
    inputs: int = Field(default=64, ge=1, description="texts of one request; beyond: 422")
    characters: int = Field(default=100_000, ge=1, description="of one input; beyond: 422")
    body_bytes: int = Field(default=2_000_000, ge=1, description="of a request; beyond: 413")
    body_seconds: float = Field(default=20.0, gt=0, description="to send a request; beyond: 408")
    header_seconds: float = Field(default=10.0, gt=0, description="to send the headers")
    deadline: float = Field(default=30.0, gt=0, description="seconds to an answer; beyond: 504")
    stop_seconds: float = Field(default=30.0, gt=0, description="for requests in flight at the end")


@dataclass(frozen=True)
class Queue:
    """What waits for a model: tokens, and the seconds that they will take."""

    tokens: int
    seconds: float


def retry_after(queue: Queue, tokens: int, deadline: float, limits: Limits) -> int | None:
    """When to come back, in whole seconds, where a request should not wait here; else None.

    An empty queue takes anything. One that is full, or too long for the deadline, does not; half of
    it should be gone by then.
    """
    if queue.tokens == 0:
        return None
    full = queue.tokens + tokens > limits.queued_tokens
    late = queue.seconds * (1 + tokens / queue.tokens) > deadline
    return max(1, math.ceil(queue.seconds / 2)) if full or late else None

"""What one client may ask for, and when the service says no. Pure arithmetic, no HTTP here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pydantic import Field

from litebert.base.settings import Settings

FIRST_GUESS = 2_000.0  # tokens a second, until some were measured
MEMORY = 0.2  # weight of the newest measurement
STRETCH = 1.0  # seconds of work after which speed is measured


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


@dataclass
class Backlog:
    """Tokens that wait for a model, and how fast they go: when would new ones be done?

    Speed is measured over stretches in which there was always something to do.
    """

    tokens: int = 0
    tokens_per_second: float = FIRST_GUESS
    done: int = 0  # of this stretch
    busy_since: float = 0.0

    def seconds_for(self, tokens: int) -> float:
        """When a request of so many tokens would be answered."""
        return (self.tokens + tokens) / self.tokens_per_second

    def accepts(self, tokens: int, deadline: float, limits: Limits) -> bool:
        """Whether it is worth starting; an empty queue takes anything."""
        if self.tokens == 0:
            return True
        fits = self.tokens + tokens <= limits.queued_tokens
        return fits and self.seconds_for(tokens) <= deadline

    def retry_after(self) -> int:
        """Whole seconds until half of the queue is gone, at least one."""
        return max(1, math.ceil(self.tokens / 2 / self.tokens_per_second))

    def enter(self, tokens: int, now: float) -> None:
        """A request begins to wait."""
        if self.tokens == 0:
            self.done, self.busy_since = 0, now
        self.tokens += tokens

    def leave(self, tokens: int, now: float) -> None:
        """It was answered, or given up."""
        self.tokens -= tokens
        self.done += tokens
        seconds = now - self.busy_since
        if seconds >= STRETCH or (self.tokens == 0 and seconds > 0):
            newest = self.done / seconds
            self.tokens_per_second += MEMORY * (newest - self.tokens_per_second)
            self.done, self.busy_since = 0, now

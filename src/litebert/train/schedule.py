"""Learning rates as pure functions of the step.

Warm-up rises from 0 linearly; decay falls to 0 as a power of what is left. Google's code counts the
decay from step 0, so the rate jumps where warm-up ends (0.001759 to 0.001716 at ALBERT's 3,125 of
125,000); the continuous form counts it from there.
"""

from __future__ import annotations

import math

from pydantic import Field

from litebert.base.config import Settings


class Schedule(Settings):
    """The shape of the learning rate; `steps` and `warm_up` in updates."""

    rate: float = Field(gt=0)
    steps: int = Field(gt=0)
    warm_up: int = Field(default=0, ge=0)
    power: float = Field(default=1.0, ge=0)
    continuous: bool = True

    def at(self, step: int) -> float:
        """The rate of update `step`, from 0."""
        if step < self.warm_up:
            return self.rate * step / self.warm_up
        start = self.warm_up if self.continuous else 0
        left = 1 - (step - start) / max(self.steps - start, 1)
        return self.rate * max(left, 0.0) ** self.power


def scaled_rate(rate: float, batch: int, reference: int) -> float:
    """A rate that was found for one batch size, for another: by the square root of their ratio."""
    return rate * math.sqrt(batch / reference)

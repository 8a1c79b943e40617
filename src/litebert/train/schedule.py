"""Learning rates as pure functions of how much of the budget is spent.

Warm-up rises from 0 linearly; decay falls to 0 as a power of what is left. Google's code counts the
decay from the beginning, so the rate jumps where warm-up ends (0.001759 to 0.001716 at ALBERT's
3,125 of 125,000 steps); the continuous form counts it from there.
"""

from __future__ import annotations

import math

from litebert.presets.recipe import OptimizerSettings, ScheduleSettings


def rate_at(schedule: ScheduleSettings, peak: float, progress: float) -> float:
    """The rate when a share `progress` of the budget is spent."""
    if progress < schedule.warm_up:
        return peak * progress / schedule.warm_up
    start = schedule.warm_up if schedule.continuous else 0.0
    left = 1 - (progress - start) / (1 - start)
    return peak * max(left, 0.0) ** schedule.power


def peak_rate(settings: OptimizerSettings, batch: int) -> float:
    """The highest rate for a batch: one found for another batch scales by the root of the ratio."""
    if not settings.reference_batch:
        return settings.rate
    return settings.rate * math.sqrt(batch / settings.reference_batch)

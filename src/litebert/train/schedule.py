"""Learning rates as pure functions of how much of the budget is spent.

Warmup rises from 0 linearly; decay falls to 0 as a power of what is left. Google's code counts the
decay from the beginning, so the learning rate jumps where warmup ends (0.001759 to 0.001716
at ALBERT's 3,125 of 125,000 steps); the continuous form counts it from there.
"""

from __future__ import annotations

import math

from litebert.configs.schema import OptimizerSettings, ScheduleSettings


def learning_rate_at(schedule: ScheduleSettings, peak: float, progress: float) -> float:
    """The learning rate when a fraction `progress` of the budget is spent."""
    if progress < schedule.warmup:
        return peak * progress / schedule.warmup
    start = schedule.warmup if schedule.continuous else 0.0
    left = 1 - (progress - start) / (1 - start)
    return peak * max(left, 0.0) ** schedule.decay_power


def peak_learning_rate(settings: OptimizerSettings, batch_size: int) -> float:
    """The peak for a batch size; one found for another scales by the square root of the ratio."""
    if not settings.reference_batch_size:
        return settings.learning_rate
    return settings.learning_rate * math.sqrt(batch_size / settings.reference_batch_size)

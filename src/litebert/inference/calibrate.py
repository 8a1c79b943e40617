"""What exit rules cost and save on dev, from one pass that keeps the outputs of all depths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from litebert.inference.exits import CalibratedRule, Calibration, ExitRule, parse_exit
from litebert.inference.run import run_depths
from litebert.model.model import Model
from litebert.tasks.features import Features
from litebert.tasks.task import Output, Task

PATIENCE = (1, 2, 3, 4, 5, 6, 8, 10)
CONFIDENCE = (0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999)


def calibrate(task: Task, model: Model, examples: Sequence[Any], features: Features) -> Calibration:
    """Score and mean depth of each rule of the ladder on labelled examples."""
    depth = model.config.num_hidden_layers
    said = run_depths(task, model, features.batch)
    metric = task.settings.metrics[0]

    def row(text: str) -> CalibratedRule:
        rule = parse_exit(text, task, None)
        left = [leave(rule, outputs) for outputs in said]
        predictions = task.decode(examples, features, [outputs[-1] for outputs in left])
        score = task.score(examples, predictions)[metric]
        return CalibratedRule(text, float(score), float(np.mean([len(one) for one in left])))

    return Calibration(metric, tuple(row(text) for text in ladder(task, depth)))


def ladder(task: Task, depth: int) -> list[str]:
    """The rules that are tried with an encoder of a depth; the last is full depth."""
    rules = [f"patience={n}" for n in PATIENCE if n + 1 < depth]
    rules += [f"confidence={p}" for p in CONFIDENCE]
    rules += [f"depth={n}" for n in range(1, depth + 1)]
    return [rule for rule in rules if rule.partition("=")[0] in task.exit_rules]


def leave(rule: ExitRule, outputs: Sequence[Output]) -> Sequence[Output]:
    """Of the outputs of all depths, those up to where a rule lets the sequence leave."""
    for depth in range(1, len(outputs)):
        if rule.leaves(outputs[:depth]):
            return outputs[:depth]
    return outputs

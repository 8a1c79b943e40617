"""Early exit: when a sequence has been read deeply enough. Rules are pure, and know one sequence.

patience=3        as soon as three layers in a row have changed nothing about the answer (PABEE)
confidence=0.95   as soon as the answer is more likely than that
depth=4           after four layers
accuracy=-0.5     the cheapest of these that lost at most half a point on dev, by the table
                  that fine-tuning leaves in the model folder (calibrate.py)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from litebert.base.errors import FormatError, SettingsError
from litebert.base.files import read_json
from litebert.model.folder import CONFIG
from litebert.model.model import Model
from litebert.tasks.task import Output, Prediction, Task

EXITS_KEY = "litebert_exits"  # where config.json keeps the calibration
CHOICES = "patience=N, confidence=P, depth=N or accuracy=-POINTS"


class ExitRule(Protocol):
    """When a sequence leaves."""

    def leaves(self, outputs: Sequence[Output]) -> bool:
        """Whether it leaves now, given what the head after each layer so far said of it."""
        ...


@dataclass(frozen=True)
class FixedDepth:
    """Leave after so many layers."""

    layers: int

    def leaves(self, outputs: Sequence[Output]) -> bool:
        return len(outputs) >= self.layers


@dataclass(frozen=True)
class Patience:
    """Leave when so many layers in a row agreed with the one before them."""

    layers: int
    agree: Callable[[Output, Output], bool]  # the kind's

    def leaves(self, outputs: Sequence[Output]) -> bool:
        last = outputs[-self.layers - 1 :]
        return len(last) > self.layers and all(self.agree(*pair) for pair in pairwise(last))


@dataclass(frozen=True)
class Confidence:
    """Leave when the answer is likelier than this; nothing is likelier than 1."""

    threshold: float
    confidence: Callable[[Output], float]  # the kind's

    def leaves(self, outputs: Sequence[Output]) -> bool:
        return self.confidence(outputs[-1]) > self.threshold


@dataclass(frozen=True)
class CalibratedRule:
    """What a rule gave on dev."""

    rule: str
    score: float
    mean_depth: float


@dataclass(frozen=True)
class Calibration:
    """What the rules of a ladder gave on dev; the last row is full depth."""

    metric: str
    rows: tuple[CalibratedRule, ...]

    def cheapest(self, points: float) -> str:
        """The rule of least depth that loses at most so many points (hundredths) of the score."""
        least = self.rows[-1].score - points / 100
        return min((r for r in self.rows if r.score >= least), key=lambda r: r.mean_depth).rule

    def __str__(self) -> str:
        lines = [f"exit rule          {self.metric:>9}   mean depth (on dev)"]
        lines += [f"{row.rule:18} {row.score:9.4f}   {row.mean_depth:5.2f}" for row in self.rows]
        return "\n".join(lines)


def parse_exit(text: str, task: Task, calibration: Calibration | None) -> ExitRule:
    """The rule that a user asks for; `calibration` is that of the model."""
    name, _, value = text.partition("=")
    if name == "accuracy":
        points = -_number(text, value, -100, 0, "points to lose at most, as accuracy=-0.5")
        if calibration is None:
            raise SettingsError(f"--exit {text}: this model has no calibration of its exits")
        return parse_exit(calibration.cheapest(points), task, None)
    if name not in ("patience", "confidence", "depth"):
        raise SettingsError(f"--exit {text}: no such rule; choose {CHOICES}")
    if name not in task.exit_rules:
        known = ", ".join(f"{rule}=N" for rule in task.exit_rules)
        raise SettingsError(f"--exit {text}: not for tasks of kind {task.kind}; choose {known}")
    if name == "confidence":
        threshold = _number(text, value, 0, 1, "a probability from 0 to 1")
        return Confidence(threshold, task.confidence)
    layers = _number(text, value, 1, 10_000, "a whole number of layers, at least 1")
    if layers != int(layers):
        raise SettingsError(f"--exit {text}: expected a whole number of layers")
    if name == "depth":
        return FixedDepth(int(layers))
    return Patience(int(layers), task.agree)


def _number(text: str, value: str, low: float, high: float, expected: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not low <= number <= high:
        raise SettingsError(f"--exit {text}: expected {expected}")
    return number


@dataclass(frozen=True)
class DepthDial:
    """How deep a user wants texts to be read: by a rule, and to a depth at most."""

    exit: str | None = None
    depth: int | None = None

    def rule(self, model: Model, task: Task, where: Path) -> ExitRule | None:
        """The rule for a model, which must have the depth and, for a rule, exits."""
        if self.depth is not None:
            model.encoder.check_depth(self.depth)
        if self.exit is None:
            return None
        if not model.has_exits(task.head):
            raise SettingsError(
                f"--exit {self.exit}: {where} has no exit heads; fine-tune with --set exits=true"
            )
        return parse_exit(self.exit, task, calibration_of(model, where))


FULL_DEPTH = DepthDial()


def mean_depth(predictions: Sequence[Prediction]) -> float | None:
    """The mean depth at which examples were answered, where it was chosen."""
    depths = [one.depth for one in predictions if one.depth is not None]
    return sum(depths) / len(depths) if depths else None


# ----------------------------------------------------------------------- in a model folder


def write_calibration(model: Model, calibration: Calibration) -> None:
    """Keep it with a model; it goes into config.json."""
    model.metadata[EXITS_KEY] = asdict(calibration)


def calibration_of(model: Model, where: Path) -> Calibration | None:
    """What a model's folder says of its exits, if anything."""
    return _calibration(model.metadata.get(EXITS_KEY), where)


def read_calibration(folder: Path) -> Calibration | None:
    """The same without opening the model."""
    return _calibration(read_json(folder / CONFIG).get(EXITS_KEY), folder)


def _calibration(content: object, where: Path) -> Calibration | None:
    if content is None:
        return None
    try:
        rows = tuple(
            CalibratedRule(str(row["rule"]), float(row["score"]), float(row["mean_depth"]))
            for row in content["rows"]  # type: ignore[index]
        )
        return Calibration(str(content["metric"]), (*rows[:-1], rows[-1]))  # type: ignore[index]
    except (KeyError, TypeError, ValueError, IndexError):
        raise FormatError(
            f"{where}: config.json: {EXITS_KEY} is malformed; fine-tune again, or take it out"
        ) from None

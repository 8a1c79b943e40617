"""Layer steps over sequences that stand at different depths.

A shared encoder applies the same layer at every depth, so sequences at different depths can go
through the same matrix product: those that are done leave after a step, new ones join before the
next. Nobody waits for a batch to fill or to end. An encoder with layers of its own takes new ones
only when all have left, and regroups those that stay.

A step is one layer where an exit rule has to be asked after each. Else it may be several, in one
call: Python between layers takes as long as a layer of a small model.

A unit is what stays together (a sequence; the options of a question), a cohort the units that came
in together and are asked the same thing. Cohorts lie one behind the other in one packed state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from litebert.base.batches import Batch, concatenate, take
from litebert.base.ragged import IntArray
from litebert.inference.exits import ExitRule
from litebert.inference.jobs import Job, Readout, as_fp32, side_by_side
from litebert.model.inputs import Inputs, to_inputs
from litebert.model.layout import Packed, State
from litebert.model.model import Model
from litebert.tasks.task import Output


@dataclass(eq=False)
class Progress:
    """How far a job has come: what was read off its sequences, and at which depths."""

    job: Job
    outputs: list[Any] = field(init=False)
    depths: IntArray = field(init=False)
    left: int = field(init=False)  # units that are not done, by the count of who steps

    def __post_init__(self) -> None:
        batch = self.job.batch
        self.outputs, self.depths = [None] * len(batch), np.zeros(len(batch), np.int64)
        self.left = len(batch) // batch.group_size

    def units(self) -> list[Unit]:
        """All of its units, the longest first."""
        lengths = self.job.batch.group_lengths
        order = np.argsort(-lengths, kind="stable").tolist()
        return [Unit(self, number, int(lengths[number])) for number in order]

    def finish(self) -> Any:
        """The answer, once no unit is left."""
        return self.job.finish(self.outputs, self.depths)


@dataclass(eq=False)
class Unit:
    """Sequences of a job that go through together."""

    progress: Progress
    group: int
    tokens: int
    said: list[Output] = field(default_factory=list)  # by the head after each layer, for a rule
    turn: float = 0.0  # of a scheduler: the earliest goes first

    @property
    def members(self) -> IntArray:
        """Its sequences in the batch of the job."""
        return self.progress.job.batch.group_members(np.array([self.group]))

    def done(self, outputs: Sequence[Any], depth: int) -> None:
        """Hand over what was read off."""
        progress = self.progress
        for member, output in zip(self.members.tolist(), outputs, strict=True):
            progress.outputs[member], progress.depths[member] = output, depth


@dataclass(eq=False)
class _Cohort:
    units: list[Unit]
    inputs: Inputs
    readout: Readout
    stop: int
    rule: ExitRule | None
    depth: int = 0

    @property
    def lengths(self) -> list[int]:
        return self.inputs.batch.lengths.tolist()

    @property
    def tokens(self) -> int:
        return len(self.inputs.batch.ids)

    def keep(self, units: Sequence[int]) -> None:
        """Only these units stay."""
        members = self.inputs.batch.group_members(np.array(units, np.int64))
        self.inputs = to_inputs(take(self.inputs.batch, members), self.inputs.ids.device)
        self.units = [self.units[place] for place in units]


class Stepper:
    """Sequences on their way through an encoder, a layer at a time."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._mixes = model.config.depth_is_free
        self._device = next(model.parameters()).device
        self._cohorts: list[_Cohort] = []
        self._x_NH: Tensor | None = None

    @property
    def tokens(self) -> int:
        """Tokens on their way."""
        return sum(cohort.tokens for cohort in self._cohorts)

    @property
    def takes_more(self) -> bool:
        """Whether units may join now."""
        return self._mixes or not self._cohorts

    def units(self) -> Iterable[Unit]:
        """Those on their way."""
        return (unit for cohort in self._cohorts for unit in cohort.units)

    def admit(self, units: Sequence[Unit]) -> None:
        """Let units join, at depth 0."""
        kinds: dict[Any, list[Unit]] = {}
        for unit in sorted(units, key=lambda unit: -unit.tokens):
            job = unit.progress.job
            key = (job.readout, job.batch.group_size, job.depth, job.rule)
            kinds.setdefault(key, []).append(unit)
        for (readout, _, stop, rule), alike in kinds.items():
            inputs = to_inputs(_batch_of(alike), self._device)
            self._append(inputs.embed(self._model).x_NH)
            self._cohorts.append(_Cohort(alike, inputs, readout, stop, rule))

    def layers_until_any_leaves(self) -> int:
        """How many layers all can go through before somebody may leave."""
        if any(cohort.rule is not None for cohort in self._cohorts):
            return 1
        return min(cohort.stop - cohort.depth for cohort in self._cohorts)

    def step(self, layers: int = 1) -> list[Unit]:
        """So many layers for all, before which nobody may leave; returns those that are done."""
        assert self._x_NH is not None
        first = 0 if self._mixes else self._cohorts[0].depth
        layout = Packed(tuple(length for cohort in self._cohorts for length in cohort.lengths))
        state = State(self._x_NH, layout)
        read = self._read(layers)
        x_NH = self._model.encoder.layers(state, first, first + layers, read=read).x_NH
        done: list[Unit] = []
        staying: list[Tensor] = []
        start = 0
        for cohort in self._cohorts:
            part_NH = x_NH[start : start + cohort.tokens]
            start += cohort.tokens
            cohort.depth += layers
            left, kept_NH = self._leaving(cohort, part_NH)
            done += left
            staying += [kept_NH] if cohort.units else []
        self._cohorts = [cohort for cohort in self._cohorts if cohort.units]
        if done:
            self._x_NH = torch.cat(staying) if staying else None
        else:
            self._x_NH = x_NH
        return done

    def drop(self, unwanted: Callable[[Unit], bool]) -> None:
        """Leave out units that nobody waits for any more."""
        staying, start = [], 0
        for cohort in self._cohorts:
            assert self._x_NH is not None
            part_NH = self._x_NH[start : start + cohort.tokens]
            start += cohort.tokens
            stay = [n for n, unit in enumerate(cohort.units) if not unwanted(unit)]
            staying += [_keep(cohort, part_NH, stay)] if stay else []
            cohort.units = cohort.units if stay else []
        self._cohorts = [cohort for cohort in self._cohorts if cohort.units]
        self._x_NH = torch.cat(staying) if staying else None

    def _append(self, x_NH: Tensor) -> None:
        self._x_NH = x_NH if self._x_NH is None else torch.cat([self._x_NH, x_NH])

    def _read(self, layers: int) -> Tensor | None:
        """The tokens that matter after so many layers, where most of them do not."""
        ending = [cohort.depth + layers == cohort.stop for cohort in self._cohorts]
        tokens = sum(c.tokens for c, ends in zip(self._cohorts, ending, strict=True) if ends)
        if 2 * tokens < self.tokens:
            return None  # picking rows costs more than it saves
        wanted, start = [], 0
        for cohort, ends in zip(self._cohorts, ending, strict=True):
            rows = cohort.readout.reads(cohort.inputs.batch) if ends else None
            wanted.append(start + (np.arange(cohort.tokens) if rows is None else rows))
            start += cohort.tokens
        rows = np.concatenate(wanted)
        return None if len(rows) == start else torch.from_numpy(rows).to(self._device)

    def _leaving(self, cohort: _Cohort, x_NH: Tensor) -> tuple[list[Unit], Tensor]:
        """Those of a cohort that leave after this layer, and the tokens of the others."""
        ends = cohort.depth == cohort.stop
        if not ends and cohort.rule is None:
            return [], x_NH
        state = as_fp32(State(x_NH, Packed(tuple(cohort.lengths))))
        outputs = cohort.readout.outputs(self._model, state, cohort.inputs, cohort.depth)
        size, left, stay = cohort.inputs.batch.group_size, [], []
        for place, unit in enumerate(cohort.units):
            own = outputs[place * size : (place + 1) * size]
            if cohort.rule is not None:
                unit.said.append(own[0])  # a group is told one and the same
            if ends or (cohort.rule is not None and cohort.rule.leaves(unit.said)):
                unit.done(own, cohort.depth)
                left.append(unit)
            else:
                stay.append(place)
        if not left:
            return [], x_NH
        kept_NH = _keep(cohort, x_NH, stay) if stay else x_NH[:0]
        cohort.units = cohort.units if stay else []
        return left, kept_NH


def _keep(cohort: _Cohort, x_NH: Tensor, stay: Sequence[int]) -> Tensor:
    """The tokens of the units that stay in a cohort."""
    if len(stay) == len(cohort.units):
        return x_NH
    size, pieces = cohort.inputs.batch.group_size, x_NH.split(cohort.lengths)
    kept = torch.cat([pieces[size * place + k] for place in stay for k in range(size)])
    cohort.keep(stay)
    return kept


def _batch_of(units: Sequence[Unit]) -> Batch:
    """The sequences of units, in their order; jobs with one unit each are the usual case."""
    jobs: dict[Progress, list[Unit]] = {}
    for unit in units:
        jobs.setdefault(unit.progress, []).append(unit)
    if len(jobs) == len(units):
        batches = [
            unit.progress.job.batch
            if len(unit.progress.job.batch) == unit.progress.job.batch.group_size
            else take(unit.progress.job.batch, unit.members)
            for unit in units
        ]
        return batches[0] if len(batches) == 1 else concatenate(batches)
    if len(jobs) == 1:
        job = units[0].progress.job
        return take(job.batch, job.batch.group_members(np.array([unit.group for unit in units])))
    return concatenate([take(unit.progress.job.batch, unit.members) for unit in units])


def run_stepwise(model: Model, job: Job, max_tokens: int, workers: int = 1) -> Any:
    """A job with a rule, all at once: as sequences leave, others take their place."""
    progress = Progress(job)
    units = progress.units()
    count = max(min(workers, sum(unit.tokens for unit in units) // max_tokens), 1)

    @torch.inference_mode()
    def step_through(waiting: list[Unit]) -> None:
        stepper = Stepper(model)
        while waiting or stepper.tokens:
            room, joining = max_tokens - stepper.tokens, []
            while (
                waiting
                and stepper.takes_more
                and (waiting[-1].tokens <= room or not (joining or stepper.tokens))
            ):
                joining.append(waiting.pop())
                room -= joining[-1].tokens
            stepper.admit(joining)
            stepper.step()

    for _ in side_by_side(step_through, [units[n::count][::-1] for n in range(count)], workers):
        pass
    return progress.finish()

"""Requests of many callers through one encoder: queues, and a thread that steps.

Two lanes: short texts do not go through the layers beside long ones, whose steps take many times as
long as theirs. A step is as many layers as take `STEP_SECONDS`; between two of them new texts join,
and the lane goes on that has the earliest turn.

A unit's turn is its arrival plus the time that its request's tokens up to and including it take, by
a clock that stands at the latest turn of what is done (self-clocked fair queueing, Golestani 1994).
So short texts go before long ones that came a little earlier, a large batch is cut into slices
between which others get their turn, and nobody starves: a unit waits for about as much of others'
work as its own request is up to it. A clock of seconds would not do: under more than can be borne
everything is late, and what is late would go before whatever comes.

Every request is answered, refused or cancelled exactly once. A deadline is refused with a
DeadlineError as soon as it has passed, wherever the request is.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any
from weakref import ReferenceType, ref

import torch

from litebert.base.errors import ClosedError, DeadlineError, SettingsError
from litebert.inference.jobs import Job
from litebert.inference.stepping import Progress, Stepper, Unit
from litebert.model.model import Model

SHORT = 64  # tokens; a text of so many joins even where the step is full
LONG = 128  # tokens; texts of more go in a lane of their own
LONG_STEP = 256  # tokens of a step in that lane, unless one text has more
STEP_SECONDS = 0.02  # that a newcomer waits until it may join, or go first; one layer at least
SECONDS_PER_TOKEN = 1e-5  # of a layer, before the first step was timed
FORGETTING = 0.1  # of what is remembered of the steps before


@dataclass(eq=False)
class _Request(Progress):
    """A job somebody waits for."""

    many: bool
    future: Future[Any] = field(default_factory=Future)

    def answer(self) -> None:
        """Finish and tell; nothing is told where it was cancelled."""
        try:
            answers = self.finish()
        except Exception as error:
            self.refuse(error)
        else:
            if self.future.set_running_or_notify_cancel():
                self.future.set_result(answers if self.many else answers[0])

    def refuse(self, error: Exception) -> None:
        """Tell why there is no answer."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


@dataclass(eq=False)
class _Lane:
    """Units that go through the layers together, and those that wait to join them."""

    model: Model
    step_tokens: int
    queue: list[tuple[float, int, Unit]] = field(default_factory=list)  # turn; number; unit
    queued_tokens: int = 0
    seconds: float = SECONDS_PER_TOKEN  # of the steps so far, the last ones most
    tokens: float = 1.0  # of these steps, times layers

    def __post_init__(self) -> None:
        self.stepper = Stepper(self.model)

    @property
    def is_busy(self) -> bool:
        return bool(self.queue or self.stepper.tokens)

    @property
    def turn(self) -> float:
        """The earliest turn of its units, on their way or waiting."""
        turns = [unit.turn for unit in self.stepper.units()]
        return min([*turns, *(turn for turn, _, _ in self.queue[:1])])

    @property
    def seconds_per_token(self) -> float:
        """What a token takes in one layer."""
        return self.seconds / self.tokens

    def add(self, unit: Unit, number: int) -> None:
        heapq.heappush(self.queue, (unit.turn, number, unit))
        self.queued_tokens += unit.tokens

    def clear(self) -> None:
        self.queue.clear()
        self.queued_tokens = 0
        self.stepper = Stepper(self.model)

    def layers(self, stepper: Stepper) -> int:
        """Of a step: as many as there is time for."""
        fit = STEP_SECONDS / (stepper.tokens * self.seconds_per_token)
        return min(max(1, int(fit)), stepper.layers_until_any_leaves())

    def time(self, tokens: int, seconds: float) -> None:
        """Remember how long a step took."""
        self.seconds += seconds - FORGETTING * self.seconds
        self.tokens += tokens - FORGETTING * self.tokens

    def next(self, taken: int) -> Unit | None:
        """The unit whose turn it is, if there is room for it beside so many tokens."""
        if not self.queue or not self.stepper.takes_more:
            return None
        unit = self.queue[0][-1]
        room = self.step_tokens * (2 if unit.tokens <= SHORT else 1)
        if taken and taken + unit.tokens > room:
            return None
        heapq.heappop(self.queue)
        self.queued_tokens -= unit.tokens
        return unit


class Scheduler:
    """Two lanes and one worker thread, started with the first request."""

    def __init__(self, model: Model, computing: threading.Lock, step_tokens: int) -> None:
        self._model, self._computing = model, computing
        self._short = _Lane(model, step_tokens)
        self._long = _Lane(model, LONG_STEP)
        self._lanes = (self._short, self._long)
        self._last = self._short  # the lane that went on
        # Weak: what was answered long before its deadline is not kept until then.
        self._deadlines: list[tuple[float, int, ReferenceType[_Request]]] = []
        self._cancelled: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._number = 0
        self._clock = 0.0  # seconds of work, as turns count them
        self._live: set[_Request] = set()

    @property
    def queued_tokens(self) -> int:
        """Tokens that wait to join."""
        return sum(lane.queued_tokens for lane in self._lanes)

    @property
    def seconds_queued(self) -> float:
        """How long what is queued will take, by the steps so far."""
        layers = self._model.config.num_hidden_layers
        return layers * sum(lane.queued_tokens * lane.seconds_per_token for lane in self._lanes)

    def submit(self, job: Job, *, many: bool, deadline: float | None) -> Future[Any]:
        """Queue a job; its future gives the answer."""
        if deadline is not None and not deadline > 0:
            raise SettingsError(f"deadline {deadline}: give the seconds that an answer may take")
        now = time.monotonic()
        request = _Request(job, many)
        request.future.add_done_callback(
            lambda future: self._cancelled.append(request) if future.cancelled() else None
        )
        with self._changed:
            if self._closed:
                raise ClosedError("the engine was closed; open another one")
            self._enqueue(request)
            if deadline is not None:
                heapq.heappush(self._deadlines, (now + deadline, self._number, ref(request)))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="litebert", daemon=True)
                self._thread.start()
            self._changed.notify()
        return request.future

    def close(self, *, drain: bool) -> None:
        """Take no more; finish what is there first, or refuse it."""
        with self._changed:
            self._closed = True
            if not drain:
                self._refuse_all(ClosedError("the engine was closed before this was answered"))
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _enqueue(self, request: _Request) -> None:
        self._live.add(request)
        turn = self._clock
        for unit in reversed(request.units()):  # short ones first
            lane = self._short if unit.tokens <= LONG else self._long
            turn += unit.tokens * lane.seconds_per_token * request.job.depth
            unit.turn = turn
            self._number += 1
            lane.add(unit, self._number)

    # --------------------------------------------------------------------------- the worker

    @torch.inference_mode()
    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._busy() and not self._closed:
                    self._changed.wait()
                self._weed()
                busy = self._busy()
                if not busy:
                    if self._closed:
                        return
                    continue
                lane = self._choose(busy)
                joining, stepper = self._next(lane), lane.stepper
            if joining or stepper.tokens:
                self._advance(lane, stepper, joining)
            del joining  # else the last requests are kept until the next ones come

    def _choose(self, busy: list[_Lane]) -> _Lane:
        """The lane with the earliest turn; but no two steps of long texts while short ones wait."""
        lane = min(busy, key=lambda lane: lane.turn)
        if lane is self._long is self._last and self._short in busy:
            lane = self._short
        self._last = lane
        return lane

    def _busy(self) -> list[_Lane]:
        return [lane for lane in self._lanes if lane.is_busy]

    def _advance(self, lane: _Lane, stepper: Stepper, joining: list[Unit]) -> None:
        try:
            with self._computing:
                began = time.monotonic()
                stepper.admit(joining)
                tokens, layers = stepper.tokens, lane.layers(stepper)
                done = stepper.step(layers)
                lane.time(tokens * layers, time.monotonic() - began)
        except Exception as error:  # of ours, or memory: nobody may wait forever
            with self._changed:
                self._refuse_all(error)
            return
        self._clock = max([self._clock, *(unit.turn for unit in done)])
        for request in dict.fromkeys(unit.progress for unit in done):
            assert isinstance(request, _Request)
            if request.left == 0 and self._leave(request):
                request.answer()

    def _leave(self, request: _Request) -> bool:
        """Whether somebody still waits for it; from now on nobody does."""
        with self._changed:
            alive = request in self._live
            self._live.discard(request)
        return alive

    def _next(self, lane: _Lane) -> list[Unit]:
        """The units whose turn it is, as far as there is room."""
        joining: list[Unit] = []
        tokens = lane.stepper.tokens
        while (unit := lane.next(tokens)) is not None:
            if unit.progress in self._live:
                joining.append(unit)
                tokens += unit.tokens
        return joining

    def _weed(self) -> None:
        """Let go of requests that were cancelled, or whose deadline has passed."""
        gone: list[_Request | None] = []
        while self._cancelled:
            gone.append(self._cancelled.popleft())
        now = time.monotonic()
        while self._deadlines and self._deadlines[0][0] < now:
            gone.append(heapq.heappop(self._deadlines)[-1]())
        for request in self._live.intersection(gone):
            self._live.discard(request)
            request.refuse(DeadlineError("not answered by its deadline; allow more time"))
        for lane in self._lanes:
            if any(unit.progress not in self._live for unit in lane.stepper.units()):
                lane.stepper.drop(lambda unit: unit.progress not in self._live)

    def _refuse_all(self, error: Exception) -> None:
        live, self._live = self._live, set()
        for lane in self._lanes:
            lane.clear()
        self._deadlines.clear()
        for request in live:  # whoever is refused may submit at once
            request.refuse(error)

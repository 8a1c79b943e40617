"""Requests of many callers through one encoder: queues, and workers that step.

A worker takes some of the waiting texts through the layers, a step at a time. Small models have a
worker for each core, which computes by itself: their operations are too small to be divided, and a
team of threads waits wherever one of its cores does something else. Large ones have one worker,
with all cores. A worker that is alone has them, too.

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
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any
from weakref import ReferenceType, ref

import torch

from litebert.base.errors import ClosedError, DeadlineError, SettingsError
from litebert.base.runtime import use_threads
from litebert.inference.jobs import Job
from litebert.inference.stepping import Progress, Stepper, Unit
from litebert.model.model import Model

SHORT = 64  # tokens; a text of so many joins even where the step is full
LONG = 128  # tokens; texts of more go in a lane of their own
LONG_STEP = 256  # tokens of a step in that lane, unless one text has more
STEP_SECONDS = 0.02  # that a newcomer waits until it may join, or go first; one layer at least
SECONDS_PER_TOKEN = 1e-5  # of a layer, before the first step was timed
FORGETTING = 0.1  # of what is remembered of the steps before
LEAST_SHARE = 256  # tokens that are not divided among workers


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
    """Units that go through the layers, in a stepper a worker, and those that wait to join."""

    model: Model
    step_tokens: int
    workers: int
    queue: list[tuple[float, int, Unit]] = field(default_factory=list)  # turn; number; unit
    queued_tokens: int = 0
    seconds: float = SECONDS_PER_TOKEN  # of all cores, of the steps so far, the last ones most
    tokens: float = 1.0  # of these steps, times layers

    def __post_init__(self) -> None:
        self.clear()

    def turns(self) -> Iterator[tuple[float, Stepper]]:
        """What a worker could do now: a stepper, and the earliest turn of its units."""
        heads = [turn for turn, _, _ in self.queue[:1]]
        for stepper in self.free:
            turns = [unit.turn for unit in stepper.units()]
            if turns or heads:
                yield min([*turns, *heads]), stepper
            if not turns:
                heads = []  # one that is empty is enough

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
        self.free = [Stepper(self.model) for _ in range(self.workers)]
        self.lent: list[Stepper] = []  # a worker is at each

    def lend(self, stepper: Stepper) -> None:
        """To a worker, until it gives it back."""
        self.free.remove(stepper)
        self.lent.append(stepper)

    def take_back(self, stepper: Stepper) -> None:
        """From a worker; there are new ones if the lane was cleared in between."""
        if stepper in self.lent:
            self.lent.remove(stepper)
            self.free.append(stepper)

    def layers(self, stepper: Stepper, cores: float) -> int:
        """Of a step on a fraction of the cores: as many as there is time for."""
        fit = STEP_SECONDS * cores / (stepper.tokens * self.seconds_per_token)
        return min(max(1, int(fit)), stepper.layers_until_any_leaves())

    def time(self, tokens: int, seconds: float) -> None:
        """Remember how long a step took."""
        self.seconds += seconds - FORGETTING * self.seconds
        self.tokens += tokens - FORGETTING * self.tokens

    def next(self, taken: int, most: float) -> Unit | None:
        """The unit whose turn it is, if there is room for it beside so many tokens."""
        if not self.queue:
            return None
        unit = self.queue[0][-1]
        room = self.step_tokens * (2 if unit.tokens <= SHORT else 1)
        if taken and taken + unit.tokens > min(room, most):
            return None
        heapq.heappop(self.queue)
        self.queued_tokens -= unit.tokens
        return unit


@dataclass(frozen=True)
class _Work:
    """What a worker does next."""

    lane: _Lane
    stepper: Stepper
    joining: list[Unit]
    threads: int


class Scheduler:
    """Two lanes and their workers, who begin as requests come."""

    def __init__(
        self, model: Model, computing: threading.Semaphore, step_tokens: int, workers: int
    ) -> None:
        self._model, self._computing = model, computing
        self._short = _Lane(model, step_tokens, workers)
        self._long = _Lane(model, LONG_STEP, workers)
        self._lanes = (self._short, self._long)
        self._last = self._short  # the lane that went on
        # Weak: what was answered long before its deadline is not kept until then.
        self._deadlines: list[tuple[float, int, ReferenceType[_Request]]] = []
        self._cancelled: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._workers, self._threads = workers, list[threading.Thread]()
        self._cores = torch.get_num_threads()
        self._idle = 0  # workers
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
            self._call_worker()
        return request.future

    def close(self, *, drain: bool) -> None:
        """Take no more; finish what is there first, or refuse it."""
        with self._changed:
            self._closed = True
            if not drain:
                self._refuse_all(ClosedError("the engine was closed before this was answered"))
            self._changed.notify_all()
        if threading.current_thread() not in self._threads:
            for thread in self._threads:
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

    # -------------------------------------------------------------------------- the workers

    def _call_worker(self) -> None:
        """Somebody who is idle, or a new one."""
        if not self._idle and len(self._threads) < self._workers and not self._closed:
            thread = threading.Thread(target=self._work, name="litebert", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._changed.notify()

    @property
    def _stepping(self) -> int:
        """Workers that are at a step."""
        return sum(len(lane.lent) for lane in self._lanes)

    @torch.inference_mode()
    def _work(self) -> None:
        while self._wait():
            with self._computing:
                with self._changed:
                    work = self._next()
                done = self._advance(work) if work is not None else []
            work = None  # else the last requests are kept until the next ones come
            for request in done:
                request.answer()
            del done

    def _wait(self) -> bool:
        """Until there is something to do; nothing ever will be where it is closed."""
        with self._changed:
            while not self._turns():
                if self._closed:
                    return False
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            return True

    def _turns(self) -> list[tuple[float, _Lane, Stepper]]:
        return [(turn, lane, stepper) for lane in self._lanes for turn, stepper in lane.turns()]

    def _next(self) -> _Work | None:
        """What is to be done, if another worker has not taken it, on how many threads."""
        self._weed()
        if not (found := self._turns()):
            return None
        lane, stepper = self._choose(found)
        if any(unit.progress not in self._live for unit in stepper.units()):
            stepper.drop(lambda unit: unit.progress not in self._live)
        joining = self._joining(lane, stepper)
        if not joining and not stepper.tokens:
            return None
        is_alone = not self._stepping
        lane.lend(stepper)
        if self._turns():
            self._call_worker()
            is_alone = False
        threads = self._cores if is_alone else max(self._cores // self._workers, 1)
        return _Work(lane, stepper, joining, threads)

    def _choose(self, found: list[tuple[float, _Lane, Stepper]]) -> tuple[_Lane, Stepper]:
        """The earliest turn; but no two steps of long texts while short ones wait."""
        if self._last is self._long:
            found = [one for one in found if one[1] is self._short] or found
        _, lane, stepper = min(found, key=lambda one: one[0])
        self._last = lane
        return lane, stepper

    def _joining(self, lane: _Lane, stepper: Stepper) -> list[Unit]:
        """The units whose turn it is, as far as there is room; others have their share of them."""
        if not stepper.takes_more:
            return []
        joining: list[Unit] = []
        tokens = stepper.tokens
        share = (tokens + lane.queued_tokens) / max(self._workers - self._stepping, 1)
        while (unit := lane.next(tokens, max(share, LEAST_SHARE))) is not None:
            if unit.progress in self._live:
                joining.append(unit)
                tokens += unit.tokens
        return joining

    def _advance(self, work: _Work) -> list[_Request]:
        """A step; returns the requests that are done, and still wanted."""
        lane, stepper, cores = work.lane, work.stepper, work.threads / self._cores
        use_threads(work.threads, self._cores)
        try:
            began = time.monotonic()
            stepper.admit(work.joining)
            tokens, layers = stepper.tokens, lane.layers(stepper, cores)
            units = stepper.step(layers)
            seconds = time.monotonic() - began
        except Exception as error:  # of ours, or memory: nobody may wait forever
            with self._changed:
                self._refuse_all(error)
            return []
        with self._changed:
            lane.time(tokens * layers, seconds * cores)
            lane.take_back(stepper)
            self._clock = max([self._clock, *(unit.turn for unit in units)])
            for unit in units:
                unit.progress.left -= 1
            done = dict.fromkeys(unit.progress for unit in units if not unit.progress.left)
            wanted = [one for one in done if isinstance(one, _Request) and one in self._live]
            self._live.difference_update(wanted)
        return wanted

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

    def _refuse_all(self, error: Exception) -> None:
        live, self._live = self._live, set()
        for lane in self._lanes:
            lane.clear()
        self._deadlines.clear()
        for request in live:  # whoever is refused may submit at once
            request.refuse(error)

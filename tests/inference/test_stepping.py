"""Requests at different depths in one batch: the same answers, each exactly once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.base.errors import ClosedError, DeadlineError, SettingsError
from litebert.base.runtime import memory_now
from litebert.inference import scheduler
from litebert.inference.engine import Engine
from litebert.inference.exits import FixedDepth
from litebert.inference.jobs import run_job
from litebert.inference.scheduler import LONG, _Request
from litebert.inference.stepping import Progress, Stepper, run_stepwise
from tests.inference.engines import open_small, write_model
from tests.tasks.small import sentence


@dataclass(frozen=True)
class Sure:
    """Leave when one label is likelier than this."""

    threshold: float

    def leaves(self, outputs: Any) -> bool:
        return bool(outputs[-1].max() > self.threshold)


@pytest.fixture(scope="module", params=["all", "none"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return open_small(tmp_path_factory.mktemp("engine"), sharing=request.param)


TEXTS = [sentence(number, 1 + 7 * number % 23) for number in range(12)]


@settings(max_examples=30)
@given(st.data())
def test_mixing_depths_changes_no_answer(engine: Engine, data: st.DataObject) -> None:
    """Whatever arrives when, at whichever depth it leaves."""
    depths = st.integers(1, 4 if not engine.model.config.depth_is_free else 6)
    rules = st.sampled_from([None, Sure(0.75), Sure(1.0)])
    jobs = [
        engine.job("predict", text, depth=data.draw(depths), exit=data.draw(rules))
        for text in data.draw(st.permutations(TEXTS))[: data.draw(st.integers(1, 8))]
    ]
    stepper, arriving, done = Stepper(engine.model), [Progress(job) for job in jobs], []
    waiting = list(arriving)
    with torch.inference_mode():
        while len(done) < len(jobs):
            if stepper.takes_more and waiting and (not stepper.tokens or data.draw(st.booleans())):
                joining = [waiting.pop() for _ in range(data.draw(st.integers(1, len(waiting))))]
                stepper.admit([unit for one in joining for unit in one.units()])
            if stepper.tokens:
                done += stepper.step(data.draw(st.integers(1, stepper.layers_until_any_leaves())))
    for progress, job in zip(arriving, jobs, strict=True):
        assert all(output is not None for output in progress.outputs)
        mixed, alone = progress.finish()[0], _alone(engine, job)
        assert mixed.depth == alone.depth
        assert list(mixed.probabilities.values()) == pytest.approx(
            list(alone.probabilities.values()), abs=1e-5
        )


def _alone(engine: Engine, job: Any) -> Any:
    if job.rule is None:
        return run_job(engine.model, job)[0]
    return run_stepwise(engine.model, job, 10_000)[0]


def test_a_large_job_leaves_and_refills(engine: Engine) -> None:
    texts = [sentence(number, 1 + number % 40) for number in range(60)]
    first = [max(one.probabilities.values()) for one in engine.predict(texts, depth=1)]
    job = engine.job("predict", texts, exit=Sure(float(np.quantile(first, 0.513))))
    small, large = (run_stepwise(engine.model, job, tokens) for tokens in (64, 100_000))
    assert [one.depth for one in small] == [one.depth for one in large]
    assert len({one.depth for one in small}) > 1


@pytest.fixture
def two_cores() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("rule", [None, Sure(0.75)])
def test_a_list_is_shared_by_workers(engine: Engine, rule: Any, monkeypatch: Any) -> None:
    texts = [sentence(number, 1 + number % 40) for number in range(200)]
    alone: set[int] = set()
    for readout in ("layers", "forward"):
        plain = getattr(engine.model.encoder, readout)

        def noted(*given: Any, plain: Any = plain, **named: Any) -> Any:
            alone.add(torch.get_num_threads())
            return plain(*given, **named)

        monkeypatch.setattr(engine.model.encoder, readout, noted)
    answers = engine.predict(texts, exit=rule)
    assert alone == {1}
    assert torch.get_num_threads() == 2
    with ThreadPoolExecutor(1) as later:
        assert later.submit(torch.get_num_threads).result() == 2
    monkeypatch.setattr(engine, "most_workers", 1)
    expected = engine.predict(texts, exit=rule)
    assert alone == {1, 2}
    assert [one.depth for one in answers] == [one.depth for one in expected]
    for one, other in zip(answers, expected, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)


@pytest.mark.usefixtures("two_cores")
def test_workers_step_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_small(tmp_path)
    threads: list[int] = []
    meeting, step = threading.Barrier(2, timeout=30), Stepper.step

    def met(self: Stepper, layers: int) -> Any:
        threads.append(torch.get_num_threads())
        if len(threads) <= 2:
            meeting.wait()  # a worker alone would wait in vain
        return step(self, layers)

    texts = [sentence(number, 40) for number in range(100)]
    expected = engine.predict(texts)
    monkeypatch.setattr(Stepper, "step", met)
    answers = engine.submit(texts).result(60)
    assert threads[:2] == [1, 1]
    for one, other in zip(answers, expected, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
    engine.submit("w1q").result(30)
    engine.close()
    assert threads[-1] == 2  # a worker that is alone has all cores


def test_groups_stay_together(tmp_path: Path) -> None:
    engine = open_small(tmp_path, "choice")
    asked = [
        {"question": sentence(n, 2), "options": [sentence(9 * n + k, 1 + k) for k in range(3)]}
        for n in range(9)
    ]
    expected = engine.predict(asked)
    for future, one in zip([engine.submit(ask) for ask in asked], expected, strict=True):
        assert future.result(30).probabilities == pytest.approx(one.probabilities, abs=1e-5)


def test_different_questions_share_the_encoder(tmp_path: Path) -> None:
    engine = Engine(write_model(tmp_path, extra=("masked_lm", "sentence_pair")), precision="fp32")
    futures = [
        [
            engine.submit(text),
            engine.submit(text, ask="embed"),
            engine.submit(f"{text} [MASK]", ask="fill_mask"),
            engine.submit((text, "w1q"), ask="order"),
        ]
        for text in TEXTS
    ]
    for text, (label, vector, mask, order) in zip(TEXTS, futures, strict=True):
        assert label.result(30).label == engine.predict(text).label
        assert np.allclose(vector.result(30), engine.embed(text), atol=1e-5)
        best = engine.fill_mask(f"{text} [MASK]").masks[0].candidates[0]
        assert mask.result(30).masks[0].candidates[0].token == best.token
        assert order.result(30).probability == pytest.approx(engine.order(text, "w1q").probability)
    engine.close()


class _Held:
    """Keeps the workers from computing, so that a test decides what happens first."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def __enter__(self) -> None:
        for _ in range(self.engine.scheduler._workers):
            self.engine.computing.acquire()

    def __exit__(self, *_: object) -> None:
        self.engine.computing.release(self.engine.scheduler._workers)


def test_deadlines_and_cancellation(tmp_path: Path) -> None:
    engine = open_small(tmp_path)
    with _Held(engine):
        first = engine.submit("w1q")  # on its way
        late = engine.submit("w2q", deadline=1e-6)
        gone = engine.submit(["w3q"] * 50)
        kept = engine.submit("w4q", deadline=60)
        assert gone.cancel()
        time.sleep(0.01)
    assert isinstance(late.exception(30), DeadlineError)
    assert kept.result(30).label == engine.predict("w4q").label
    assert first.result(30)
    with pytest.raises(CancelledError):
        gone.result(30)
    wait([gone], 30)
    with pytest.raises(SettingsError, match="deadline 0"):
        engine.submit("w1q", deadline=0)
    engine.close()


def test_closing_finishes_or_refuses(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    engine = Engine(folder, precision="fp32")
    with _Held(engine):
        kept = [engine.submit(text) for text in TEXTS]
        closing = threading.Thread(target=engine.close)
        closing.start()
    closing.join(30)
    assert all(future.result(0) for future in kept)
    with pytest.raises(ClosedError, match="was closed"):
        engine.submit("w1q")
    engine = Engine(folder, precision="fp32")
    with _Held(engine):
        refused = [engine.submit(text) for text in TEXTS]
        closing = threading.Thread(target=engine.close, kwargs={"drain": False})
        closing.start()
        for future in refused:
            assert isinstance(future.exception(30), ClosedError)
    closing.join(30)


def test_who_was_refused_may_submit_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a callback that tries again does: the others are refused too, and the engine goes on."""
    engine = open_small(tmp_path)
    step, failures = Stepper.step, [MemoryError("no memory")]

    def fail_once(self: Stepper, layers: int) -> Any:
        if failures:
            raise failures.pop()
        return step(self, layers)

    monkeypatch.setattr(Stepper, "step", fail_once)
    again: Queue[Any] = Queue()
    with _Held(engine):
        refused = [engine.submit(text) for text in TEXTS]
        for future in refused:
            future.add_done_callback(lambda _: again.put(engine.submit("w1q")))
    for future in refused:
        assert isinstance(future.exception(30), MemoryError)
        assert again.get(timeout=30).result(30).label == engine.predict("w1q").label
    engine.close()


def test_a_large_batch_does_not_starve_a_short_text(tmp_path: Path) -> None:
    engine = open_small(tmp_path)
    with _Held(engine):
        large = engine.submit([sentence(n, 40) for n in range(500)])
        short = engine.submit("w1q")
    short.result(30)
    assert not large.done()
    assert len(large.result(60)) == 500
    engine.close()


def test_short_texts_do_not_go_beside_long_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_small(tmp_path, max_length=250, max_position_embeddings=256)
    steps: list[list[int]] = []
    step = Stepper.step

    def noted(self: Stepper, layers: int) -> Any:
        steps.append([unit.tokens for unit in self.units()])
        return step(self, layers)

    monkeypatch.setattr(Stepper, "step", noted)
    with _Held(engine):
        large = engine.submit([sentence(n, 200) for n in range(6)])
        short = engine.submit("w1q")
    short.result(30)
    assert not large.done()
    large.result(30)
    engine.close()
    assert all(max(tokens) <= LONG or min(tokens) > LONG for tokens in steps)


@pytest.mark.parametrize(
    ("seconds", "rule", "steps"),
    [(1e9, None, [4]), (0.0, None, [1] * 4), (1e9, Sure(1.0), [1] * 4)],
)
def test_a_step_is_as_many_layers_as_there_is_time_for(
    seconds: float, rule: Any, steps: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_small(tmp_path)
    taken: list[int] = []
    step = Stepper.step

    def noted(self: Stepper, layers: int) -> Any:
        taken.append(layers)
        return step(self, layers)

    monkeypatch.setattr(Stepper, "step", noted)
    monkeypatch.setattr(scheduler, "STEP_SECONDS", seconds)
    engine.submit("w1q w2q", exit=rule).result(30)
    engine.close()
    assert taken == steps


def test_a_long_text_is_overtaken_only_until_its_turn(tmp_path: Path) -> None:
    """By about as much work as its own; who comes later has a later turn."""
    engine = open_small(tmp_path, max_length=250, max_position_embeddings=256)
    queues = engine.scheduler
    short, long = queues._lanes

    def enqueue(text: str) -> None:
        queues._enqueue(_Request(engine.job("predict", text), many=False))

    queues._clock = 100.0
    enqueue(sentence(1, 200))
    ((turn, _),) = long.turns()
    takes = turn - 100.0
    assert takes > 0
    for done, goes_first in ((0.5 * takes, short), (takes, long)):
        queues._clock = 100.0 + done
        enqueue("w1q")
        found = queues._turns()
        assert queues._choose(found)[0] is goes_first
        assert queues._choose(found)[0] is short  # not twice in a row while it waits
        assert queues._choose([one for one in found if one[1] is long])[0] is long
        queues._last = short
        short.clear()


def test_what_is_done_moves_the_clock(tmp_path: Path) -> None:
    engine = open_small(tmp_path)
    engine.submit("w1q w2q").result(30)
    one = engine.scheduler._clock
    engine.submit(["w1q w2q"] * 3).result(30)
    assert engine.scheduler._clock > one > 0
    engine.close()


def test_a_fixed_depth_asks_no_head_on_the_way(tmp_path: Path) -> None:
    job = open_small(tmp_path).job("predict", "w1q", exit=FixedDepth(2))
    assert (job.depth, job.rule) == (2, None)


def test_a_mistake_of_ours_reaches_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_small(tmp_path)
    monkeypatch.setattr(type(engine.task), "outputs", lambda *_: 1 / 0)
    assert isinstance(engine.submit("w1q").exception(30), ZeroDivisionError)
    monkeypatch.undo()
    assert engine.submit("w1q").result(30)
    engine.close()


def soak(folder: Path, requests: int) -> list[int]:
    """Random tasks, lengths, cancellations and deadlines: all come to one end.

    Returns the bytes of memory at ten moments.
    """
    engine = Engine(write_model(folder, extra=("masked_lm", "sentence_pair")), precision="fp32")
    chance = np.random.default_rng(0)
    ends = {"answered": 0, "refused": 0, "cancelled": 0}
    calls = np.zeros(requests, np.int64)
    memory: list[int] = []
    open_: list[Future[Any]] = []

    def asked() -> tuple[str, Any]:
        text = sentence(int(chance.integers(1000)), int(chance.integers(1, 50)))
        return (
            ("predict", text), ("predict", [text, "w1q", "w2q w3q"]), ("embed", text),
            ("fill_mask", f"{text} [MASK]"), ("order", (text, "w1q w2q")),
        )[chance.integers(5)]  # fmt: skip

    def count(number: int) -> Any:
        return lambda _: calls.__setitem__(number, calls[number] + 1)

    def settle(keep: int) -> None:
        while len(open_) > keep:
            future = open_.pop(0)
            try:
                future.result(60)
                ends["answered"] += 1
            except CancelledError:
                ends["cancelled"] += 1
            except DeadlineError:
                ends["refused"] += 1

    for number in range(requests):
        ask, inputs = asked()
        deadline = None if chance.random() < 0.8 else float(chance.exponential(0.02)) + 1e-6
        future = engine.submit(inputs, ask=ask, deadline=deadline)
        future.add_done_callback(count(number))
        open_.append(future)
        if chance.random() < 0.1:
            open_[int(chance.integers(len(open_)))].cancel()
        settle(200)
        if number % (requests // 10) == 0:
            memory.append(memory_now())
    settle(0)
    engine.close()
    assert sum(ends.values()) == requests
    assert min(ends.values()) > 0
    assert (calls == 1).all()
    assert engine.scheduler.queued_tokens == 0
    return memory


def test_every_request_comes_to_one_end(tmp_path: Path) -> None:
    soak(tmp_path, 600)


@pytest.mark.extra
def test_a_hundred_thousand_requests_leave_no_memory_behind(tmp_path: Path) -> None:
    """A kilobyte of each would be 70 MB; oneDNN keeps up to 1,024 kernels, some 50 kB each."""
    memory = soak(tmp_path, 100_000)
    assert memory[-1] - memory[3] < 60e6

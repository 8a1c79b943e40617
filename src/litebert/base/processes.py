"""Processes that work for this one: spawned, deaf to Ctrl-C, and gone when it is gone.

    with ProcessPool(2, load_models, (folder,)) as pool:
        for job in jobs:
            pool.submit(run, job)
        for result in pool.completed():
            ...

A worker ends with its parent, however that ends: it waits on a pipe of which the parent alone holds
the other end. An exception in the parent ends the workers at once, so what they write must be whole
or not there (base/files.py). A worker that is killed is told as one sentence.

Workers run functions of ours only, so they do not run the parent's script again, as spawned
processes usually do: a script needs no `if __name__ == "__main__"`.
"""

from __future__ import annotations

import hashlib
import multiprocessing.context as context
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import spawn
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from litebert.base.errors import lost_worker


def cpu_count() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def source_checksum() -> str:
    """A SHA-256 of this package's source: equal on hosts that run the same code."""
    root, found = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return found.hexdigest()


@contextmanager
def signals_blocked(*signals: signal.Signals) -> Iterator[None]:
    """What is started here never sees these signals: they are for the parent to handle."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Process(context.SpawnProcess):
    """A spawned process that leaves its parent's script alone."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        with _spawning:
            whole = spawn.get_preparation_data
            spawn.get_preparation_data = lambda name: _without_script(whole(name))
            try:
                return context.SpawnProcess._Popen(process_obj)  # type: ignore[attr-defined]
            finally:
                spawn.get_preparation_data = whole


_spawning = threading.Lock()


def _without_script(preparation: dict[str, Any]) -> dict[str, Any]:
    return {name: v for name, v in preparation.items() if not name.startswith("init_main")}


class SpawnContext(context.SpawnContext):
    """How our processes are started: spawned, and without running the parent's script again."""

    Process = _Process  # type: ignore[assignment]


class ProcessPool:
    """Some worker processes, started as work comes; `initializer` runs first in each of them."""

    def __init__(
        self, workers: int, initializer: Callable[..., None] | None = None, initargs: tuple = ()
    ) -> None:
        self._workers, self._initial = workers, (initializer, initargs)
        self._pending: set[Future[Any]] = set()

    def __enter__(self) -> Self:
        spawned = SpawnContext()
        ours, self._lifeline = spawned.Pipe(duplex=False)
        initial: Any = (ours, *self._initial)
        self._executor = ProcessPoolExecutor(
            self._workers, mp_context=spawned, initializer=_begin, initargs=initial
        )
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._lifeline.close()
        self._executor.shutdown(cancel_futures=True)
        self._lifeline.close()

    def start(self) -> None:
        """Start all workers now, so that they initialize while this process does other things."""
        for _ in range(self._workers):
            self._submit(_nothing)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Have a function called in a worker; `completed` gives what it returns."""
        self._pending.add(self._submit(function, *arguments))

    def completed(self, pending: int = 0) -> Iterator[Any]:
        """Results of what was submitted as they come, until at most `pending` are left."""
        while len(self._pending) > pending:
            done, self._pending = wait(self._pending, return_when=FIRST_COMPLETED)
            yield from map(_result, done)

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """The function's result for each item, in order."""
        return [_result(future) for future in [self._submit(function, item) for item in items]]

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        with signals_blocked(signal.SIGINT):  # a worker that this starts inherits it
            try:
                return self._executor.submit(function, *arguments)
            except BrokenProcessPool:
                raise lost_worker() from None


def _nothing() -> None: ...


def _result(future: Future[Any]) -> Any:
    try:
        return future.result()
    except BrokenProcessPool:
        raise lost_worker() from None


def _begin(lifeline: Connection, initializer: Callable[..., None] | None, initargs: tuple) -> None:
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
    if initializer is not None:
        initializer(*initargs)


def _end_with_parent(lifeline: Connection) -> None:
    with suppress(EOFError, OSError):
        lifeline.recv()
    os._exit(1)

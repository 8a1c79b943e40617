"""Loading ahead in other processes: worker w of W makes batches w, w + W, w + 2W, …

Which batch is which does not depend on the workers, so neither does the order. A worker that is
ahead waits until its batch is taken, so no more than one batch a worker is in memory.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from litebert.base.batch import Batch
from litebert.base.errors import LitebertError
from litebert.corpus.loader import Corrupt, Loader, LoaderSettings, Position, Tally
from litebert.corpus.store import Store


@dataclass(frozen=True)
class _Recipe:
    """How a worker rebuilds the loader."""

    folders: list[Path]
    settings: LoaderSettings
    corrupt: Corrupt | None
    rank: int
    ranks: int
    epochs: int | None
    window_blocks: int
    position: Position

    def build(self) -> Loader:
        return Loader(
            Store(self.folders), self.settings, self.corrupt, self.rank, self.ranks, self.epochs,
            self.window_blocks, self.position,
        )  # fmt: skip


class Workers:
    """A loader whose batches are made by other processes; its position is that of what was taken.

    Use it as a context: `with Workers(loader, 2) as batches: for batch in batches: …`
    """

    def __init__(self, loader: Loader, count: int) -> None:
        self.loader, self.count = loader, count

    def __enter__(self) -> Self:
        recipe = _Recipe(
            self.loader.store.folders, self.loader.settings, self.loader.corrupt, self.loader.rank,
            self.loader.ranks, self.loader.epochs, self.loader.window_blocks, self.loader.position,
        )  # fmt: skip
        context = multiprocessing.get_context("spawn")
        pipes = [context.Pipe(duplex=False) for _ in range(self.count)]
        self._ends: list[Any] = [end for end, _ in pipes]
        self._processes = [
            context.Process(target=_serve, args=(recipe, w, self.count, end), daemon=True)
            for w, (_, end) in enumerate(pipes)
        ]
        with _signals_held():
            for process, (_, end) in zip(self._processes, pipes, strict=True):
                process.start()
                end.close()
        self._turn, self._ended = 0, False
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.join()

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        if not self.count:
            return next(self.loader)
        if self._ended:
            raise StopIteration
        try:
            made: Any = self._ends[self._turn].recv()
        except EOFError:
            raise LitebertError("a loading process was killed; run the command again") from None
        if isinstance(made, LitebertError):
            raise made
        if made is None:
            self._ended = True
            raise StopIteration
        self._turn = (self._turn + 1) % self.count
        batch, self.loader.position, tally = made
        self.loader.tally.add(tally)
        return batch


@contextmanager
def _signals_held() -> Iterator[None]:
    """What is started here never sees Ctrl-C or SIGTERM: they are for the parent to handle."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(recipe: _Recipe, worker: int, workers: int, end: Connection) -> None:
    """A worker's life: make its batches until nobody takes them."""
    try:
        loader = recipe.build()
        for _ in range(worker):
            loader.skip()
        while True:
            loader.tally = Tally()
            batch = next(loader)
            end.send((batch, loader.position, loader.tally))
            for _ in range(workers - 1):
                loader.skip()
    except StopIteration:
        end.send(None)
    except LitebertError as error:
        end.send(error)
    except (BrokenPipeError, ConnectionResetError):
        pass

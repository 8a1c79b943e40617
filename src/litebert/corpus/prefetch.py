"""Loading ahead in other processes: worker w of W makes batches w, w + W, w + 2W, …

Which batch is which does not depend on the workers, so neither does the order. A worker that is
ahead waits until its batch is taken, so no more than one batch a worker is in memory.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import fields
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from litebert.base.batches import Batch
from litebert.base.errors import LitebertError
from litebert.base.processes import SpawnContext, signals_blocked
from litebert.corpus.loader import Loader, LoaderStatistics
from litebert.corpus.store import Store


class Prefetcher:
    """A loader whose batches are made by other processes; its position is that of what was taken.

    Use it as a context: `with Prefetcher(loader, 2) as batches: for batch in batches: …`
    """

    def __init__(self, loader: Loader, num_workers: int) -> None:
        self.loader, self.num_workers = loader, num_workers

    def __enter__(self) -> Self:
        folders, rest = self.loader.store.folders, ("store", "statistics")
        options = {f.name: getattr(self.loader, f.name) for f in fields(Loader)}
        options = {name: value for name, value in options.items() if name not in rest}
        context = SpawnContext()
        pipes = [context.Pipe(duplex=False) for _ in range(self.num_workers)]
        self._ends: list[Any] = [end for end, _ in pipes]
        self._processes = [
            context.Process(
                target=_serve, args=(folders, options, w, self.num_workers, end), daemon=True
            )
            for w, (_, end) in enumerate(pipes)
        ]
        with signals_blocked(signal.SIGINT, signal.SIGTERM):
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
        if not self.num_workers:
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
        self._turn = (self._turn + 1) % self.num_workers
        batch, self.loader.position, statistics = made
        self.loader.statistics.add(statistics)
        return batch


def _serve(
    folders: list[Path], options: dict[str, Any], worker: int, workers: int, end: Connection
) -> None:
    """A worker's life: make its batches until nobody takes them."""
    try:
        loader = Loader(Store(folders), **options)
        for _ in range(worker):
            loader.skip()
        while True:
            loader.statistics = LoaderStatistics()
            batch = next(loader)
            end.send((batch, loader.position, loader.statistics))
            for _ in range(workers - 1):
                loader.skip()
    except StopIteration:
        end.send(None)
    except LitebertError as error:
        end.send(error)
    except (BrokenPipeError, ConnectionResetError):
        pass

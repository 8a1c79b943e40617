"""A training step on a CPU's cores: some of the sequences a thread, each thread on its own core.

torch divides every single operation among its threads. The operations of small encoders are too
small for that: two threads were 1.2 times as fast as one, two processes on a core each nearly twice
(docs/log/pretraining.md). So each thread takes a part of the micro-batch through the forward and
the backward pass by itself. The threads' gradients are added in the order of the parts, whichever
is ready first, and dropout is seeded by part: a run repeats to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from litebert.objectives.learner import Learner
from litebert.planning.memory import step_parts

Result = TypeVar("Result")


class Threads:
    """As many threads as torch may use, or `most`, for a learner of so many parameters."""

    def __init__(self, parameters: int, most: int | None = None) -> None:
        self.cores = torch.get_num_threads()
        self.parameters, self.most = parameters, self.cores if most is None else most
        self._pool = ThreadPoolExecutor(self.most)  # starts threads when they are needed

    def parts(self, tokens: int) -> int:
        """In how many parts a micro-batch is computed."""
        return step_parts(self.parameters, tokens, self.most)

    def run(self, work: Sequence[Callable[[], Result]]) -> list[Result]:
        """All of it at the same time; the results in order."""
        each = max(self.cores // len(work), 1)

        def start(one: Callable[[], Result]) -> Result:
            torch.set_num_threads(each)  # of this thread's operations
            return one()

        found = list(self._pool.map(start, work))
        # Threads that helped with what lies between parts would wait for more of it, spinning.
        torch.set_num_threads(1)
        return found

    def release(self) -> None:
        """All cores for each operation again, of this thread and those that begin later."""
        torch.set_num_threads(self.cores)


def threads_for(learner: Learner, device: torch.device) -> Threads:
    """The threads that a learner's steps may use.

    One where a part's gradients are large, where layers are computed twice (which repeats dropout
    by torch's generator alone), or where a teacher is asked, who reads one batch at a time.
    """
    parameters = sum(p.numel() for p in learner.parameters() if p.requires_grad)
    twice = any(model.encoder.checkpointing for model in learner.models())
    alone = device.type != "cpu" or twice or len(learner.taught) > 0
    return Threads(parameters, 1 if alone else None)

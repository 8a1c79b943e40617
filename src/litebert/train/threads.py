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

FEWEST_TOKENS = 256  # of a part: products of fewer rows are slow by themselves
MOST_PARAMETERS = 40_000_000  # every part has gradients of its own in memory, and they are added

Result = TypeVar("Result")


class Threads:
    """As many threads as torch may use; `most` says how many parts a step may have."""

    def __init__(self, most: int, fewest_tokens: int = FEWEST_TOKENS) -> None:
        self.most, self.fewest_tokens, self.cores = most, fewest_tokens, torch.get_num_threads()
        self._pool = ThreadPoolExecutor(most) if most > 1 else None

    def parts(self, tokens: int) -> int:
        """In how many parts so many tokens are worth dividing."""
        return max(min(self.most, tokens // self.fewest_tokens), 1)

    def run(self, work: Sequence[Callable[[], Result]]) -> list[Result]:
        """All of it at the same time; the results in order."""
        assert self._pool is not None, "one part needs no thread"
        each = max(self.cores // len(work), 1)

        def start(one: Callable[[], Result]) -> Result:
            torch.set_num_threads(each)  # of this thread's operations
            return one()

        found = list(self._pool.map(start, work))
        torch.set_num_threads(self.cores)  # what threads that begin later will have
        return found


def threads_for(learner: Learner, device: torch.device) -> Threads:
    """The threads that a learner's steps may use.

    One where a part's gradients are large, where layers are computed twice (which repeats dropout
    by torch's generator alone), or where a teacher is asked, who reads one batch at a time.
    """
    parameters = sum(p.numel() for p in learner.parameters() if p.requires_grad)
    twice = any(model.encoder.checkpointing for model in learner.models())
    alone = device.type != "cpu" or twice or len(learner.taught) > 0
    return Threads(1 if alone or parameters > MOST_PARAMETERS else torch.get_num_threads())

"""One model of the service: its engine, its queue, and what it can be asked.

Requests become jobs of the engine. A request that is too late, or whose client went away, takes
its jobs back, so that nobody computes for no one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from litebert.base.errors import ClosedError, DeadlineError, InputError, LitebertError
from litebert.inference.engine import Engine
from litebert.inference.jobs import Job
from litebert.inference.pretrained import mask_name
from litebert.serving.limits import Limits, Queue, retry_after
from litebert.serving.monitoring import Monitoring
from litebert.serving.problems import Problem
from litebert.serving.schemas import ModelCard, Options, Usage
from litebert.text.tokenizer import Encoding

TRUNCATING = ("predict", "embed")  # the others always refuse what is too long
SHORT = 2_000  # characters that may be tokenized in the event loop; more goes to a thread


@dataclass(frozen=True)
class Answered:
    """Results in the order of the inputs, and what they took."""

    results: Any
    usage: Usage


class ServedModel:
    """An engine with a name, limits and a queue."""

    def __init__(self, name: str, engine: Engine, limits: Limits, monitoring: Monitoring) -> None:
        self.name, self.engine, self.limits = name, engine, limits
        self.monitoring = monitoring
        self.abilities = abilities_of(engine)
        monitoring.watch_queue(name, lambda: engine.scheduler.queued_tokens)

    def card(self) -> ModelCard:
        """What clients may know of the model."""
        engine, config = self.engine, self.engine.model.config
        settings = None if engine.task is None else engine.task.settings
        longest = config.longest_sequence
        return ModelCard(
            id=self.name,
            task=None if settings is None else settings.name,
            kind=None if settings is None else settings.kind,
            labels=[] if settings is None else list(settings.labels),
            example=None if engine.task is None else engine.task.example_input,
            abilities=list(self.abilities),
            precision=engine.precision,
            layers=engine.depth,
            shared=config.depth_is_free,
            hidden_size=config.hidden_size,
            parameters=engine.parameters,
            max_inputs=self.limits.inputs,
            max_length=longest if settings is None else min(settings.max_length, longest),
            mask_token=mask_name(engine.tokenizer) if "fill-mask" in self.abilities else None,
        )

    def needs(self, ability: str) -> None:
        """Refuse what this model has no head for."""
        if ability not in self.abilities:
            can = ", ".join(self.abilities)
            raise Problem(404, f"the model {self.name} has no {ability}; it has: {can}")

    async def ask(
        self, ability: str, inputs: Sequence[Any], options: Options, **more: Any
    ) -> Answered:
        """Put inputs to the engine, and wait for the answers."""
        self.needs(ability)
        self.check_inputs(inputs)
        began = time.perf_counter()
        deadline = min(options.deadline or self.limits.deadline, self.limits.deadline)
        asked = {name: value for name, value in more.items() if value is not None}
        if options.depth is not None:
            asked["depth"] = options.depth
        if options.exit is not None:
            if ability != "predict":
                raise Problem(422, f"exit: {ability} has no exits; give a depth", "exit")
            asked["exit"] = options.exit
        if not options.truncate and ability in TRUNCATING:
            asked["overflow"] = "error"
        job = await self._job(ability, list(inputs), asked)
        tokens = len(job.batch.ids)
        self.admit(tokens, deadline)
        results = await self._computed(job, deadline, began)
        milliseconds = round(1000 * (time.perf_counter() - began), 3)
        usage = Usage(tokens=tokens, truncated=job.truncated, milliseconds=milliseconds)
        return Answered(results, usage)

    async def _job(self, ability: str, inputs: list[Any], asked: dict[str, Any]) -> Job:
        name = ability.replace("-", "_")
        try:
            is_short = sum(map(characters_of, inputs)) <= SHORT
            if is_short and not self.engine.tokenizing.locked():  # nothing to wait for
                return self.engine.job(name, inputs, **asked)
            return await asyncio.to_thread(self.engine.job, name, inputs, **asked)
        except InputError as error:
            raise Problem(422, str(error), "inputs") from None
        except LitebertError as error:
            raise Problem(422, str(error)) from None

    async def _computed(self, job: Job, deadline: float, began: float) -> Any:
        left = max(deadline - (time.perf_counter() - began), 0.001)
        future = self.engine.scheduler.submit(job, many=True, deadline=left)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), left)
        except (TimeoutError, DeadlineError):
            raise Problem(504, f"no answer within {deadline:g} s") from None
        except ClosedError:
            raise Problem(503, "the service is stopping", retry_after=5) from None

    def check_inputs(self, inputs: Sequence[Any]) -> None:
        if not inputs:
            raise Problem(422, "inputs is an empty list; give at least one", "inputs")
        if len(inputs) > self.limits.inputs:
            raise Problem(
                422, f"{len(inputs)} inputs; at most {self.limits.inputs} a request", "inputs"
            )
        longest = max(map(characters_of, inputs))
        if longest > self.limits.characters:
            raise Problem(
                422, f"an input of {longest:,} characters; at most {self.limits.characters:,}",
                "inputs",
            )  # fmt: skip

    def admit(self, tokens: int, deadline: float) -> None:
        """Refuse what would wait too long."""
        scheduler = self.engine.scheduler
        queue = Queue(scheduler.queued_tokens, scheduler.seconds_queued)
        later = retry_after(queue, tokens, deadline, self.limits)
        if later is not None:
            raise Problem(
                429, f"{queue.tokens:,} tokens are waiting for {self.name}", retry_after=later
            )
        self.monitoring.tokens(self.name, tokens)

    def tokenize(self, texts: Sequence[str]) -> list[Encoding]:
        """The tokens of texts, with their places in them."""
        with self.engine.tokenizing:
            return [self.engine.tokenizer.encode_with_offsets(text) for text in texts]


def abilities_of(engine: Engine) -> tuple[str, ...]:
    """The routes below /v1/models/{name} that a model answers."""
    heads = engine.model.heads
    known = {
        "predict": engine.task is not None, "fill-mask": "masked_lm" in heads,
        "order": "sentence_pair" in heads, "embed": True, "layers": True, "tokenize": True,
    }  # fmt: skip
    return tuple(name for name, there in known.items() if there)


def characters_of(value: Any) -> int:
    """The characters of an input, whatever its form."""
    if isinstance(value, str):
        return len(value)
    parts = value.values() if isinstance(value, dict) else value
    return sum(characters_of(part) for part in parts)

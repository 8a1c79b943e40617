"""The engine: a model folder to be asked from Python, without files.

    engine = litebert.Engine("tuned", precision="int8")
    engine.predict("a fine film")                      # one input, one answer; a list, a list
    engine.predict([("a man sleeps", "he is awake")])  # pairs are tuples
    engine.submit("a fine film").result()              # with others' requests in one batch

    engine = litebert.Engine("run")                    # pretrained only
    engine.embed(["one text", "another"])
    engine.fill_mask("the acting is [MASK] .")
    engine.order("It rained.", "So we stayed in.")

A list is many inputs, anything else is one. Weights are packed for the CPU when the engine is made
(kernels.py), and let go of. Methods may be called from several threads.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from litebert.base.errors import InputError, SettingsError, did_you_mean
from litebert.base.runtime import default_device, release_freed_memory
from litebert.inference.exits import DepthDial, ExitRule
from litebert.inference.jobs import (
    SLICE_TOKENS,
    Job,
    OnProgress,
    check_overflow,
    no_progress,
    predict_job,
    run_job,
)
from litebert.inference.kernels import resolve_engine_precision
from litebert.inference.model_folder import find_task, open_tokenizer
from litebert.inference.packed import pack_model
from litebert.inference.pretrained import embed_job, embed_settings, mask_job, order_job
from litebert.inference.scheduler import Scheduler
from litebert.inference.stepping import run_stepwise
from litebert.model.folder import find_model_folder
from litebert.model.model import Model
from litebert.tasks.asked import is_many, pair_of, places, text_of
from litebert.tasks.features import Features
from litebert.tasks.task import Prediction, Task

LARGE = 8 * SLICE_TOKENS  # tokens of a job after which freed memory goes back to the system
OVERFLOWS = ("truncate", "stride", "error")
WIDE = 512  # hidden size from which on a step of 512 tokens fills the processor
MOST_WORKERS = 4  # of smaller ones; Python lets one of them decide at a time


class Engine:
    """A model at work. Answers are typed, and say how many layers they took (`depth`)."""

    def __init__(
        self, folder: str | Path, precision: str = "auto", depth: int | None = None,
        exit: str | None = None, threads: int | None = None,
    ) -> None:  # fmt: skip
        """Open a model folder, or a run.

        Args:
            folder: Ours, or one that `transformers` saved: fine-tuned, or only pretrained.
            precision: `fp32`; `bf16` where the hardware has it; `int8`, smallest and fastest on
                most CPUs; `auto` is bf16 where that is faster (AMX, AMD from Zen 4 on, GPUs), else
                fp32.
            depth: Layers to run; encoders that share all layers can run any number.
            exit: An exit rule, for models that were fine-tuned with exits.
            threads: Threads of a matrix product, in the whole process; torch's choice without.
        """
        if threads is not None:
            if threads < 1:
                raise SettingsError(f"threads {threads}: at least one is needed")
            torch.set_num_threads(threads)
        self.folder = find_model_folder(Path(folder))
        device = default_device()
        self.precision = resolve_engine_precision(precision, device)
        model = Model.load(self.folder)
        self.task: Task | None = find_task(model, self.folder)
        self.tokenizer = open_tokenizer(self.folder)
        self.depth = model.config.num_hidden_layers if depth is None else depth
        model.encoder.check_depth(self.depth)
        self.device, self.parameters = device, sum(p.numel() for p in model.parameters())
        self.model = pack_model(model.to(device), self.precision)
        self.rule = self._rule(exit)
        self._tasks: dict[str, Task] = {}  # by overflow: requests of one task go together
        self.tokenizing = threading.Lock()  # hold it to use the tokenizer, which remembers words
        wide = self.model.config.hidden_size >= WIDE
        self.most_workers = 1 if wide or device.type != "cpu" else MOST_WORKERS
        self.computing = threading.Semaphore(self.workers)  # hold it to use the model
        self.scheduler = Scheduler(self.model, self.computing, 512 if wide else 1024, self.workers)
        weakref.finalize(self, self.scheduler.close, drain=False)

    # ---------------------------------------------------------------------------------- asking

    def predict(
        self, inputs: Any, *, overflow: str | None = None, depth: int | None = None,
        exit: str | ExitRule | None = None,
    ) -> Any:  # fmt: skip
        """Predict with a fine-tuned model.

        Args:
            inputs: A text; a pair (first, second); for tagging a text or a tuple of words; for
                question answering {"question": ..., "passage": ...}; for multiple choice
                {"passage": ..., "question": ..., "options": [...]}. Or a list of these.
            overflow: Texts beyond the model's length: `truncate`, `stride` (read them in windows)
                or `error`; as fine-tuned without.
            depth: Layers to run, for this call.
            exit: An exit rule, for this call.

        Returns:
            A prediction of the kind's own class, or a list of them.
        """
        return self.run("predict", inputs, overflow=overflow, depth=depth, exit=exit)

    def embed(
        self, texts: Any, *, pooling: str | None = None, max_length: int | None = None,
        normalize: bool | None = None, overflow: str | None = None, depth: int | None = None,
    ) -> NDArray[np.float32]:  # fmt: skip
        """Texts as vectors: (H,) for one, (texts, H) for a list.

        Args:
            texts: A text, or a list of them.
            pooling: `mean` of a text's tokens, or `first`, its [CLS]; as the model says, else mean.
            max_length: Tokens of a text, at most; as the model says, else as many as it can read.
            normalize: Make every vector's length 1; as the model says, else not.
            overflow: `error` refuses texts that would be cut off.
            depth: Layers to run, for this call.
        """
        return self.run(
            "embed", texts, pooling=pooling, max_length=max_length, normalize=normalize,
            overflow=overflow, depth=depth,
        )  # fmt: skip

    def fill_mask(self, texts: Any, top: int = 5, *, depth: int | None = None) -> Any:
        """What may stand behind each [MASK] of a text; for models with a masked-language head.

        Args:
            texts: A text with one or more [MASK] in it, or a list of them.
            top: Candidates for each mask.
            depth: Layers to run, for this call.

        Returns:
            A MaskPrediction, or a list of them.
        """
        return self.run("fill_mask", texts, top=top, depth=depth)

    def order(self, first: str, second: str, *, depth: int | None = None) -> Any:
        """Whether the first of two texts comes first; for models with a sentence-pair head.

        Args:
            first: A sentence or two.
            second: What may follow it.
            depth: Layers to run, for this call.

        Returns:
            An OrderPrediction.
        """
        return self.run("order", (first, second), depth=depth)

    def run(self, ask: str, inputs: Any, **options: Any) -> Any:
        """One of predict, embed, fill_mask and order by its name; `order` takes pairs."""
        job, many = self.job(ask, inputs, **options), is_many(inputs)
        answers = self.answer(job)
        return answers if many else answers[0]

    def predict_examples(
        self, examples: Sequence[Any], features: Features, *, tell_depth: bool = True,
        on_progress: OnProgress = no_progress,
    ) -> list[Prediction]:  # fmt: skip
        """A prediction for each example of the task, as files have them."""
        task = self.needs_task()
        job = predict_job(task, examples, features, self.depth, self.rule, tell_depth)
        return self.answer(job, on_progress)

    @property
    def workers(self) -> int:
        """That go through the encoder side by side, on the cores that this thread may use."""
        return min(torch.get_num_threads(), self.most_workers)

    def answer(self, job: Job, on_progress: OnProgress = no_progress) -> Any:
        """The answers to a job, computed here and now."""
        with self.computing:
            if job.rule is None:
                answers = run_job(self.model, job, on_progress, self.workers)
            else:
                answers = run_stepwise(self.model, job, SLICE_TOKENS, self.workers)
            if len(job.batch.ids) > LARGE:
                release_freed_memory()
            return answers

    def submit(
        self, inputs: Any, *, ask: str = "predict", deadline: float | None = None, **options: Any
    ) -> Future[Any]:
        """Ask without waiting; requests of many callers go through the encoder together.

        Args:
            inputs: As the method takes them; of `order`, a pair.
            ask: `predict`, `embed`, `fill_mask` or `order`.
            deadline: Seconds after which the answer is no longer wanted; a DeadlineError then.
            options: Those of the method.

        Returns:
            A future of what the method returns. It can be cancelled until it is answered.
        """
        job = self.job(ask, inputs, **options)
        return self.scheduler.submit(job, many=is_many(inputs), deadline=deadline)

    # ------------------------------------------------------------------------------ making jobs

    def job(self, ask: str, inputs: Any, **options: Any) -> Job:
        """What is to be computed for some inputs; the scheduler takes it, or `answer`."""
        asks = {
            "predict": self._predict_job, "embed": self._embed_job,
            "fill_mask": self._mask_job, "order": self._order_job,
        }  # fmt: skip
        if ask not in asks:
            raise SettingsError(f"ask {ask!r}: {did_you_mean(ask, asks)}")
        listed = inputs if is_many(inputs) else [inputs]
        if not listed:
            raise InputError("there is no input in the list")
        wanted = options.pop("depth", None)
        depth = self.depth if wanted is None else wanted
        self.model.encoder.check_depth(depth)
        with self.tokenizing:
            return asks[ask](listed, depth, **options)

    def _predict_job(
        self, inputs: list[Any], depth: int, overflow: str | None = None,
        exit: str | ExitRule | None = None,
    ) -> Job:  # fmt: skip
        task = self.needs_task(overflow)
        examples = task.examples_of(inputs)
        rule = self.rule if exit is None else self._rule(exit)
        features = task.features(examples, self.tokenizer)
        check_overflow(features, overflow, len(examples), task.settings.max_length)
        return predict_job(task, examples, features, depth, rule)

    def _embed_job(
        self, texts: list[Any], depth: int, overflow: str | None = None, **options: Any
    ) -> Job:
        checked = [text_of(*one) for one in zip(texts, places(texts), strict=True)]
        settings = embed_settings(self.model, self.folder, **options)
        return embed_job(self.model, self.tokenizer, checked, depth, settings, overflow=overflow)

    def _mask_job(self, texts: list[Any], depth: int, top: int = 5) -> Job:
        return mask_job(self.model, self.tokenizer, texts, depth, top=top)

    def _order_job(self, pairs: list[Any], depth: int) -> Job:
        checked = []
        for value, where in zip(pairs, places(pairs), strict=True):
            pair = pair_of(value, where)
            if pair is None:
                raise InputError(f"{where} is not a pair of texts")
            checked.append(pair)
        return order_job(self.model, self.tokenizer, checked, depth)

    def needs_task(self, overflow: str | None = None) -> Task:
        """The task that the model was fine-tuned for, which there must be."""
        if self.task is None:
            have = ", ".join(self.model.heads) or "none"
            raise SettingsError(
                f"{self.folder}: not fine-tuned, so there is nothing to predict (heads: {have}); "
                "it can embed, and fill masks or order texts where it has the head"
            )
        if overflow is None:
            return self.task
        if overflow not in OVERFLOWS:
            raise SettingsError(f"overflow {overflow!r}: choose {', '.join(OVERFLOWS)}")
        settings = self.task.settings
        if "overflow" not in type(settings).model_fields:
            return self.task
        how = "stride" if overflow == "stride" else "truncate"
        if how not in self._tasks:
            changed = settings.model_copy(update={"overflow": how})
            self._tasks[how] = type(self.task)(changed)
        return self._tasks[how]

    def _rule(self, exit: str | ExitRule | None) -> ExitRule | None:
        """The rule of a text such as patience=3; what is a rule already, as it is."""
        if not isinstance(exit, str):
            return exit
        return DepthDial(exit).rule(self.model, self.needs_task(), self.folder)

    # ---------------------------------------------------------------------------------- the end

    def close(self, *, drain: bool = True) -> None:
        """Take no more requests; finish what was submitted, or refuse it with a ClosedError."""
        self.scheduler.close(drain=drain)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

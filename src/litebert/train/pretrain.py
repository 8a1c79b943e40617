"""Pretraining: from a prepared corpus to a model folder.

    result = litebert.pretrain("albert-mini", "corpus", "run", budget="30m")

One budget decides steps, warm-up and decay. The same call continues a run that was stopped or
killed, bit for bit where the budget is steps or tokens. Under `torchrun` every rank makes this
call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.optim import Optimizer

from litebert.base.budget import parse_budget
from litebert.base.config import Tree, parse_sets
from litebert.base.errors import SettingsError
from litebert.base.files import hold
from litebert.base.runtime import keep_freed_memory, resolve_precision
from litebert.corpus.statistics import piece_counts, unigram_level
from litebert.corpus.store import Store
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.objectives.masking import Masker
from litebert.planning.count import TRAINING_PASSES, flops_per_token
from litebert.presets.load import load_preset
from litebert.presets.recipe import Preset
from litebert.train.alarms import Alarms
from litebert.train.build import (
    build_learner,
    check_memory,
    check_segments,
    fit_to_corpus,
    fit_to_models,
    open_start,
)
from litebert.train.checkpoint import Checkpoints, restore
from litebert.train.evaluation import guesses, held_out, measure
from litebert.train.loop import Clock, Loop
from litebert.train.metrics import MetricsFile, Record, new_sums
from litebert.train.optimizer import build_optimizer
from litebert.train.parallel import Group, join_group
from litebert.train.run import CHECKPOINTS, METRICS, describe, make_folder, open_run, save_run
from litebert.train.schedule import peak_rate
from litebert.train.signals import stop_requests
from litebert.train.step import Stepper
from litebert.train.stream import Stream, legs
from litebert.train.tensorboard import TensorBoard
from litebert.train.warm import warm_start
from litebert.train.watch import Watcher

SAVING = 100e6  # bytes a second that a disk is trusted with


@dataclass(frozen=True)
class Result:
    """Where a run stands."""

    folder: Path
    finished: bool
    step: int
    tokens: int
    seconds: float


def pretrain(
    preset: str | Preset,
    corpus: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    budget: str | None = None,
    start: str | Path | None = None,
    sets: Iterable[str] = (),
    watcher: Watcher | None = None,
    began: float | None = None,
) -> Result:
    """Train a preset on a corpus, from the model in `start` if given; leaves a run folder.

    A budget of time is counted from now, or from `began` (of `time.monotonic`).
    """
    clock, sets = Clock() if began is None else Clock(began=began), list(sets)
    settings = load_preset(preset, sets) if isinstance(preset, str) else preset
    if budget is not None:
        parse_budget(budget)
        settings = Preset.build({**settings.model_dump(), "budget": budget}, "preset")
    folders = [corpus] if isinstance(corpus, str | Path) else list(corpus)
    keep_freed_memory()
    with ExitStack() as held:
        group = held.enter_context(join_group())
        stopping = held.enter_context(stop_requests())
        watcher = Alarms(watcher or Watcher())
        if settings.log.tensorboard and group.leads:
            watcher = held.enter_context(TensorBoard(watcher))
        changes = parse_sets(sets)
        run = _Run(settings, changes, Store(folders), Path(out), group, clock, watcher)
        if group.leads:
            make_folder(run.out)
            held.enter_context(hold(run.out, "litebert pretrain"))
        return run.go(Path(start) if start else None, stopping)


class _Run:
    """One call of `pretrain`."""

    def __init__(
        self, preset: Preset, changes: Tree, store: Store, out: Path, group: Group, clock: Clock,
        watcher: Watcher,
    ) -> None:  # fmt: skip
        self.preset, self.changes, self.store, self.out = preset, changes, store, out
        self.group, self.clock = group, clock
        self.watcher = watcher if group.leads else Watcher()
        self.checkpoints = Checkpoints(out / CHECKPOINTS, preset.checkpoint.keep)
        self.unseen_said = False
        store.require_whole()

    def go(self, start: Path | None, stopping: Callable[[], bool]) -> Result:
        """Build, resume, train, save."""
        models = self._fit(start)
        run = self._open(start)
        if run["finished"]:
            return self._result(run["step"], run["tokens"], run["seconds"], True)
        check_memory(self.preset, self.group.device)
        counts = piece_counts(self.store)
        if not counts.sum():
            raise SettingsError(f"{self.store.folders[0]}: holds no text to train on")
        masker = Masker(self.preset.masking, self.store.tokenizer, counts)
        run["unigram"] = unigram_level(masker.hidden(counts))
        learner = build_learner(self.preset, self.group.device, models, self.watcher.say)
        optimizer = build_optimizer(learner, self.preset.optimizer)
        state = self._resume(learner, optimizer)
        if state is None and start is None and self.preset.start == "warm":
            warm_start(learner, self.store, counts, masker.hidden(counts))
        self.group.align(learner)
        with self._stream(masker) as stream:
            loop = self._loop(learner, optimizer, stream, masker, stopping, state)
            loop.start_clock()
            if self.group.leads:
                save_run(self.out, run)
            self._begin(learner, run["unigram"], loop)
            finished = loop.run()
        if finished and self.group.leads:
            self._finish(learner, loop, run)
        return self._result(loop.step, loop.tokens, self.clock.spent(), finished)

    def _resume(self, learner: Learner, optimizer: Optimizer) -> dict[str, Any] | None:
        """Go back to the last good checkpoint, if there is one."""
        found = self.group.tell(self._last_checkpoint())
        if found is None:
            return None
        state = restore(Path(found), learner, optimizer)
        self._freeze(state)
        return state

    def _stream(self, masker: Masker) -> Stream:
        workers = self.preset.data.workers
        if workers is None:
            workers = int(self.group.device.type == "cuda")
        group = self.group
        return Stream(self.store, legs(self.preset), masker, group.rank, group.ranks, workers)

    def _loop(
        self, learner: Learner, optimizer: Optimizer, stream: Stream, masker: Masker,
        stopping: Callable[[], bool], state: dict[str, Any] | None,
    ) -> Loop:  # fmt: skip
        """The loop, at its beginning or where `state` was saved."""
        preset, group = self.preset, self.group
        stepper = Stepper(
            learner, optimizer, group, clip=preset.optimizer.clip, at_once=preset.data.at_once,
            seed=preset.seed, precision=resolve_precision(preset.precision, group.device),
        )  # fmt: skip
        loop = Loop(
            stepper=stepper, stream=stream, budget=parse_budget(preset.budget),
            schedule=preset.schedule, peak=peak_rate(preset.optimizer, preset.data.batch),
            sums=new_sums(learner.objectives), metrics=self._metrics(state),
            watcher=self.watcher, evaluation=preset.evaluation, checkpoint=preset.checkpoint,
            log_every=preset.log.every,
            evaluate=lambda: self._evaluate(learner, masker, stream),
            save=lambda now: self.checkpoints.save(
                now["step"], learner, optimizer, {**now, **self._machine()}
            ),
            stopping=stopping, closing=self._closing(learner), clock=self.clock,
        )  # fmt: skip
        if state is not None:
            loop.restore(state)
        return loop

    def _fit(self, start: Path | None) -> tuple[Model | None, Model | None]:
        """Make the preset fit the corpus, or the models to start from, which are returned."""
        if start is None:
            self.preset = fit_to_corpus(self.preset, self.store)
            return None, None
        models = open_start(start, self.preset, self.store, self.watcher.say)
        self.preset = fit_to_models(self.preset, self.changes, *models)
        check_segments(self.preset, self.store)
        return models

    def _open(self, start: Path | None) -> dict[str, Any]:
        run = None
        if self.group.leads:
            origin = None if start is None else str(start)
            run = open_run(self.out, describe(self.preset, self.store.identity, origin))
        return self.group.tell(run)

    def _last_checkpoint(self) -> str | None:
        if not self.group.leads:
            return None
        self.checkpoints.sweep()
        found = self.checkpoints.last_good(self.watcher.say)
        return None if found is None else str(found)

    def _machine(self) -> dict[str, Any]:
        """What a bit-exact continuation depends on beside the settings."""
        return {
            "ranks": self.group.ranks, "threads": torch.get_num_threads(),
            "device": self.group.device.type, "torch": torch.__version__,
        }  # fmt: skip

    def _freeze(self, state: dict[str, Any]) -> None:
        """Go on with the threads of before; say what else makes the last bits differ."""
        here = self._machine()
        if state["ranks"] == here["ranks"]:
            torch.set_num_threads(state["threads"])
            here = self._machine()
        changed = [f"{key} {state[key]} -> {here[key]}" for key in here if state[key] != here[key]]
        if changed:
            self.watcher.say(f"continues, but not bit for bit: {', '.join(changed)}")
        self.watcher.say(f"continues from step {state['step']:,}")

    def _metrics(self, state: dict[str, Any] | None) -> MetricsFile:
        path = self.out / METRICS if self.group.leads else None
        return MetricsFile(path, 0 if state is None else state["metrics"])

    def _evaluate(self, learner: Learner, masker: Masker, stream: Stream) -> Record:
        """Held-out losses, and one sequence with guesses."""
        if not self.store.info.held_out:
            return {}
        preset, group = self.preset, self.group
        loading, depth = stream.plan[-1].loading, stream.plan[stream.stage].depth
        wanted = preset.evaluation.sequences
        batches = list(held_out(self.store, loading, masker, wanted, group))
        if not batches:
            self._say_unseen("no document fell into the held-out share")
        sums = measure(learner, iter(batches), group, preset.precision, preset.data.at_once, depth)
        record = sums.means()
        guesser = learner.generator or learner.model
        if batches and len(batches[0]) and "masked_language" in guesser.heads:
            record["sample"] = guesses(guesser, batches[0], self.store.tokenizer, group.device)
            self.watcher.sample(record["sample"])
        return record

    def _closing(self, learner: Learner) -> float:
        """Seconds that the final files may take: weights once, weights and moments once more."""
        size = sum(parameter.numel() * 4 for parameter in learner.parameters())
        return 0.2 + 5 * size / SAVING

    def _begin(self, learner: Learner, unigram: float, loop: Loop) -> None:
        self.watcher.begin(
            {
                "title": self.preset.title,
                "parameters": sum(p.numel() for p in learner.parameters()),
                "budget": self.preset.budget,
                "unigram": unigram,
                "ranks": self.group.ranks,
                "step": loop.step,
                "held_out": self.store.info.held_out > 0,
                "schedule": self.preset.schedule,
                "out": str(self.out),
            }
        )
        if not self.store.info.held_out:
            self._say_unseen("prepared without held-out text")

    def _say_unseen(self, why: str) -> None:
        if not self.unseen_said:
            self.unseen_said = True
            where = self.store.folders[0]
            self.watcher.say(f"{where}: {why}, so nothing is measured on unseen documents")

    def _finish(self, learner: Learner, loop: Loop, run: dict[str, Any]) -> None:
        """The model folders, and what the run took."""
        for name, model in learner.folders().items():
            model.save(self.out / name, overwrite=True, tokenizer=self.store.tokenizer)
        length = self.preset.data.length
        flops = TRAINING_PASSES * sum(flops_per_token(self.preset, length).values()) * loop.tokens
        took = {
            "finished": True, "step": loop.step, "tokens": loop.tokens, "flops": flops,
            "seconds": round(self.clock.spent(), 3),
        }  # fmt: skip
        save_run(self.out, {**run, **took})

    def _result(self, step: int, tokens: int, seconds: float, finished: bool) -> Result:
        return Result(self.out, finished, step, tokens, seconds)

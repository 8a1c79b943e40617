"""Pretraining: from a prepared corpus to a model folder.

    result = litebert.pretrain("albert-mini", "corpus", "run", budget="30m")

One budget decides steps, warmup and decay. The same call resumes a run that was stopped or killed,
bit for bit where the budget is steps or tokens. Under `torchrun` every rank makes this call.
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
from litebert.base.errors import SettingsError
from litebert.base.files import lock_folder, sweep
from litebert.base.processes import source_checksum
from litebert.base.ragged import IntArray
from litebert.base.remote.folders import local_folder
from litebert.base.remote.mirror import Mirror
from litebert.base.runtime import keep_freed_memory, release_freed_memory
from litebert.base.settings import Tree, load_record, parse_overrides
from litebert.configs.load import load_preset
from litebert.configs.schema import DistributedSettings, Preset
from litebert.corpus.statistics import token_counts, unigram_loss
from litebert.corpus.store import Store
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.objectives.masking import Masker
from litebert.planning.count import TRAINING_PASSES, flops_per_token
from litebert.train.auto import AUTO, auto_preset
from litebert.train.averaging import averaged_weights
from litebert.train.build import (
    build_learner,
    build_step,
    check_memory,
    check_segments,
    fit_to_corpus,
    fit_to_models,
    open_start,
)
from litebert.train.callbacks import Callback, CallbackList, RunStarted
from litebert.train.checkpoint import Checkpoints, restore_everywhere
from litebert.train.distributed import DistributedGroup, join_group
from litebert.train.health import HealthChecks, WarningsFile, few_pairs
from litebert.train.held_out import evaluate_batches, held_out_batches, show_predictions
from litebert.train.initialization.corpus import initialize_from_corpus
from litebert.train.initialization.tables import initialize_from_table
from litebert.train.loop import Clock, TrainingLoop
from litebert.train.metrics import METRICS, Evaluation, MetricsFile, Sums
from litebert.train.model_card import pretrained_facts
from litebert.train.optimizer import build_optimizer
from litebert.train.run_folder import (
    CHECKPOINTS,
    RUN,
    describe,
    is_finished,
    make_folder,
    open_run,
    save_run,
)
from litebert.train.schedule import peak_learning_rate
from litebert.train.signals import stop_requests
from litebert.train.stages import StagedBatches, resolve_stages
from litebert.train.teaching import open_teaching
from litebert.train.tensorboard import TensorBoardLogger

DISK_SPEED = 100e6  # bytes a second that a disk is trusted with


@dataclass(frozen=True)
class PretrainingResult:
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
    start_from: str | Path | None = None,
    overrides: Iterable[str] = (),
    callbacks: Iterable[Callback] = (),
    started: float | None = None,
) -> PretrainingResult:
    """Pretrain an encoder on a prepared corpus.

    One budget decides steps, warmup and decay. Ctrl-C saves; the same command resumes where it was,
    also after a crash. Without a preset the budget chooses one: it says which, and why. On several
    devices: torchrun --nproc-per-node 2 -m litebert pretrain …

    Example: litebert pretrain albert-mini --corpus corpus --out run --budget 30m

    Args:
        preset: A shipped preset (litebert presets) or a TOML file of your own; "auto" chooses size,
            length, batch and learning rate for the budget and this machine's speed.
        corpus: A store made by `litebert prepare`, or all its parts; also URLs of these.
        out: The run's folder, or a URL (s3://…); the same one resumes a run.
        budget: How long: 30m (s, h, d), 200Mtok, 125000steps; else the preset's.
        start_from: Warm start: go on from a model folder, ours or Hugging Face's.
        overrides: Change settings, e.g. optimizer.learning_rate=5e-4.
        callbacks: Told of the run's events (train/callbacks.py).
        started: When a budget of time began, by `time.monotonic`; now by default.
    """
    clock, overrides = Clock() if started is None else Clock(started=started), list(overrides)
    if budget is not None:
        parse_budget(budget)
    settings = None
    if preset != AUTO:
        settings = load_preset(preset, overrides) if isinstance(preset, str) else preset
        if budget is not None:
            settings = Preset.build({**settings.model_dump(), "budget": budget}, "preset")
    folders = [corpus] if isinstance(corpus, str | Path) else list(corpus)
    keep_freed_memory()
    with ExitStack() as held:
        distributed = DistributedSettings() if settings is None else settings.distributed
        group = held.enter_context(join_group(distributed.timeout))
        should_stop = held.enter_context(stop_requests())
        heard = CallbackList(callbacks if group.is_main else ())
        mirror = Mirror(out)
        if group.is_main:
            heard.callbacks += [HealthChecks(heard.on_message), WarningsFile(mirror.folder)]
        changes, store = parse_overrides(overrides), Store(folders)
        held.callback(mirror.close)
        if group.is_main:
            mirror.pull()
        if settings is None:
            chosen = None
            if group.is_main:
                chosen = auto_preset(budget, store, mirror.folder, changes, heard.on_message)
            settings = group.broadcast_object(chosen)
        if group.is_main and settings.log.tensorboard:
            heard.callbacks.append(held.enter_context(TensorBoardLogger()))
        run = _Run(settings, changes, store, mirror, group, clock, heard)
        if group.is_main:
            make_folder(run.out)
            if not is_finished(run.out):  # which may lie on a disk that cannot be written
                held.enter_context(lock_folder(run.out, "litebert pretrain"))
        start = local_folder(start_from, leave_out=CHECKPOINTS) if start_from else None
        result = run.go(start, should_stop)
        if group.is_main:
            mirror.push()
        return result


class _Run:
    """One call of `pretrain`."""

    def __init__(
        self, preset: Preset, changes: Tree, store: Store, mirror: Mirror, group: DistributedGroup,
        clock: Clock, callbacks: Callback,
    ) -> None:  # fmt: skip
        self.preset, self.changes, self.store = preset, changes, store
        self.mirror, self.out = mirror, mirror.folder
        self.group, self.clock, self.callbacks = group, clock, callbacks
        self.checkpoints = Checkpoints(self.out / CHECKPOINTS, preset.checkpoint.keep)
        self.unmeasured_said = False
        self.held_out: Sums | None = None  # of the last evaluation
        store.require_all_parts()

    def go(self, start_from: Path | None, should_stop: Callable[[], bool]) -> PretrainingResult:
        """Build, resume, train, save."""
        models = self._fit(start_from)
        self.group.require_equal(
            {"settings": self.preset.model_dump(mode="json"), "corpus": self.store.checksum,
             "torch": torch.__version__, "litebert": source_checksum()}
        )  # fmt: skip
        self.teaching = open_teaching(self.preset, self.store, self.group, self.out)
        run = self._open(start_from)
        if run["finished"]:
            where = str(self.out / RUN)
            return load_record(PretrainingResult, {**run, "folder": self.out}, where)
        check_memory(self.preset, self.group.device)
        counts = token_counts(self.store)
        if not counts.sum():
            raise SettingsError(f"{self.store.folders[0]}: holds no text to train on")
        masker = Masker(self.preset.masking, self.store.tokenizer, counts)
        masked_counts = masker.masked_counts(counts)
        run["unigram_loss"] = unigram_loss(masked_counts)
        learner = build_learner(
            self.preset, self.group.device, models, self.callbacks.on_message,
            self.teaching.objectives,
        )  # fmt: skip
        optimizer = build_optimizer(learner, self.preset.optimizer)
        state = self._resume(learner, optimizer)
        if state is None and start_from is None:
            self._initialize(learner, counts, masked_counts)
        if state is None and self.group.is_main:
            self.teaching.prepare(learner)
        self.group.broadcast_parameters(learner)
        release_freed_memory()  # of counting and of the first values
        with self._batches(masker) as batches:
            loop = self._loop(learner, optimizer, batches, should_stop, state)
            loop.start_clock()
            if self.group.is_main:
                save_run(self.out, run)
            self._announce(learner, run["unigram_loss"], loop)
            finished = loop.run()
        if finished and self.group.is_main:
            with averaged_weights(optimizer):
                self._finish(learner, loop, run)
        self.group.broadcast_object(None)  # nobody leaves before the model is there
        seconds = self.clock.seconds()
        return PretrainingResult(self.out, finished, loop.step, loop.tokens, seconds)

    def _initialize(self, learner: Learner, counts: IntArray, masked_counts: IntArray) -> None:
        """First values: as drawn, counted from the corpus, or taken from the teacher's table."""
        table = self.teaching.token_table
        how = self.preset.initialization
        if how != "truncated_normal":
            order = how == "corpus"
            initialize_from_corpus(learner, self.store, counts, masked_counts, table, order=order)
        elif table is not None:
            initialize_from_table(learner.model, table)

    def _fit(self, start_from: Path | None) -> tuple[Model | None, Model | None]:
        """Make the preset fit the corpus, or the models to start from, which are returned."""
        if start_from is None:
            self.preset = fit_to_corpus(self.preset, self.store)
            return None, None
        models = open_start(start_from, self.preset, self.store, self.callbacks.on_message)
        self.preset = fit_to_models(self.preset, self.changes, *models)
        check_segments(self.preset, self.store)
        return models

    def _open(self, start_from: Path | None) -> dict[str, Any]:
        run = None
        if self.group.is_main:
            origin = None if start_from is None else str(start_from)
            content = (self.preset, self.store.checksum, origin, self.teaching.checksum)
            run = open_run(self.out, describe(*content))
        return self.group.broadcast_object(run)

    def _resume(self, learner: Learner, optimizer: Optimizer) -> dict[str, Any] | None:
        """Go back to the last good checkpoint, if there is one; the main rank alone reads it."""
        found = self._last_checkpoint() if self.group.is_main else None
        state = restore_everywhere(self.group, found, learner, optimizer)
        self.teaching.restore(state, self.callbacks.on_message)
        if state is not None:
            self._restore_threads(state)
        return state

    def _last_checkpoint(self) -> Path | None:
        for folder in (self.out, self.checkpoints.folder):
            sweep(folder)
        return self.checkpoints.last_good(self.callbacks.on_message)

    def _restore_threads(self, state: dict[str, Any]) -> None:
        """Go on with the threads of before; say what else makes the last bits differ."""
        here = self._machine()
        was = {key: state.get(key) for key in here}
        if was["world_size"] == here["world_size"] and was["threads"] is not None:
            torch.set_num_threads(was["threads"])
            here = self._machine()
        changed = [f"{key} {was[key]} -> {here[key]}" for key in here if was[key] != here[key]]
        if changed:
            self.callbacks.on_message(f"resumes, but not bit for bit: {', '.join(changed)}")
        self.callbacks.on_message(f"resumes from step {state['step']:,}")

    def _machine(self) -> dict[str, Any]:
        """What a bit-exact resume depends on beside the settings."""
        return {
            "world_size": self.group.world_size, "threads": torch.get_num_threads(),
            "device": self.group.device.type, "torch": torch.__version__,
        }  # fmt: skip

    def _batches(self, masker: Masker) -> StagedBatches:
        num_workers = self.preset.data.num_workers
        if num_workers is None:
            num_workers = int(self.group.device.type == "cuda")
        stages, group = resolve_stages(self.preset), self.group
        mask = masker if self.preset.heads else None  # a teacher's objectives ask for no tokens
        return StagedBatches(self.store, stages, mask, group.rank, group.world_size, num_workers)

    def _loop(
        self, learner: Learner, optimizer: Optimizer, batches: StagedBatches,
        should_stop: Callable[[], bool], state: dict[str, Any] | None,
    ) -> TrainingLoop:  # fmt: skip
        """The loop, at its beginning or where `state` was saved."""
        preset = self.preset
        metrics = MetricsFile(
            self.out / METRICS if self.group.is_main else None, state["metrics"] if state else 0
        )
        loop = TrainingLoop(
            training_step=build_step(preset, learner, optimizer, self.group),
            batches=batches,
            budget=parse_budget(preset.budget),
            schedule=preset.schedule,
            peak_learning_rate=peak_learning_rate(preset.optimizer, preset.data.batch_size),
            metrics=metrics,
            callbacks=self.callbacks,
            evaluation=preset.evaluation,
            checkpoint=preset.checkpoint,
            log_every=preset.log.every,
            evaluate=lambda: self._evaluate(learner, optimizer, batches),
            save=lambda now: self._save(learner, optimizer, now),
            should_stop=should_stop,
            reserved=_saving_seconds(learner),
            clock=self.clock,
        )
        if state is not None:
            loop.restore(state)
        return loop

    def _save(self, learner: Learner, optimizer: Optimizer, now: dict[str, Any]) -> None:
        """A checkpoint; that of a remote run is on its way when this returns."""
        self.checkpoints.save(
            now["step"], learner, optimizer, {**now, **self._machine(), **self.teaching.state()}
        )
        self.mirror.push_later(self.callbacks.on_message)

    def _evaluate(
        self, learner: Learner, optimizer: Optimizer, batches: StagedBatches
    ) -> Evaluation:
        """Held-out losses, and one sequence with predictions, of the weights that would be kept."""
        with averaged_weights(optimizer):
            return self._evaluate_now(learner, batches)

    def _evaluate_now(self, learner: Learner, batches: StagedBatches) -> Evaluation:
        if not self.store.info.held_out:
            return Evaluation()
        preset, group = self.preset, self.group
        loading, wanted = batches.stages[-1].loading, preset.evaluation.sequences
        found = list(held_out_batches(self.store, loading, batches.masker, wanted, group))
        if not found:
            self._say_unmeasured("no document fell into the held-out fraction")
        micro_batch_tokens, depth = preset.data.micro_batch_tokens, batches.stage.depth
        sums = evaluate_batches(learner, found, group, preset.precision, micro_batch_tokens, depth)
        self.held_out = sums
        sample, predictor = "", learner.generator or learner.model
        if found and len(found[0]) and "masked_lm" in predictor.heads:
            sample = show_predictions(predictor, found[0], self.store.tokenizer, group.device)
        return Evaluation(sample=sample, **dict(sums.means()))

    def _announce(self, learner: Learner, unigram_loss: float, loop: TrainingLoop) -> None:
        self.callbacks.on_start(
            RunStarted(
                title=self.preset.title,
                folder=self.out,
                parameters=sum(parameter.numel() for parameter in learner.parameters()),
                budget=self.preset.budget,
                warmup=self.preset.schedule.warmup,
                step=loop.step,
                world_size=self.group.world_size,
                unigram_loss=unigram_loss,
                text_tokens=self.store.training_tokens,
            )
        )
        if warning := few_pairs(self.preset.objectives, self.store):
            self.callbacks.on_message(warning)
        if not self.store.info.held_out:
            self._say_unmeasured("prepared without held-out text")

    def _say_unmeasured(self, why: str) -> None:
        if not self.unmeasured_said:
            self.unmeasured_said = True
            where = self.store.folders[0]
            self.callbacks.on_message(f"{where}: {why}, so nothing is measured on unseen documents")

    def _finish(self, learner: Learner, loop: TrainingLoop, run: dict[str, Any]) -> None:
        """The model folders, and what the run took."""
        longest = max(stage.loading.max_length for stage in resolve_stages(self.preset))
        facts = pretrained_facts(
            self.preset, self.store, self.held_out, steps=loop.step, tokens=loop.tokens,
            seconds=self.clock.seconds(),
        )  # fmt: skip
        for name, model in learner.folders().items():
            model.sentence_encoder = self.teaching.sentence_encoder(longest)
            model.save(self.out / name, overwrite=True, tokenizer=self.store.tokenizer, facts=facts)
        length = self.preset.data.max_length
        flops = TRAINING_PASSES * sum(flops_per_token(self.preset, length).values())
        flops = (flops + self.teaching.flops_per_token(length)) * loop.tokens
        took = {
            "finished": True, "step": loop.step, "tokens": loop.tokens, "flops": flops,
            "seconds": round(self.clock.seconds(), 3),
        }  # fmt: skip
        save_run(self.out, {**run, **took})
        self.teaching.finish()


def _saving_seconds(learner: Learner) -> float:
    """What the final files may take: weights once, weights and moments once more."""
    size = sum(parameter.numel() * 4 for parameter in learner.parameters())
    return 0.2 + 5 * size / DISK_SPEED

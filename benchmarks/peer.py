"""Hugging Face's side of the training benchmarks: their model and Trainer on segments of ours.

A segment becomes an example as a user of `transformers` would have it: ids, types, the label of
sentence order, and either which tokens are special (their collator masks) or what is masked already
(our masks). Nothing of litebert is imported here at the top, so that a process of theirs holds none
of it in memory unless it uses it.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import Dataset, IterableDataset
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.utils.logging import disable_progress_bar

if TYPE_CHECKING:
    from litebert.base.batches import Batch
    from litebert.configs.schema import Preset
    from litebert.corpus.loader import Loader
    from litebert.corpus.store import Store
    from litebert.train.metrics import Means

Columns = dict[str, NDArray[Any]]
Example = dict[str, Any]
Evaluated = tuple[float, int, int, "Means"]  # seconds, step, tokens, held-out figures
IGNORED = -100  # a label that asks nothing
SEED = 0


# ------------------------------------------------------------------------------- the data


def columns(batch: Batch, masked: bool = False) -> Columns:
    """A packed batch as arrays named for `transformers`."""
    found: Columns = {
        "lengths": batch.lengths,
        "input_ids": batch.ids,
        "token_type_ids": batch.token_types,
        "sentence_order_label": np.where(batch.labels < 0, IGNORED, batch.labels.astype(np.int64)),
    }
    if not masked:
        return {**found, "special_tokens_mask": (~batch.is_text).astype(np.int8)}
    labels = np.full(len(batch.ids), IGNORED)
    labels[batch.positions] = batch.targets
    return {**found, "labels": labels}


class Segments(Dataset[Example]):
    """Examples from arrays."""

    def __init__(self, arrays: Columns) -> None:
        self.tokens = dict(arrays)
        self.order = self.tokens.pop("sentence_order_label")
        self.edges = np.append(0, np.cumsum(self.tokens.pop("lengths")))

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, number: int) -> Example:
        place = slice(self.edges[number], self.edges[number + 1])
        example: Example = {name: column[place].tolist() for name, column in self.tokens.items()}
        return {**example, "sentence_order_label": int(self.order[number])}


class SegmentStream(IterableDataset[Example]):
    """Examples from a loader, made when they are asked for."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Example]:
        for batch in self.loader:
            segments = Segments(columns(batch, masked=self.loader.mask is not None))
            yield from (segments[number] for number in range(len(segments)))


class TheirMasks:
    """The collator of `transformers`, single tokens 80/10/10, and how many tokens went through."""

    def __init__(self, tokenizer: str | Path) -> None:
        self.collate = DataCollatorForLanguageModeling(AutoTokenizer.from_pretrained(tokenizer))
        self.tokens = 0

    def __call__(self, examples: list[Example]) -> dict[str, torch.Tensor]:
        batch = self.collate(examples)
        self.tokens += int(batch["attention_mask"].sum())
        return batch


class OurMasks:
    """Pads examples that are masked already, and counts as well."""

    def __init__(self, pad: int) -> None:
        self.fillers = {"input_ids": pad, "token_type_ids": 0, "labels": IGNORED}
        self.tokens = 0

    def __call__(self, examples: list[Example]) -> dict[str, torch.Tensor]:
        batch = {
            name: pad_sequence(
                [torch.tensor(example[name]) for example in examples],
                batch_first=True,
                padding_value=filler,
            )
            for name, filler in self.fillers.items()
        }
        lengths = torch.tensor([len(example["input_ids"]) for example in examples])
        self.tokens += int(lengths.sum())
        batch["attention_mask"] = (
            torch.arange(batch["input_ids"].shape[1]) < lengths[:, None]
        ).long()
        order = [example["sentence_order_label"] for example in examples]
        return {**batch, "sentence_order_label": torch.tensor(order)}


# ------------------------------------------------------------------------------- the model


def write_config(preset: Preset, folder: Path) -> None:
    """The config.json that `transformers` would have for a preset's model."""
    from litebert.model.model import Model

    with tempfile.TemporaryDirectory() as scratch:
        Model.create(preset.model, preset.heads).save(Path(scratch) / "model")
        config = json.loads((Path(scratch) / "model" / "config.json").read_text(encoding="utf-8"))
    config.pop("litebert", None)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def new_model(folder: Path) -> AlbertForPreTraining:
    """A fresh model with Hugging Face's own initial values."""
    disable_progress_bar()
    set_seed(SEED)
    return AlbertForPreTraining(AlbertConfig.from_pretrained(folder))


def training_arguments(
    folder: Path, precision: str, rate: float, batch: int, **others: Any
) -> TrainingArguments:
    """What both benchmarks ask of the Trainer."""
    cpu = not torch.cuda.is_available()
    return TrainingArguments(
        output_dir=str(folder),
        use_cpu=cpu,
        dataloader_pin_memory=not cpu,
        bf16=precision == "bf16",
        per_device_train_batch_size=batch,
        learning_rate=rate,
        weight_decay=0.01,
        max_grad_norm=1.0,
        optim="adamw_torch_fused",
        remove_unused_columns=False,  # or the collator never sees which tokens are special
        report_to="none",
        disable_tqdm=True,
        seed=SEED,
        **{"logging_steps": 10, **others},
    )


# ------------------------------------------------------------------------------- the evaluation


class Examiner:
    """Held-out figures of a Hugging Face model, as our own runs have them.

    The weights are copied into a model of ours, which then sees the same documents, input
    format and masks as every run of the preset does.
    """

    def __init__(self, preset: Preset, store: Store) -> None:
        from litebert.base.runtime import default_device
        from litebert.corpus.statistics import token_counts
        from litebert.objectives.masking import Masker
        from litebert.train.distributed import DistributedGroup
        from litebert.train.held_out import held_out_batches
        from litebert.train.stages import resolve_stages

        self.preset, self.group = preset, DistributedGroup(device=default_device())
        self.masker = Masker(preset.masking, store.tokenizer, token_counts(store))
        loading, wanted = resolve_stages(preset)[-1].loading, preset.evaluation.sequences
        self.batches = list(held_out_batches(store, loading, self.masker, wanted, self.group))

    def __call__(self, model: AlbertForPreTraining) -> Means:
        """Losses and accuracies by objective."""
        import litebert
        from litebert.objectives.learner import Learner
        from litebert.objectives.registry import build_objectives
        from litebert.train.held_out import evaluate_batches

        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            copied = litebert.load(folder).to(self.group.device)
        learner = Learner(copied, build_objectives(self.preset.objectives))
        tokens, precision = self.preset.data.micro_batch_tokens, self.preset.precision
        return evaluate_batches(learner, self.batches, self.group, precision, tokens).means()


# ------------------------------------------------------------------------------- runs by the clock


class Clock:
    """Seconds of training, without those of evaluating; the learning rate follows it."""

    def __init__(self, limit: float, warmup: float) -> None:
        self.limit, self.warmup = limit, warmup
        self.began, self.evaluating = time.monotonic(), 0.0

    def spent(self) -> float:
        return time.monotonic() - self.began - self.evaluating

    def rate(self, _: int = 0) -> float:
        """Linear warmup and decay over the time, as a fraction of the highest rate."""
        progress = min(self.spent() / self.limit, 1.0)
        if progress < self.warmup:
            return progress / self.warmup
        return (1 - progress) / (1 - self.warmup)


class TimedTrainer(Trainer):
    """A Trainer whose schedule follows a clock instead of a number of steps."""

    clock: Clock

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """What the Trainer asks for when training begins."""
        stepped: Any = self.optimizer if optimizer is None else optimizer
        self.lr_scheduler = LambdaLR(stepped, self.clock.rate)
        return self.lr_scheduler


class Evaluations(TrainerCallback):
    """Evaluations now and then, and the end when the time is over."""

    def __init__(self, clock: Clock, count: int, evaluate: Callable[[int], None]) -> None:
        self.clock, self.count, self.evaluate = clock, count, evaluate
        self.done = 0

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        progress = self.clock.spent() / self.clock.limit
        control.should_training_stop = progress >= 1
        if self.done < int(progress * self.count) < self.count:
            self.done = int(progress * self.count)
            self.evaluate(state.global_step)


@dataclass
class TimedRuns:
    """Runs of the peer for so many seconds, and what they have in common."""

    preset: Preset
    store: Store
    config: Path  # the folder of config.json
    precision: str
    batch: int  # sequences a step
    their_masks: bool
    warmup: float

    def __post_init__(self) -> None:
        self.examine = Examiner(self.preset, self.store)

    def train(
        self, rate: float, seconds: float, evaluations: int, tell: Callable[[Evaluated], None]
    ) -> None:
        """One run; `tell` hears of every evaluation, the last of them at the end."""
        model, clock = new_model(self.config), Clock(seconds, self.warmup)
        collate = self._collator()

        def evaluate(step: int) -> None:
            spent, began = clock.spent(), time.monotonic()
            tell((spent, step, collate.tokens, self.examine(model)))
            clock.evaluating += time.monotonic() - began

        with tempfile.TemporaryDirectory() as scratch:
            arguments = training_arguments(
                Path(scratch), self.precision, rate, self.batch, max_steps=10**9,
                save_strategy="no", accelerator_config={"dispatch_batches": False},
            )  # fmt: skip
            trainer = TimedTrainer(
                model, arguments, train_dataset=SegmentStream(self._loader()),
                data_collator=collate, callbacks=[Evaluations(clock, evaluations, evaluate)],
            )  # fmt: skip
            trainer.remove_callback(PrinterCallback)
            trainer.clock, clock.began = clock, time.monotonic()
            trainer.train()
            evaluate(trainer.state.global_step)

    def _collator(self) -> TheirMasks | OurMasks:
        if self.their_masks:
            return TheirMasks(self.store.places[0] / "tokenizer")
        return OurMasks(self.store.tokenizer.special.pad)

    def _loader(self) -> Loader:
        """Segments as our run has them, by the sequence."""
        from litebert.corpus.loader import Loader
        from litebert.train.stages import resolve_stages

        changes = {"batch_by": "sequences", "batch_size": self.batch}
        loading = resolve_stages(self.preset)[-1].loading.model_copy(update=changes)
        return Loader(self.store, loading, None if self.their_masks else self.examine.masker)


def sequences_per_step(preset: Preset, store: Store) -> int:
    """As many as have, on average, the tokens of one of our steps."""
    from litebert.corpus.loader import Loader
    from litebert.train.stages import resolve_stages

    loading = resolve_stages(preset)[-1].loading
    ours = Loader(store, loading)
    steps = sum(1 for _ in islice(ours, 200))
    return max(round(ours.statistics.sequences / steps), 1)

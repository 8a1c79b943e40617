"""What a run with a teacher does beside: open it, begin with what it knows, keep what it said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from litebert.base.batches import split_by_tokens
from litebert.configs.schema import Preset
from litebert.corpus.loader import Loader
from litebert.corpus.store import Store
from litebert.model.inputs import Inputs, to_inputs
from litebert.model.sentence_encoder import SentenceEncoderSettings
from litebert.objectives.distillation import Distillation
from litebert.objectives.learner import Learner
from litebert.objectives.registry import TAUGHT, build_taught
from litebert.objectives.sentence_vectors import SentenceVectors
from litebert.train.checkpoint import Say
from litebert.train.distributed import DistributedGroup
from litebert.train.stages import resolve_stages
from litebert.train.teacher import PackedTeacher
from litebert.train.vector_cache import SavedVectors

VECTORS = "teacher.vectors"
SAVED = "teacher_vectors"  # in a checkpoint's state


@dataclass
class Teaching:
    """A run's teacher, and nothing at all where it has none."""

    preset: Preset
    store: Store
    group: DistributedGroup
    teacher: PackedTeacher | None = None
    objectives: list[Distillation] = field(default_factory=list)

    @property
    def checksum(self) -> str | None:
        """What decides the teacher's answers."""
        return None if self.teacher is None else self.teacher.checksum

    @property
    def token_table(self) -> Tensor | None:
        """The teacher's, where the student may begin with it."""
        teacher, settings = self.teacher, self.preset.teacher
        if teacher is None or settings is None or not teacher.same_tokens:
            return None
        rows = teacher.token_table[: self.store.info.vocab_size]  # a model's may have more
        return rows.cpu() if settings.token_table else None

    @torch.no_grad()
    def prepare(self, learner: Learner) -> None:
        """Let the objectives look at the first samples, before the first step of a new run."""
        depth = resolve_stages(self.preset)[0].depth
        learner.eval()
        for objective in learner.taught:
            assert isinstance(objective, Distillation)
            objective.prepare(self._samples(), lambda inputs: inputs.encode(learner.model, depth))
        learner.train()

    def _samples(self) -> Iterator[Inputs]:
        loading = resolve_stages(self.preset)[0].loading
        for batch in Loader(self.store, loading, epochs=1):
            for part in split_by_tokens(batch, self.preset.data.micro_batch_tokens):
                yield to_inputs(part, self.group.device)

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {} if self.teacher is None else {SAVED: self.teacher.cache.save().model_dump()}

    def restore(self, state: dict[str, Any] | None, say: Say) -> None:
        """Go on from a checkpoint, or begin."""
        if self.teacher is None:
            return
        saved = SavedVectors.build((state or {}).get(SAVED, {}), "checkpoint")
        if not self.teacher.cache.restore(saved):
            say("resumes, but not bit for bit: what the teacher said is lost, and is asked again")

    def finish(self) -> None:
        """What was kept is of no more use."""
        if self.teacher is not None and self.teacher.cache.path is not None:
            self.teacher.cache.path.unlink(missing_ok=True)

    def sentence_encoder(self, max_length: int) -> SentenceEncoderSettings:
        """How the student makes vectors: of length 1 where it learned their directions."""
        learned = any(isinstance(one, SentenceVectors) for one in self.objectives)
        return SentenceEncoderSettings(max_length=max_length, normalize=learned)

    def flops_per_token(self, length: int) -> float:
        """What the teacher computes for a token of the student's, if nothing is kept."""
        return 0.0 if self.teacher is None else self.teacher.flops_per_token(length)


def open_teaching(preset: Preset, store: Store, group: DistributedGroup, out: Path) -> Teaching:
    """The teacher that a preset names, and the objectives that learn from it."""
    if preset.teacher is None:
        return Teaching(preset, store, group)
    asked = [TAUGHT[name] for name in preset.objectives if name in TAUGHT]
    alone = group.world_size == 1  # a checkpoint is written by one rank, which knows its own alone
    teacher = PackedTeacher(
        preset.teacher, store.tokenizer, group.device, out / VECTORS if alone else None,
        asks_tokens=any(one.needs_same_tokens for one in asked),
        max_length=max(stage.loading.max_length for stage in resolve_stages(preset)),
        caches=alone,
    )  # fmt: skip
    objectives = build_taught(preset.objectives, preset.model, teacher, preset.teacher)
    for objective in objectives:
        objective.to(group.device)
    return Teaching(preset, store, group, teacher, objectives)

"""A training step on random tokens: the work of pretraining without the data.

Masked language at 15 % of the tokens, plus whatever heads the preset has, AdamW on fp32 weights.
`plan --measure` times it and the benchmarks compare it; text would not change the arithmetic.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from litebert.base.runtime import Precision, autocast
from litebert.model.layout import State
from litebert.model.model import Model, share_embeddings
from litebert.planning.count import MASKED_SHARE
from litebert.presets.recipe import Preset

LEARNING_RATE = 1e-4
DETECTION_WEIGHT = 50.0  # ELECTRA's weight of replaced-token detection


class Workload:
    """One model, one batch, one optimizer; `step()` trains once and returns the loss."""

    def __init__(
        self,
        preset: Preset,
        batch: int,
        length: int,
        precision: Precision = "auto",
        checkpointing: bool = False,
        device: torch.device | None = None,
        seed: int = 0,
    ) -> None:
        self.device = device or torch.device("cpu")
        self.precision: Precision = precision
        self.model = Model.create(preset.model, preset.heads, seed=seed, device=self.device)
        self.generator = self._make_generator(preset, seed)
        for model in self._models():
            model.train()
            model.encoder.checkpointing = checkpointing
        self.ids, self.positions, self.pairs = random_batch(
            preset.model.vocab_size, batch, length, self.device, seed
        )
        self.targets = self.ids.flatten()[self.positions]
        weights = {id(p): p for model in self._models() for p in model.parameters()}
        self.optimizer = torch.optim.AdamW(weights.values(), lr=LEARNING_RATE, fused=True)

    def step(self) -> Tensor:
        """Forward, backward, update."""
        with autocast(self.precision, self.device):
            loss = self.loss()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def loss(self) -> Tensor:
        """The sum of the losses of all heads."""
        model, count = self.model, len(self.targets)
        state = model(self.ids)
        total = torch.zeros((), device=self.device)
        if self.generator is not None:
            total = total + self._masked(self.generator, self.generator(self.ids))
        if "masked_language" in model.heads:
            total = total + self._masked(model, state)
        if "sentence_pair" in model.heads:
            total = total + F.cross_entropy(model.sentence_pair(state).float(), self.pairs)
        if "replaced_token" in model.heads:
            logits = model.replaced_token(state).float()
            fake = torch.zeros_like(logits).index_fill_(0, self.positions, 1.0)
            total = total + DETECTION_WEIGHT * F.binary_cross_entropy_with_logits(logits, fake)
        if "span_boundary" in model.heads:
            place = torch.zeros_like(self.positions)
            logits = model.span_boundary(state, self.positions, self.positions, place)
            total = total + F.cross_entropy(logits.float(), self.targets, reduction="sum") / count
        return total

    def _masked(self, model: Model, state: State) -> Tensor:
        loss, _ = model.masked_language_loss(state, self.positions, self.targets)
        return loss / len(self.targets)

    def _make_generator(self, preset: Preset, seed: int) -> Model | None:
        if preset.generator is None:
            return None
        generator = Model.create(
            preset.generator, ("masked_language",), seed=seed + 1, device=self.device
        )
        share_embeddings(generator, self.model)
        return generator

    def _models(self) -> list[Model]:
        return [self.model] if self.generator is None else [self.model, self.generator]


def random_batch(
    vocab_size: int, batch: int, length: int, device: torch.device, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Token ids (B, T), the flat positions of 15 % of them, and a label a sequence."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(vocab_size, (batch, length), generator=generator)
    masked = max(1, round(MASKED_SHARE * batch * length))
    positions = torch.randperm(batch * length, generator=generator)[:masked].sort().values
    pairs = torch.randint(2, (batch,), generator=generator)
    return ids.to(device), positions.to(device), pairs.to(device)

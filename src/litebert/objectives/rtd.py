"""Replaced-token detection: a generator fills the masks, the model tells which tokens it changed.

ELECTRA, section 2: the generator learns masked language; its guesses are drawn, not taken at their
best; no gradient flows back through them; a guess that happens to be the original counts as
original; detection is asked at every token and weighs 50. The draw is one number a masked token
(named by sample and place) put through the softmax's running sum, which is the distribution of
ELECTRA's Gumbel-argmax, and the same for every way of cutting a batch.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from litebert.base.batch import Batch
from litebert.corpus.chance import For, draw, uniform
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.objectives.base import Term


def replace_tokens(generator: Model, inputs: Inputs) -> tuple[Term, Inputs]:
    """The generator's own loss, and the batch with its guesses in place of what was masked."""
    state = inputs.encode(generator, read=inputs.batch.positions)
    loss, right, guesses = generator.sampled_masked_language_loss(
        state, inputs.positions, inputs.targets, _chances(inputs)
    )
    ids = inputs.ids.index_copy(0, inputs.positions, guesses)
    return Term(loss, right), replace(inputs, ids=ids)


def _chances(inputs: Inputs) -> Tensor:
    """One number in [0, 1) for each masked token."""
    batch = inputs.batch
    keys = batch.keys[batch.sequence[batch.positions]]
    chances = uniform(draw(For.GENERATOR, keys, batch.offset[batch.positions]))
    return torch.from_numpy(chances).float().to(inputs.ids.device)


class ReplacedToken:
    """Binary cross-entropy at every token."""

    name = "replaced_token"
    extra = 0

    def __init__(self, weight: float = 50.0) -> None:
        self.weight = weight

    def count(self, batch: Batch) -> int:
        """All tokens: there is no padding."""
        return len(batch.ids)

    def reads(self, batch: Batch) -> None:
        """Everything."""

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        """Loss, right decisions, and how many of the replaced tokens were found."""
        original = inputs.ids.index_copy(0, inputs.positions, inputs.targets)
        replaced = inputs.ids != original
        logits = model.replaced_token(state).float()
        loss = F.binary_cross_entropy_with_logits(logits, replaced.float(), reduction="sum")
        said = logits > 0
        return Term(loss, (said == replaced).sum(), (said & replaced).sum(), replaced.sum())

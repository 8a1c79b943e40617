"""Replaced-token detection: a generator fills the masks, the model tells which tokens it changed.

ELECTRA, section 2: the generator learns masked LM; its tokens are sampled, not taken at their best;
no gradient flows back through them; a sample that happens to be the original counts as original;
detection is asked at every token and weighs 50. Sampling takes one number a masked token (keyed by
sample and place) through the softmax's running sum, which is the distribution of ELECTRA's
Gumbel-argmax, and the same for every way of splitting a batch.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from litebert.base.batches import Batch
from litebert.base.randomness import Purpose, random_bits, uniform
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.objective import DETECTION, Term


def replace_tokens(generator: Model, inputs: Inputs) -> tuple[Term, Inputs]:
    """The generator's own loss, and the batch with its samples in place of what was masked."""
    state = inputs.encode(generator, read=inputs.batch.positions)
    loss, correct, sampled = generator.head("masked_lm").sampled_loss(
        state, inputs.positions, inputs.targets, _uniform_numbers(inputs)
    )
    ids = inputs.ids.index_copy(0, inputs.positions, sampled)
    return Term(loss, (correct,)), replace(inputs, ids=ids)


def _uniform_numbers(inputs: Inputs) -> Tensor:
    """One number in [0, 1) for each masked token."""
    batch = inputs.batch
    keys = batch.keys[batch.sequence_ids[batch.positions]]
    numbers = uniform(random_bits(Purpose.GENERATOR, keys, batch.position_ids[batch.positions]))
    return torch.from_numpy(numbers).float().to(inputs.ids.device)


class ReplacedToken:
    """Binary cross-entropy at every token."""

    name = head = "replaced_token"
    weight, counters, count_offset = 50.0, DETECTION, 0
    negatives: str | None = None

    def count(self, batch: Batch) -> int:
        return len(batch.ids)  # there is no padding

    def reads(self, batch: Batch) -> None:
        return None

    def term(self, model: Model, state: State, inputs: Inputs) -> Term:
        original = inputs.ids.index_copy(0, inputs.positions, inputs.targets)
        replaced = inputs.ids != original
        logits = model.head(self.head)(state).float()
        loss = F.binary_cross_entropy_with_logits(logits, replaced.float(), reduction="sum")
        detected = logits > 0
        correct, true_positives = (detected == replaced).sum(), (detected & replaced).sum()
        return Term(loss, (correct, true_positives, replaced.sum()))

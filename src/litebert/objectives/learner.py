"""A learner: the model, ELECTRA's generator beside it, and what they learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from torch import nn

from litebert.base.batches import Batch
from litebert.base.ragged import IntArray
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model, share_embeddings
from litebert.model.objective import Objective, Term
from litebert.objectives.distillation import Distillation
from litebert.objectives.masked_lm import MaskedLM
from litebert.objectives.replaced_token import replace_tokens


class Learner(nn.Module):
    """One model and its objectives; with a generator, on text that it has changed."""

    def __init__(
        self, model: Model, objectives: Sequence[Objective], generator: Model | None = None
    ) -> None:
        super().__init__()
        self.model = model
        self.generator = generator
        if generator is not None:
            share_embeddings(generator, model)
        self.own = tuple(objectives)
        first: tuple[Objective, ...] = () if generator is None else (MaskedLM(),)
        self.objectives = (*first, *self.own)
        # What objectives have of their own learns along, and is saved with a checkpoint.
        self.taught = nn.ModuleList(one for one in objectives if isinstance(one, Distillation))

    def counts(self, batch: Batch) -> list[int]:
        """How many answers each objective asks of a batch."""
        return [objective.count(batch) for objective in self.objectives]

    def forward(self, inputs: Inputs, depth: int | None = None) -> list[Term]:
        """The terms of the loss, one for each objective."""
        terms = []
        if self.generator is not None:
            term, inputs = replace_tokens(self.generator, inputs)
            terms.append(term)
        state = self._encode(inputs, depth)
        return terms + [objective.term(self.model, state, inputs) for objective in self.own]

    def _encode(self, inputs: Inputs, depth: int | None) -> State:
        """The last state; with those before it, where an objective reads them."""
        read = read_by(self.own, inputs.batch)
        if not any(one.reads_layers for one in self.taught):
            return inputs.encode(self.model, depth, read)
        blocks = [inputs.embed(self.model)]
        stop = self.model.config.num_hidden_layers if depth is None else depth
        state = inputs.layers(self.model, blocks[0], 0, stop, read, blocks)
        return replace(state, blocks=tuple(blocks))

    def folders(self) -> dict[str, Model]:
        """What is kept at the end, by the folder it goes to."""
        kept = {"model": self.model}
        return kept if self.generator is None else {**kept, "generator": self.generator}

    def models(self) -> list[Model]:
        """The models that learn."""
        return list(self.folders().values())


def read_by(objectives: Sequence[Objective], batch: Batch) -> IntArray | None:
    """The tokens that any of the objectives reads, in order; None for all."""
    wanted = [objective.reads(batch) for objective in objectives]
    known = [tokens for tokens in wanted if tokens is not None]
    return np.unique(np.concatenate(known)) if known and len(known) == len(wanted) else None

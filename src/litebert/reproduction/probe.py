"""A probe: what a frozen encoder knows about pairs of segments, whatever it was trained for.

Sequences are encoded once; a pooler and a head like the model's own are then fitted to [CLS], so
that a run without a pair objective can be asked, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from litebert.base.batches import Batch, split_by_tokens
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.train.evaluate import MICRO_BATCH_TOKENS

STEPS, LEARNING_RATE, WEIGHT_DECAY = 200, 3e-3, 1e-2
SEED = 1


@dataclass(frozen=True)
class PairVectors:
    """[CLS] of some sequences, and whether they were swapped (or random next)."""

    vectors: Tensor
    labels: Tensor
    answers: Tensor | None  # of the model's own head, where it has one


@torch.no_grad()
def pair_vectors(model: Model, batches: Iterable[Batch]) -> PairVectors:
    """Encode the sequences that have something to decide."""
    vectors, labels, answers = [], [], []
    head = model.head("sentence_pair") if "sentence_pair" in model.heads else None
    device = next(model.parameters()).device
    for batch in batches:
        for part in split_by_tokens(batch, MICRO_BATCH_TOKENS):
            inputs = to_inputs(part, device)
            state = inputs.encode(model.eval(), read=part.starts)
            asked = inputs.labels >= 0
            vectors.append(state.first()[asked])
            labels.append(inputs.labels[asked])
            if head is not None:
                answers.append(head(state)[asked].argmax(-1))
    return PairVectors(
        torch.cat(vectors), torch.cat(labels), torch.cat(answers) if answers else None
    )


def fit_probe(train: PairVectors) -> Callable[[Tensor], Tensor]:
    """A dense layer with tanh and two classes, fitted to all vectors at once."""
    center = train.vectors.mean(0)
    scale = (train.vectors - center).square().mean().sqrt().clamp(min=1e-6)
    generator = torch.Generator(device=train.vectors.device).manual_seed(SEED)
    width = train.vectors.shape[1]
    weights = [
        nn.Parameter(torch.randn(shape, generator=generator) / width**0.5)
        for shape in ((width, width), (2, width))
    ]
    biases = [nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(2))]

    def logits(vectors: Tensor) -> Tensor:
        hidden = torch.tanh(F.linear((vectors - center) / scale, weights[0], biases[0]))
        return F.linear(hidden, weights[1], biases[1])

    optimizer = torch.optim.AdamW(
        [*weights, *biases], lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True
    )
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - step / STEPS)
        F.cross_entropy(logits(train.vectors), train.labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        fixed = [parameter.detach().clone() for parameter in (*weights, *biases)]

    def answer(vectors: Tensor) -> Tensor:
        hidden = torch.tanh(F.linear((vectors - center) / scale, fixed[0], fixed[2]))
        return F.linear(hidden, fixed[1], fixed[3]).argmax(-1)

    return answer

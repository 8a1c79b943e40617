"""The papers' losses as slow, literal formulas: sequence by sequence, token by token."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from litebert.base.batches import Batch
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from tests.objectives.learners import CPU


def tanh_gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def erf_gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def gelu_of_head(model: Model, x: Tensor) -> Tensor:
    """Hugging Face has the erf form in RoBERTa's and ELECTRA's heads, Google tanh elsewhere."""
    return (erf_gelu if model.config.family in ("roberta", "electra") else tanh_gelu)(x)


def layer_norm(x: Tensor, norm: Any) -> Tensor:
    center = x - x.mean(-1, keepdim=True)
    spread = (center**2).mean(-1, keepdim=True)
    return center / torch.sqrt(spread + norm.eps) * norm.weight + norm.bias


def encoded(model: Model, batch: Batch, ids: Tensor | None = None) -> list[Tensor]:
    """Every sequence through the encoder on its own, (T, H) each."""
    tokens = torch.from_numpy(batch.ids).long() if ids is None else ids
    types = torch.from_numpy(batch.token_types).long()
    result = []
    for start, length in zip(batch.starts.tolist(), batch.lengths.tolist(), strict=True):
        part = slice(start, start + length)
        state = model(tokens[None, part], segments=types[None, part])
        result.append(state.x_NH)
    return result


def all_logits(model: Model, x: Tensor, head: Any) -> Tensor:
    """Vocabulary logits at every token of a sequence."""
    hidden = layer_norm(gelu_of_head(model, x @ head.dense.weight.T + head.dense.bias), head.norm)
    return hidden @ model.encoder.embeddings.token.weight.T + head.bias


def surprise(logits: Tensor, target: int) -> Tensor:
    """-log softmax at the target."""
    return torch.log(torch.exp(logits).sum()) - logits[target]


def zero() -> Tensor:
    return torch.zeros((), dtype=torch.float64)


def literal_masked_lm(model: Model, batch: Batch) -> tuple[Tensor, int]:
    """-sum of log p(original) over masked tokens, through the logits of all tokens."""
    head: Any = model.heads["masked_lm"]
    logits = torch.cat([all_logits(model, x, head) for x in encoded(model, batch)])
    loss, correct = zero(), 0
    for place, target in zip(batch.positions.tolist(), batch.targets.tolist(), strict=True):
        loss = loss + surprise(logits[place], target)
        correct += int(logits[place].argmax()) == target
    return loss, correct


def literal_sentence_pair(model: Model, batch: Batch) -> tuple[Tensor, int]:
    pooler, head = model.pooler, model.heads["sentence_pair"]
    assert isinstance(pooler, nn.Module)
    loss, correct = zero(), 0
    for x, label in zip(encoded(model, batch), batch.labels.tolist(), strict=True):
        if label < 0:
            continue
        first = x[0] @ pooler.dense.weight.T + pooler.dense.bias  # type: ignore[union-attr,operator]
        pooled = erf_gelu(first) if model.config.family == "electra" else torch.tanh(first)
        logits = pooled @ head.dense.weight.T + head.dense.bias  # type: ignore[union-attr,operator]
        loss = loss + surprise(logits, label)
        correct += int(logits.argmax()) == label
    return loss, correct


@dataclass(frozen=True)
class Asked:
    """A token that the span-boundary objective asks for; places are within the batch."""

    left: int
    right: int
    place: int
    token: int


def literal_boundaries(batch: Batch) -> list[Asked]:
    """SpanBERT: merged spans within a sequence, none at an edge, fifteen tokens of each at most."""
    masked, asked = set(batch.positions.tolist()), []
    for start, length in zip(batch.starts.tolist(), batch.lengths.tolist(), strict=True):
        place = start
        while place < start + length:
            if place not in masked:
                place += 1
                continue
            stop = place
            while stop in masked and stop < start + length:
                stop += 1
            if batch.is_text[place - 1] and batch.is_text[stop]:
                tokens = range(place, min(stop, place + 15))
                asked += [Asked(place - 1, stop, token - place, token) for token in tokens]
            place = stop
    return asked


def literal_span_boundary(model: Model, batch: Batch) -> tuple[Tensor, int]:
    """y = LN(gelu(W2 LN(gelu(W1 [x_(s-1); x_(e+1); p_(i-s+1)])))), decoded by the token table."""
    head: Any = model.heads["span_boundary"]
    x = torch.cat(encoded(model, batch))
    truth = dict(zip(batch.positions.tolist(), batch.targets.tolist(), strict=True))
    loss, correct = zero(), 0
    for one in literal_boundaries(batch):
        joined = torch.cat([x[one.left], x[one.right], head.position.weight[one.place]])
        first = layer_norm(erf_gelu(joined @ head.first.weight.T + head.first.bias),
                           head.first_norm)  # fmt: skip
        second = layer_norm(erf_gelu(first @ head.second.weight.T + head.second.bias),
                            head.second_norm)  # fmt: skip
        logits = second @ model.encoder.embeddings.token.weight.T + head.bias
        loss = loss + surprise(logits, truth[one.token])
        correct += int(logits.argmax()) == truth[one.token]
    return loss, correct


@dataclass(frozen=True)
class Detection:
    loss: Tensor
    correct: int
    true_positives: int
    positives: int


def literal_detection(model: Model, batch: Batch, sampled: Tensor) -> Detection:
    """-sum over all tokens of log D where original, log(1 - D) where replaced."""
    head: Any = model.heads["replaced_token"]
    truth = dict(zip(batch.positions.tolist(), batch.targets.tolist(), strict=True))
    loss, correct, true_positives, positives = zero(), 0, 0, 0
    tokens = torch.cat(encoded(model, batch, sampled))
    for place, x in enumerate(tokens):
        inner = tanh_gelu(x @ head.dense.weight.T + head.dense.bias)
        fake = torch.sigmoid(inner @ head.output.weight[0] + head.output.bias[0])
        replaced = place in truth and int(sampled[place]) != truth[place]
        loss = loss - torch.log(fake if replaced else 1 - fake)
        correct += bool(fake > 0.5) == replaced
        true_positives += replaced and bool(fake > 0.5)
        positives += replaced
    return Detection(loss, correct, true_positives, positives)


def assert_same_gradients(
    mine: Tensor, literal: Tensor, module: nn.Module, tolerance: float = 1e-8
) -> None:
    """Of two losses, for every parameter; one that has none has zeros."""
    parameters = list(module.parameters())
    ours = torch.autograd.grad(mine, parameters, allow_unused=True, materialize_grads=True)
    theirs = torch.autograd.grad(literal, parameters, allow_unused=True, materialize_grads=True)
    names = [name for name, _ in module.named_parameters()]
    assert any(gradient.abs().max() > 1e-3 for gradient in theirs)
    for name, one, two in zip(names, ours, theirs, strict=True):
        torch.testing.assert_close(
            one, two, rtol=tolerance, atol=tolerance, msg=lambda text, name=name: f"{name}: {text}"
        )


def term_of(objective: Any, model: Model, batch: Batch) -> tuple[Tensor, int]:
    inputs = to_inputs(batch, CPU)
    term = objective.term(model, inputs.encode(model), inputs)
    return term.loss, int(term.counts[0])

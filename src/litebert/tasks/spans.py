"""Choosing spans: from start and end scores (SQuAD 1.1), from beams (SQuAD 2.0), from votes.

Shapes: B sequences, T tokens, K beams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model

BEST = 20  # starts and ends that are combined
BEAMS = 5  # starts that the conditional head looks on from, and ends of each


class Span(NamedTuple):
    """A run of tokens of a window, first to last."""

    score: float
    first: int
    last: int


class Candidate(NamedTuple):
    """A run of characters of a passage."""

    score: float
    first: int
    last: int


Floats = NDArray[np.floating]
Flags = NDArray[np.bool_]


def best_spans(
    output: Floats, inside: Flags, owned: Flags, longest: int, *, conditional: bool
) -> tuple[list[Span], float]:
    """The best spans of a window, best first, and the score of there being no answer."""
    if conditional:
        return _from_beams(output, inside, owned, longest)
    return _from_scores(output, inside, owned, longest)


def _from_scores(
    output_T2: Floats, inside: Flags, owned: Flags, longest: int
) -> tuple[list[Span], float]:
    start, end = output_T2[:, 0], output_T2[:, 1]
    null = float(start[0] + end[0])
    first = _top(np.where(inside & owned, start, -np.inf))
    last = _top(np.where(inside, end, -np.inf))
    fits = (last[None] >= first[:, None]) & (last[None] - first[:, None] < longest)
    scores = np.where(fits, start[first][:, None] + end[last][None], -np.inf)
    order = np.argsort(-scores, axis=None, kind="stable")[:BEST]
    rows, columns = np.unravel_index(order, scores.shape)
    spans = [
        Span(float(scores[row, column]), int(first[row]), int(last[column]))
        for row, column in zip(rows, columns, strict=True)
        if np.isfinite(scores[row, column])
    ]
    return spans, null


def _top(scores: Floats) -> NDArray[np.int64]:
    """The places of the best finite scores."""
    order = np.argsort(-scores, kind="stable")[:BEST]
    return order[np.isfinite(scores[order])]


def beam_spans(model: Model, state: State, inputs: Inputs) -> list[Floats]:
    """The conditional head's beams: rows (start, end, score), first one (0, 0, no answer)."""
    result = model.conditional_span(state, answerable(inputs, state), beams=BEAMS)
    assert result.best_starts_BK is not None
    start_BT = result.start_BT.float().log_softmax(-1)
    end_BKT = result.end.float().log_softmax(-1)
    ends = end_BKT.topk(min(BEAMS, end_BKT.shape[-1]), -1)
    score = start_BT.gather(1, result.best_starts_BK)[..., None] + ends.values
    starts = result.best_starts_BK[..., None].expand_as(ends.indices)
    rows = torch.stack([starts.float(), ends.indices.float(), score], -1).flatten(1, 2)
    null = torch.zeros(len(rows), 1, 3)
    null[:, 0, 2] = result.unanswerable_B.float().cpu()
    return list(torch.cat([null, rows.cpu()], 1).numpy())


def answerable(inputs: Inputs, state: State) -> torch.Tensor:
    """(B, T): passage tokens, and [CLS], which stands for no answer."""
    batch = inputs.batch
    allowed = torch.zeros(len(batch), int(batch.lengths.max()), dtype=torch.bool)
    rows, columns = (torch.from_numpy(array) for array in (batch.sequence, batch.offset))
    allowed[rows, columns] = torch.from_numpy(batch.inside | (batch.offset == 0))
    return allowed.to(state.x_NH.device)


def _from_beams(
    output: Floats, inside: Flags, owned: Flags, longest: int
) -> tuple[list[Span], float]:
    spans = []
    for start, end, score in output[1:].tolist():
        first, last = int(start), int(end)
        fits = inside[first] and owned[first] and inside[last] and 0 <= last - first < longest
        if fits:
            spans.append(Span(score, first, last))
    return sorted(spans, key=lambda span: -span.score), float(output[0, 2])


def merge_answers(predictions: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], float]:
    """Several models' answers to one question, best first by the mean of their probabilities.

    Beside them the mean odds of there being no answer.
    """
    votes: dict[str, dict[str, Any]] = {}
    for prediction in predictions:
        for entry in prediction["best"]:
            kept = votes.setdefault(entry["text"], {**entry, "probability": 0.0})
            kept["probability"] += entry["probability"] / len(predictions)
    best = sorted(votes.values(), key=lambda entry: -entry["probability"])
    return best, float(np.mean([prediction["null_odds"] for prediction in predictions]))

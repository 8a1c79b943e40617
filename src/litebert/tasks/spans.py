"""Spans of a window: how the two heads are trained on them, and how they are chosen.

The plain head gives each token a start and an end score (SQuAD 1.1). The conditional head (SQuAD
2.0, the paper's) continues from its best starts, and says beside whether there is an answer.

Shapes: B sequences, T tokens, K beams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.tasks.task import Term

BEST = 20  # starts and ends that are combined
UNLIKELY = -1e30  # the score of padding
BEAMS = 5  # starts that the conditional head continues from, and ends of each


class Span(NamedTuple):
    """A run of tokens of a window, first to last."""

    score: float
    first: int
    last: int


Floats = NDArray[np.floating]
Flags = NDArray[np.bool_]


def span_term(model: Model, state: State, inputs: Inputs) -> Term:
    """The mean of two cross-entropies; windows without the answer point at [CLS]."""
    logits_BT2, real_BT = state.layout.padded(model.head("span")(state).float())
    start_BT, end_BT = logits_BT2.masked_fill(~real_BT[..., None], UNLIKELY).unbind(-1)
    start, end = inputs.labels[:, 0], inputs.labels[:, 1]
    return _term(start_BT, end_BT, start, end)


def conditional_term(model: Model, state: State, inputs: Inputs) -> Term:
    """Half the mean of start and end, half whether there is an answer."""
    start, end, missing = inputs.labels.unbind(-1)
    span = model.head("conditional_span")(state, answerable(inputs, state), start)
    term = _term(span.start_BT.float(), span.end.float(), start, end)
    doubt = F.binary_cross_entropy_with_logits(
        span.unanswerable_B.float(), missing.float(), reduction="sum"
    )
    return Term((term.loss + doubt) / 2, term.counts)


def _term(start_BT: Tensor, end_BT: Tensor, start: Tensor, end: Tensor) -> Term:
    """Correct are windows whose start and end both are."""
    loss = F.cross_entropy(start_BT, start, reduction="sum")
    loss = (loss + F.cross_entropy(end_BT, end, reduction="sum")) / 2
    correct = (start_BT.argmax(-1) == start) & (end_BT.argmax(-1) == end)
    return Term(loss, (correct.sum(),))


def spans_from_scores(
    output_T2: Floats, inside: Flags, owned: Flags, longest: int
) -> tuple[list[Span], float]:
    """The best spans of a window, best first, and the score of there being no answer."""
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
    result = model.head("conditional_span")(state, answerable(inputs, state), beams=BEAMS)
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
    rows, columns = (torch.from_numpy(array) for array in (batch.sequence_ids, batch.position_ids))
    allowed[rows, columns] = torch.from_numpy(batch.is_text | (batch.position_ids == 0))
    return allowed.to(state.x_NH.device)


def spans_from_beams(
    output: Floats, inside: Flags, owned: Flags, longest: int
) -> tuple[list[Span], float]:
    """The same out of the beams of the conditional head."""
    spans = []
    for start, end, score in output[1:].tolist():
        first, last = int(start), int(end)
        fits = inside[first] and owned[first] and inside[last] and 0 <= last - first < longest
        if fits:
            spans.append(Span(score, first, last))
    return sorted(spans, key=lambda span: -span.score), float(output[0, 2])


def span_of(places: NDArray[np.int32], start: int, end: int) -> tuple[int, int]:
    """The tokens that hold the characters start..end of a passage."""
    first = int(np.searchsorted(places[:, 1], start, side="right"))
    last = int(np.searchsorted(places[:, 0], end, side="left")) - 1
    return first, last


def most_context(windows: Sequence[tuple[int, int]], number: int) -> NDArray[np.bool_]:
    """Which tokens of a window no other window shows with more context (BERT's max-context)."""
    begin, end = windows[number]
    tokens = np.arange(begin, end)
    scores = []
    for first, last in windows:
        context = np.minimum(tokens - first, last - 1 - tokens) + 0.01 * (last - first)
        inside = (tokens >= first) & (tokens < last)
        scores.append(np.where(inside, context, -np.inf))
    return np.argmax(scores, 0) == number

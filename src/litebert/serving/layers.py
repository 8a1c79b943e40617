"""One input on its way through the layers, for looking at: ALBERT's Figure 1, and more.

How far each token moves from a layer's input to its output, what the model would answer at each
depth, where exit rules would stop, and what the heads attend to.

Shapes: T tokens of the first sequence, H hidden, A heads, D head size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from litebert.inference.engine import Engine
from litebert.inference.exits import calibration_of, parse_exit
from litebert.inference.jobs import Job, as_fp32
from litebert.model.inputs import to_inputs
from litebert.model.layout import State
from litebert.model.movement import movements
from litebert.serving.schemas import LayersAnswer

LONGEST_ATTENTION = 64  # tokens; beyond, pictures and answers grow too large
RULES = ("patience=1", "patience=2", "confidence=0.9", "confidence=0.99")
DIGITS = 4


def layers_of(engine: Engine, given: Any, attention: bool) -> LayersAnswer:
    """Follow one input; several sequences (windows, options) are followed by their first."""
    job = engine.job("predict" if engine.task is not None else "embed", [given])
    with engine.computing, torch.inference_mode():
        states = _states(engine, job)
        length = int(job.batch.lengths[0])
        tokens_TH = [as_fp32(state).x_NH[:length] for state in states]
        distance_LT, cosine_LT = movements(tokens_TH)
        predictions, exits = _by_depth(engine, job, states[1:])
        shown = attention and length <= LONGEST_ATTENTION
        return LayersAnswer(
            tokens=[engine.tokenizer.tokens[id] for id in job.batch.ids[:length].tolist()],
            distance=_rounded(distance_LT),
            cosine=_rounded(cosine_LT),
            predictions=predictions,
            exit_heads=has_exits(engine),
            exits=exits,
            attention=_attention(engine, states, length) if shown else None,
        )


def has_exits(engine: Engine) -> bool:
    """Whether each depth has a head of its own."""
    return engine.task is not None and engine.model.has_exits(engine.task.head)


def _states(engine: Engine, job: Job) -> list[State]:
    """Before the first layer, and after each."""
    inputs, encoder = to_inputs(job.batch, engine.device), engine.model.encoder
    lengths = job.batch.lengths.tolist()
    states = [encoder.embed(inputs.ids, segments=inputs.token_types, lengths=lengths)]
    encoder.layers(states[0], 0, job.depth, states)
    return states


def _by_depth(
    engine: Engine, job: Job, states: list[State]
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """What would be answered after each layer, and where rules stop."""
    task = engine.task
    if task is None:
        return [], {}
    inputs, own = to_inputs(job.batch, engine.device), has_exits(engine)
    outputs = []
    for depth, state in enumerate(states, 1):
        head = depth if own and depth < len(states) else None
        outputs.append(task.outputs(engine.model, as_fp32(state), inputs, depth=head))
    answers = []
    for depth, found in enumerate(outputs, 1):
        (prediction,) = job.finish(found, np.full(len(job.batch), depth))
        answers.append({k: v for k, v in prediction.to_json().items() if k != "id"})
    calibration = calibration_of(engine.model, engine.folder) if own else None
    stops = {}
    for text in RULES if own else ():
        if text.partition("=")[0] in task.exit_rules:
            rule = parse_exit(text, task, calibration)
            first = [found[0] for found in outputs]
            stops[text] = next(
                (d for d in range(1, len(first)) if rule.leaves(first[:d])), len(first)
            )
    return answers, stops


def _attention(engine: Engine, states: list[State], length: int) -> list[list[list[list[float]]]]:
    """By layer and head, from each token to each."""
    encoder, found = engine.model.encoder, []
    for layer, state in enumerate(states[:-1]):
        for part, _ in encoder.parts(layer)[:1]:
            x_TH = state.x_NH[:length]
            q, k, _ = part.query_key_value(x_TH).unflatten(-1, (3, part.heads, -1)).unbind(-3)
            q_ATD, k_ATD = (x.float().transpose(0, 1) for x in (q, k))
            scores_ATT = q_ATD @ k_ATD.transpose(1, 2) / q_ATD.shape[-1] ** 0.5
            found.append(_rounded(scores_ATT.softmax(-1)))
    return found


def _rounded(values: Tensor) -> Any:
    return np.round(values.float().cpu().numpy().astype(np.float64), DIGITS).tolist()

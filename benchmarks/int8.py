"""int8 against fp32 on fine-tuned models: scores, answers that stay the same, hidden states.

    python benchmarks/int8.py tuned-sst2=glue tuned-ner=ner/WikiANN/en --examples 2000

Each argument is a fine-tuned model folder and the data whose dev split it is asked. Bars: 99 % of
SST-2's labels the same, every score within half a point, and no product that saturates (that one
is a test).
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import litebert
from litebert.base.batches import take
from litebert.model.inputs import to_inputs
from litebert.tasks.data import read_split
from litebert.tasks.source import DataSource

ANSWERS = ("label", "choice", "tags", "text")
SEQUENCES = 64  # whose hidden states are compared


def parts_of(prediction: Any) -> list[Any]:
    """What is answered: a label, an answer, or the tags of a sentence; nothing for a number."""
    name = next((name for name in ANSWERS if hasattr(prediction, name)), None)
    if name is None:
        return []
    found = getattr(prediction, name)
    return list(found) if isinstance(found, tuple) else [found]


@torch.inference_mode()
def hidden(engine: litebert.Engine, batch: Any) -> np.ndarray:
    inputs = to_inputs(batch, engine.device)
    return inputs.encode(engine.model).x_NH.float().numpy()


def compare(folder: str, data: str, count: int | None) -> None:
    engines = {name: litebert.Engine(folder, precision=name) for name in ("fp32", "int8")}
    task = engines["fp32"].needs_task()
    examples = read_split(task, DataSource.build(Path(data)), split="dev")[:count]
    features = task.features(examples, engines["fp32"].tokenizer)
    found = {name: one.predict_examples(examples, features) for name, one in engines.items()}
    scores = {name: task.score(examples, said) for name, said in found.items()}
    metric = task.settings.metrics[0]
    first = take(features.batch, np.arange(min(SEQUENCES, len(features.batch))))
    states = {name: hidden(engine, first) for name, engine in engines.items()}
    error = states["int8"] - states["fp32"]
    line = f"{task.settings.name}, {len(examples):,} examples: {metric} "
    line += (
        f"{100 * scores['fp32'][metric]:.2f} in fp32, {100 * scores['int8'][metric]:.2f} in int8 "
    )
    line += f"({100 * (scores['int8'][metric] - scores['fp32'][metric]):+.2f}); "
    line += agreement(found["fp32"], found["int8"])
    size = np.sqrt(np.mean(states["fp32"] ** 2))
    print(f"{line}; hidden states {np.sqrt(np.mean(error**2)) / size:.2%} off", flush=True)


def agreement(ours: Sequence[Any], theirs: Sequence[Any]) -> str:
    pairs = [
        same == other
        for one, two in zip(ours, theirs, strict=True)
        for same, other in zip(parts_of(one), parts_of(two), strict=True)
    ]
    if pairs:
        return f"{np.mean(pairs):.2%} of the answers are the same"
    apart = [abs(one.value - two.value) for one, two in zip(ours, theirs, strict=True)]
    return f"values differ by {np.mean(apart):.3f} in the mean"


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("models", nargs="+", metavar="FOLDER=DATA")
    parser.add_argument("--examples", type=int, help="of the dev split, at most")
    options = parser.parse_args()
    for one in options.models:
        folder, _, data = one.partition("=")
        compare(folder, data, options.examples)


if __name__ == "__main__":
    main()

"""Looking at held-out text: losses and accuracies of a learner, and one sample with its guesses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import torch

from litebert.base.batch import Batch, cut
from litebert.base.runtime import Precision, autocast
from litebert.corpus.loader import Corrupt, Loader, LoaderSettings
from litebert.corpus.store import Store
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.text.tokenizer import Tokenizer
from litebert.train.metrics import Sums, new_sums, term_sums
from litebert.train.parallel import Group

SEED = 0  # held-out samples and masks are the same for all runs
BATCH = 32


def held_out(
    store: Store, loading: LoaderSettings, corrupt: Corrupt | None, sequences: int, group: Group
) -> Iterator[Batch]:
    """This rank's share of the first so many held-out sequences, one epoch at most."""
    size = min(BATCH, sequences)
    changes = {"split": "held_out", "seed": SEED, "batch": size, "by": "sequences", "copies": 0}
    settings = loading.model_copy(update=changes)
    loader = Loader(store, settings, corrupt, group.rank, group.ranks, epochs=1)
    return islice(loader, -(-sequences // size))


@torch.no_grad()
def measure(
    learner: Learner, batches: Iterator[Batch], group: Group, precision: Precision, at_once: int,
    depth: int | None = None,
) -> Sums:  # fmt: skip
    """Sums over some batches and all ranks, without dropout."""
    was, sums = learner.training, new_sums(learner.objectives)
    learner.eval()
    for batch in batches:
        for part in cut(batch, at_once):
            with autocast(precision, group.device):
                terms = learner(to_inputs(part, group.device), depth)
            sums.add(learner.counts(part), [[float(v) for v in term_sums(t)] for t in terms])
    learner.train(was)
    numbers = [*sums.counts, *(value for row in sums.values for value in row)]
    totals = group.total(numbers)
    width = len(sums.values[0])
    rows = totals[len(sums.names) :]
    values = [rows[i * width : (i + 1) * width] for i in range(len(sums.names))]
    return Sums(sums.names, totals[: len(sums.names)], values)


@torch.no_grad()
def guesses(model: Model, batch: Batch, tokenizer: Tokenizer, device: torch.device) -> str:
    """The first sequence of a batch: each masked token as [truth|guess], or [truth] if right."""
    one = batch.part(0, 1)
    inputs = to_inputs(one, device)
    was = model.training
    model.eval()
    logits = model.masked_language(inputs.encode(model), inputs.positions)
    model.train(was)
    said = dict(zip(one.positions.tolist(), logits.argmax(-1).tolist(), strict=True))
    truth = dict(zip(one.positions.tolist(), one.targets.tolist(), strict=True))
    words = []
    for place, piece in enumerate(one.ids.tolist()):
        if place in truth:
            words.append(_marked(tokenizer.pieces[truth[place]], tokenizer.pieces[said[place]]))
        elif one.inside[place]:
            words.append(tokenizer.pieces[piece])
        else:
            words.append("▁|")
    return "".join(words).replace("▁", " ").strip()


def _marked(truth: str, guess: str) -> str:
    space = "▁" if truth.startswith("▁") else ""
    truth, same = truth.removeprefix("▁"), truth == guess
    return f"{space}[{truth}]" if same else f"{space}[{truth}≠{guess.removeprefix('▁')}]"

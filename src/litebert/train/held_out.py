"""Held-out text: its batches, a learner's losses and accuracies on them, a sample to look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import torch

from litebert.base.batches import Batch, split_by_tokens
from litebert.base.runtime import Precision, autocast
from litebert.corpus.loader import Loader, LoaderSettings, Mask
from litebert.corpus.store import Store
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.objectives.learner import Learner
from litebert.text.tokenizer import Tokenizer
from litebert.train.distributed import DistributedGroup
from litebert.train.metrics import Sums, term_values

SEED = 0  # held-out samples and masks are the same for all runs
BATCH_SIZE = 32


def held_out_batches(
    store: Store,
    loading: LoaderSettings,
    mask: Mask | None,
    sequences: int,
    group: DistributedGroup,
) -> Iterator[Batch]:
    """This rank's part of the first so many held-out sequences, one epoch at most."""
    size = min(BATCH_SIZE, sequences)
    changes = {
        "split": "held_out",
        "seed": SEED,
        "batch_size": size,
        "batch_by": "sequences",
        "dupe_factor": 0,
    }
    settings = loading.model_copy(update=changes)
    loader = Loader(store, settings, mask, group.rank, group.world_size, epochs=1)
    return islice(loader, -(-sequences // size))


@torch.no_grad()
def evaluate_batches(
    learner: Learner, batches: Iterable[Batch], group: DistributedGroup, precision: Precision,
    micro_batch_tokens: int, depth: int | None = None,
) -> Sums:  # fmt: skip
    """Sums over some batches and all ranks, without dropout."""
    was_training, sums = learner.training, Sums.of(learner.objectives)
    learner.eval()
    for batch in batches:
        for part in split_by_tokens(batch, micro_batch_tokens):
            with autocast(precision, group.device):
                terms = learner(to_inputs(part, group.device), depth)
            values = [float(value) for term in terms for value in term_values(term)]
            sums.add(learner.counts(part), values)
    learner.train(was_training)
    totals = group.all_reduce_numbers([*sums.counts, *sums.values])
    return Sums(sums.counters, totals[: len(sums.counts)], totals[len(sums.counts) :])


@torch.no_grad()
def show_predictions(model: Model, batch: Batch, tokenizer: Tokenizer, device: torch.device) -> str:
    """The first sequence: each masked token as [token], or [token≠prediction] where wrong."""
    one = batch.slice(0, 1)
    inputs = to_inputs(one, device)
    was_training = model.training
    logits = model.eval().head("masked_lm")(inputs.encode(model), inputs.positions)
    model.train(was_training)
    places = one.positions.tolist()
    predicted = dict(zip(places, logits.argmax(-1).tolist(), strict=True))
    true = dict(zip(places, one.targets.tolist(), strict=True))
    words = []
    for place, token in enumerate(one.ids.tolist()):
        if place in true:
            words.append(_marked(tokenizer.tokens[true[place]], tokenizer.tokens[predicted[place]]))
        else:
            words.append(tokenizer.tokens[token] if one.is_text[place] else "▁|")
    return "".join(words).replace("▁", " ").strip()


def _marked(token: str, prediction: str) -> str:
    space = "▁" if token.startswith("▁") else ""
    token, same = token.removeprefix("▁"), token == prediction
    return f"{space}[{token}]" if same else f"{space}[{token}≠{prediction.removeprefix('▁')}]"

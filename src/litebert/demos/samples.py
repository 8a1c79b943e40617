"""What an encoder has learned, in samples: words behind a mask, which segment came first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from litebert.base.batches import Batch
from litebert.corpus.loader import LoaderSettings
from litebert.corpus.store import Store
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.tasks.features import Sequences
from litebert.text.tokenizer import Tokenizer
from litebert.train.distributed import DistributedGroup
from litebert.train.held_out import held_out_batches

GAP = "___"
SENTENCES = (
    f"the acting is {GAP} and the story makes no sense .",
    f"one of the {GAP} films i have ever seen .",
    f"i laughed a lot , it is a very {GAP} comedy .",
    f"do not waste your {GAP} on this one .",
    f"the {GAP} was written by the director himself .",
    f"she plays a young {GAP} who falls in love with a soldier .",
)
BEST = 5  # words shown for a gap
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Gap:
    """A sentence with a gap, and the likeliest words with their probabilities."""

    sentence: str
    words: list[tuple[str, float]]


@dataclass(frozen=True)
class JudgedOrder:
    """Two neighbouring segments of a held-out review, and what the model says of their order."""

    first: str
    second: str
    swapped: bool
    probability: float  # of being swapped

    @property
    def correct(self) -> bool:
        """Whether the model is right."""
        return self.swapped == (self.probability > 0.5)


@torch.no_grad()
def fill_gaps(model: Model, tokenizer: Tokenizer) -> list[Gap]:
    """The words that fit best into each sentence's gap: whole ones, not continuations."""
    whole = torch.tensor(
        [piece.startswith("▁") and piece[1:].isalpha() for piece in tokenizer.tokens]
    )
    gaps = []
    for sentence in SENTENCES:
        before, after = (tokenizer.encode(part.strip()) for part in sentence.split(GAP))
        sequences = Sequences(tokenizer)
        sequences.add(0, 0, np.array([*before, tokenizer.special.mask, *after], np.int32))
        inputs = to_inputs(sequences.batch(), CPU)
        places = torch.tensor([1 + len(before)])
        scores = model.eval().head("masked_lm")(inputs.encode(model), places)[0].softmax(-1)
        best = (scores[: len(whole)] * whole).topk(BEST)
        words = [tokenizer.tokens[i][1:] for i in best.indices.tolist()]
        gaps.append(Gap(sentence, list(zip(words, best.values.tolist(), strict=True))))
    return gaps


@torch.no_grad()
def judge_orders(model: Model, corpus: Path, length: int, count: int) -> list[JudgedOrder]:
    """Pairs of held-out text, with the model's word on which came first."""
    store = Store([corpus])
    loading = LoaderSettings(input_format="albert", max_length=length)
    found: list[JudgedOrder] = []
    for batch in held_out_batches(store, loading, None, 4 * count, DistributedGroup()):
        inputs = to_inputs(batch, CPU)
        said = model.eval().head("sentence_pair")(inputs.encode(model)).softmax(-1)[:, 1].tolist()
        for place, swapped in enumerate(batch.labels.tolist()):
            if swapped >= 0 and len(found) < count:
                first, second = _segments(batch.slice(place, place + 1), store.tokenizer)
                found.append(JudgedOrder(first, second, bool(swapped), said[place]))
    return found


def _segments(one: Batch, tokenizer: Tokenizer) -> list[str]:
    return [
        tokenizer.decode(one.ids[one.is_text & (one.token_types == t)].tolist()) for t in (0, 1)
    ]

"""Pseudo-log-likelihood: how likely a masked language model finds a sentence, token by token.

    plain    each token masked alone: sum of log p(token | all others) (Salazar et al. 2020)
    word     with a token also the later tokens of its word are masked, so that the pieces of a rare
             word do not give each other away (Kauf and Ivanova 2023, "within-word left to right")

A sentence of n tokens takes n masked copies. Copies of all sentences are packed by length, the last
layer is computed at the masked token only, and tokens whose mask is the same in both ways (last
pieces of words) are computed once.

Shapes: C copies, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from litebert.base.batches import Batch, bucket_by_length
from litebert.base.errors import SettingsError
from litebert.base.ragged import IntArray
from litebert.base.runtime import Precision, autocast
from litebert.inference.jobs import OnProgress, no_progress
from litebert.model.inputs import to_inputs
from litebert.model.model import Model
from litebert.text.tokenizer import Tokenizer

BATCH_TOKENS = 8192


@dataclass(frozen=True)
class PseudoLikelihood:
    """Of one sentence: the sums of both ways, and how many tokens it has."""

    plain: float
    word: float
    tokens: int


@dataclass(frozen=True)
class _Copies:
    """Masked copies: what they hold, what is asked, and of whom."""

    ids: list[NDArray[np.int32]]
    position: list[int]  # of the token that is asked
    target: list[int]
    sentence: list[int]
    plain: list[bool]  # whether it counts there
    word: list[bool]


def pseudo_likelihoods(
    model: Model, tokenizer: Tokenizer, sentences: Sequence[str], *, precision: Precision = "fp32",
    on_progress: OnProgress = no_progress,
) -> list[PseudoLikelihood]:  # fmt: skip
    """Both sums of every sentence, in order."""
    if "masked_lm" not in model.heads:
        raise SettingsError("this model has no masked-LM head to score sentences with")
    special = tokenizer.special
    flat, lengths = tokenizer.encode_batch(list(sentences))
    texts = np.split(flat.astype(np.int32), np.cumsum(lengths)[:-1])
    ends = np.asarray([special.cls], np.int32), np.asarray([special.sep], np.int32)
    whole = [np.concatenate([ends[0], text, ends[1]]) for text in texts]
    longest = max(map(len, whole), default=0)
    if longest > model.config.longest_sequence:
        raise SettingsError(
            f"a sentence has {longest} tokens, the model has positions for "
            f"{model.config.longest_sequence}"
        )
    copies = _copies(whole, tokenizer.word_starts, special.mask)
    found = _score(model, copies, precision, on_progress)
    plain, word = (
        np.bincount(copies.sentence, found * np.asarray(counts), len(whole))
        for counts in (copies.plain, copies.word)
    )
    return [
        PseudoLikelihood(float(a), float(b), len(ids) - 2)
        for a, b, ids in zip(plain, word, whole, strict=True)
    ]


def _copies(
    sentences: Sequence[NDArray[np.int32]], word_starts: NDArray[np.bool_], mask: int
) -> _Copies:
    copies = _Copies([], [], [], [], [], [])
    for number, ids in enumerate(sentences):
        for position, later in _tokens(ids, word_starts):
            for masked, plain, word in _ways(later):
                changed = ids.copy()
                changed[position : position + 1 + masked] = mask
                copies.ids.append(changed)
                copies.position.append(position)
                copies.target.append(int(ids[position]))
                copies.sentence.append(number)
                copies.plain.append(plain)
                copies.word.append(word)
    return copies


def _tokens(ids: NDArray[np.int32], word_starts: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Each token of the text, and how many tokens of its word come after it."""
    starts = word_starts[ids]
    starts[0] = starts[1] = starts[-1] = True  # [CLS], the first token, [SEP]
    ends = np.flatnonzero(starts)
    for position in range(1, len(ids) - 1):
        end = int(ends[np.searchsorted(ends, position, side="right")])
        yield position, end - position - 1


def _ways(later: int) -> list[tuple[int, bool, bool]]:
    """How many later tokens are masked too, and in which of both ways that copy counts."""
    return [(0, True, True)] if later == 0 else [(0, True, False), (later, False, True)]


@torch.no_grad()
def _score(
    model: Model, copies: _Copies, precision: Precision, on_progress: OnProgress
) -> NDArray[np.float64]:
    """log p of the token asked, of every copy."""
    device = next(model.parameters()).device
    training, found = model.training, np.zeros(len(copies.ids))
    model.eval()
    lengths = np.asarray([len(ids) for ids in copies.ids], np.int64)
    done, head = 0, model.head("masked_lm")
    for chosen in bucket_by_length(lengths, max_tokens=BATCH_TOKENS, descending=True):
        inputs = to_inputs(_batch(copies, chosen, lengths), device)
        with autocast(precision, device):
            state = inputs.encode(model, read=inputs.batch.positions)
            logits_CV = head(state, inputs.positions).float()
        target = logits_CV.gather(1, inputs.targets[:, None]).squeeze(1)
        found[chosen] = (target - logits_CV.logsumexp(1)).double().cpu().numpy()
        done += len(chosen)
        on_progress(done, len(lengths))
    model.train(training)
    return found


def _batch(copies: _Copies, chosen: IntArray, lengths: IntArray) -> Batch:
    """Some copies packed end to end, each with the one position that is asked."""
    ids = np.concatenate([copies.ids[i] for i in chosen])
    count = lengths[chosen]
    starts = np.cumsum(count) - count
    zeros = np.zeros(len(ids), bool)
    return Batch(
        ids=ids,
        token_types=np.zeros(len(ids), np.int8),
        is_text=zeros,
        segment_starts=zeros,
        lengths=count,
        labels=np.full(len(chosen), -1, np.int8),
        keys=np.zeros(len(chosen), np.uint64),
        positions=starts + np.asarray([copies.position[i] for i in chosen]),
        targets=np.asarray([copies.target[i] for i in chosen], np.int32),
    )

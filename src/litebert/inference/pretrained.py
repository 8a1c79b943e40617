"""What a pretrained encoder can be asked: vectors, masked words, which of two texts comes first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray

from litebert.base.batches import Batch
from litebert.base.errors import InputError, SettingsError
from litebert.base.ragged import IntArray
from litebert.inference.jobs import Job
from litebert.model.inputs import Inputs
from litebert.model.layout import State
from litebert.model.model import Model
from litebert.model.sentence_encoder import MODULES, SentenceEncoderSettings
from litebert.tasks.asked import places, text_of
from litebert.tasks.features import NO_LABEL, Ids, Sequences, encode_all
from litebert.tasks.readers.text_file import Say, quiet
from litebert.text.tokenizer import Tokenizer

MASK = "[MASK]"  # as users write it, whatever the tokenizer calls it
IN_ORDER = 0  # class of the sentence-pair head


@dataclass(frozen=True)
class TokenCandidate:
    """A token that may be behind a mask."""

    token: str
    text: str  # as it reads
    probability: float


@dataclass(frozen=True)
class MaskedToken:
    """A mask: its characters [start, end) of the text, and what may be behind it, best first."""

    start: int
    end: int
    candidates: tuple[TokenCandidate, ...]


@dataclass(frozen=True)
class MaskPrediction:
    """The masks of a text, in order."""

    masks: tuple[MaskedToken, ...]
    depth: int


@dataclass(frozen=True)
class OrderPrediction:
    """Whether the first text comes first, and how likely that is."""

    in_order: bool
    probability: float
    depth: int


# ---------------------------------------------------------------------------------- vectors


@dataclass(frozen=True)
class _Vectors:
    pooling: str
    normalize: bool

    def reads(self, batch: Batch) -> IntArray | None:
        return batch.starts if self.pooling == "first" else None

    def outputs(
        self, model: Model, state: State, inputs: Inputs, depth: int | None = None
    ) -> list[NDArray[np.float32]]:
        rows = state.mean() if self.pooling == "mean" else state.first()
        return list((F.normalize(rows) if self.normalize else rows).cpu().numpy())


def embed_settings(
    model: Model, folder: Path, pooling: str | None = None, max_length: int | None = None,
    normalize: bool | None = None,
) -> SentenceEncoderSettings:  # fmt: skip
    """What the user asked for, else what the model says of itself; its `folder` is for errors."""
    told = model.sentence_encoder or SentenceEncoderSettings()
    if told.unknown and pooling is None:
        raise SettingsError(
            f"{folder}: its {MODULES} asks for {', '.join(told.unknown)}, which is not followed "
            "here; --pooling mean or first takes the encoder's tokens as they are"
        )
    asked = {"pooling": pooling, "max_length": max_length, "normalize": normalize}
    given = {name: value for name, value in asked.items() if value is not None}
    return SentenceEncoderSettings.build({**told.model_dump(), **given}, "embed")


def embed_job(
    model: Model, tokenizer: Tokenizer, texts: Sequence[str], depth: int,
    settings: SentenceEncoderSettings, *, overflow: str | None = None, say: Say = quiet,
) -> Job:  # fmt: skip
    """One row a text, (texts, H); longer texts are cut off, and `say` is told how many."""
    sequences, longest = Sequences(tokenizer), model.config.longest_sequence
    room = min(settings.max_length or longest, longest) - sequences.extra
    truncated = 0
    for number, ids in enumerate(encode_all(tokenizer, _prompted(texts, settings))):
        if overflow == "error" and len(ids) > room:
            raise _too_long(places(texts)[number], len(ids) + sequences.extra, room)
        sequences.add(number, NO_LABEL, ids[:room])
        truncated += len(ids) > room
    if truncated:
        say(
            f"{truncated:,} of {len(texts):,} texts are cut off after {room + sequences.extra} "
            f"tokens (--max-length N, at most {longest})"
        )

    def finish(outputs: Sequence[Any], depths: IntArray) -> NDArray[np.float32]:
        return np.array(outputs, np.float32).reshape(len(texts), model.config.hidden_size)

    readout = _Vectors(settings.pooling, settings.normalize)
    return Job(sequences.batch(), readout, depth, None, finish, truncated)


def vectors_job(batch: Batch, depth: int, pooling: str = "first") -> Job:
    """Vectors of sequences at hand: their [CLS], or the mean of their tokens."""
    return Job(batch, _Vectors(pooling, False), depth, None, lambda outputs, depths: list(outputs))


def _prompted(texts: Sequence[str], settings: SentenceEncoderSettings) -> list[str]:
    whole = [settings.prompt + text for text in texts]
    return [text.lower() for text in whole] if settings.lower_case else whole


def _too_long(where: str, tokens: int, room: int) -> InputError:
    return InputError(f"{where} has {tokens:,} tokens, the model reads {room:,}; shorten it")


# ------------------------------------------------------------------------ words behind a mask


@dataclass(frozen=True)
class _Masked:
    top: int

    def reads(self, batch: Batch) -> IntArray:
        return batch.positions

    def outputs(
        self, model: Model, state: State, inputs: Inputs, depth: int | None = None
    ) -> list[tuple[NDArray[np.float32], IntArray]]:
        """The best tokens of each mask with their probabilities, by sequence."""
        logits = model.head("masked_lm")(state, inputs.positions)
        best = logits.softmax(-1).topk(min(self.top, logits.shape[-1]))
        counts = np.bincount(
            inputs.batch.sequence_ids[inputs.batch.positions], minlength=len(inputs.batch)
        )
        edges = np.cumsum(counts)[:-1]
        found = (np.split(one.cpu().numpy(), edges) for one in best)
        return list(zip(*found, strict=True))


def mask_job(
    model: Model, tokenizer: Tokenizer, texts: Sequence[str], depth: int, *, top: int
) -> Job:
    """The candidates for each [MASK] of each text."""
    model.head("masked_lm")
    if top < 1:
        raise SettingsError(f"top {top}: ask for at least one candidate")
    sequences, spots = Sequences(tokenizer), []
    pattern = re.compile("|".join({re.escape(MASK), re.escape(mask_name(tokenizer))}))
    room = model.config.longest_sequence
    for number, (text, where) in enumerate(zip(texts, places(texts), strict=True)):
        found = [match.span() for match in pattern.finditer(text_of(text, where))]
        if not found:
            raise InputError(f"{where} has no {MASK}; put one where the word is to be filled in")
        ids = _masked_ids(text, found, tokenizer)
        if len(ids) + sequences.extra > room:
            raise _too_long(where, len(ids) + sequences.extra, room)
        sequences.add(number, NO_LABEL, ids)
        spots.append(found)
    batch = sequences.batch()
    positions = np.flatnonzero(batch.ids == tokenizer.special.mask)
    batch = replace(batch, positions=positions, targets=np.full(len(positions), NO_LABEL, np.int32))

    def finish(outputs: Sequence[Any], depths: IntArray) -> list[MaskPrediction]:
        return [
            MaskPrediction(
                tuple(_masked(tokenizer, *one) for one in zip(spans, *out, strict=True)), int(depth)
            )
            for spans, out, depth in zip(spots, outputs, depths, strict=True)
        ]

    return Job(batch, _Masked(top), depth, None, finish)


def mask_name(tokenizer: Tokenizer) -> str:
    """What the tokenizer calls its mask: [MASK], <mask>."""
    return tokenizer.tokens[tokenizer.special.mask]


def _masked_ids(text: str, spans: Sequence[tuple[int, int]], tokenizer: Tokenizer) -> Ids:
    """The ids of a text around its masks; the space before a mask belongs to it."""
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    between = [text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]
    parts = encode_all(tokenizer, [part.rstrip() for part in between])
    mask = np.array([tokenizer.special.mask])
    return np.concatenate([part for ids in parts for part in (ids, mask)][:-1])


def _masked(
    tokenizer: Tokenizer, span: tuple[int, int], chances: NDArray[np.float32], ids: IntArray
) -> MaskedToken:
    candidates = tuple(
        TokenCandidate(tokenizer.tokens[id], tokenizer.decode([id]).strip(), float(chance))
        for id, chance in zip(ids.tolist(), chances.tolist(), strict=True)
    )
    return MaskedToken(*span, candidates)


# ------------------------------------------------------------------------ which comes first


@dataclass(frozen=True)
class _Order:
    def reads(self, batch: Batch) -> IntArray:
        return batch.starts

    def outputs(
        self, model: Model, state: State, inputs: Inputs, depth: int | None = None
    ) -> list[NDArray[np.float32]]:
        logits = model.head("sentence_pair")(state)
        return list(logits.softmax(-1).cpu().numpy())


def order_job(
    model: Model, tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]], depth: int
) -> Job:
    """Whether the first of two texts comes first: sentence order, as ALBERT learned it."""
    model.head("sentence_pair")
    sequences, room = Sequences(tokenizer), model.config.longest_sequence
    encoded = encode_all(tokenizer, [text for pair in pairs for text in pair])
    for number, where in enumerate(places(pairs)):
        first, second = encoded[2 * number : 2 * number + 2]
        tokens = len(first) + len(second) + sequences.extra_of_pair
        if tokens > room:
            raise _too_long(where, tokens, room)
        sequences.add(number, NO_LABEL, first, second)

    def finish(outputs: Sequence[Any], depths: IntArray) -> list[OrderPrediction]:
        chances = (float(output[IN_ORDER]) for output in outputs)
        return [
            OrderPrediction(chance >= 0.5, chance, int(depth))
            for chance, depth in zip(chances, depths, strict=True)
        ]

    return Job(sequences.batch(), _Order(), depth, None, finish)

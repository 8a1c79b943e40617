"""Embedding tables: what a token, a position and a segment are, each in columns of their own.

| columns                | hold                                                     |
|------------------------|----------------------------------------------------------|
| `tokens` first ones    | word vectors (word_vectors.py), centred and of one length |
| the next one           | the segment: minus for A, plus for B                     |
| `2 * waves` last ones  | the position: a sine and a cosine of each wave            |

So a head that is to look at a place, or at a segment, is not distracted by the words there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from litebert.base.ragged import IntArray
from litebert.model.model import Model
from litebert.objectives.sentence_vectors import principal_components

ROW_LENGTH = 1.2  # of the token and position tables: 0.15 a number at E = 64, 0.11 at 128
SEGMENT_LENGTH = 0.6
WHOLE_LENGTH = (2 * ROW_LENGTH**2 + SEGMENT_LENGTH**2) ** 0.5  # of the three together
FASTEST = 3.0  # wave, in radians a place: just short of one that only tells odd from even
SPREAD = 2.3  # no whole number: all waves would come round together
FREQUENT = 1e-3  # of the text: a token that often weighs half of a rare one
LONGEST = 3.0  # rows of rare tokens, in lengths of the others'
SMALLEST = 8  # columns that a table must have


@dataclass(frozen=True)
class EmbeddingColumns:
    """What the columns of tables of a size are for."""

    size: int

    @property
    def waves(self) -> int:
        """A quarter of the columns is for positions."""
        return self.size // 8

    @property
    def tokens(self) -> int:
        """What is left; also the number of the segment's column."""
        return self.size - 2 * self.waves - 2

    @property
    def segment(self) -> int:
        """The column that tells segments apart."""
        return self.tokens

    @property
    def order(self) -> int:
        """The column that tells in which of two segments a token stands rather."""
        return self.tokens + 1

    @property
    def sines(self) -> slice:
        """A column a wave."""
        return slice(self.tokens + 2, None, 2)

    @property
    def cosines(self) -> slice:
        """The columns beside."""
        return slice(self.tokens + 3, None, 2)

    @property
    def frequencies(self) -> Tensor:
        """Of the waves, in radians a place; denser where slow, so that far places differ too."""
        return FASTEST * (torch.arange(1, self.waves + 1) / self.waves) ** SPREAD

    @property
    def reach(self) -> float:
        """How long a row of length 1 is after the norm, which makes the whole sqrt(size) long."""
        return self.size**0.5 / WHOLE_LENGTH


def initialize_tables(tables: Any, rows_VC: Tensor) -> None:
    """Word vectors for the tokens that occur, waves for the positions, opposite segments."""
    columns = EmbeddingColumns(tables.token.weight.shape[1])
    known = occurring(rows_VC)
    tables.token.weight[known] = 0.0
    tables.token.weight[known, : columns.tokens] = rows_VC[known].to(tables.token.weight)
    tables.position.weight.copy_(_waves(len(tables.position.weight), columns))
    if len(tables.segment.weight) > 1:
        tables.segment.weight.zero_()
        tables.segment.weight[:2, columns.segment] = torch.tensor([-SEGMENT_LENGTH, SEGMENT_LENGTH])


def equally_long(vectors_VC: Tensor) -> Tensor:
    """Rows for the token table: frequent tokens have short vectors that point the same way.

    Centred and all of one length they can be told apart.
    """
    known = occurring(vectors_VC)
    rows = torch.zeros_like(vectors_VC)
    rows[known] = nn.functional.normalize(vectors_VC[known] - vectors_VC[known].mean(0))
    return rows * ROW_LENGTH


def shorter_where_frequent(vectors_VC: Tensor, counts: IntArray) -> Tensor:
    """Rows for the token table of a student of sentence vectors, which are means of tokens.

    A mean says more where frequent tokens weigh less in it (a / (a + frequency): Arora et al. 2017,
    "A Simple but Tough-to-Beat Baseline"). Position and segment fill up what a short row leaves of
    the norm. The length that tokens of text have in the mean is that of the others' rows.
    """
    rows = equally_long(vectors_VC)
    frequencies = torch.from_numpy(counts / max(counts.sum(), 1)).to(rows)[: len(rows)]
    weights = FREQUENT / (FREQUENT + frequencies)
    return rows * (weights / (weights * frequencies).sum()).clamp(max=LONGEST)[:, None]


def occurring(vectors_VC: Tensor) -> Tensor:
    """The tokens that have a vector."""
    return vectors_VC.abs().sum(1).nonzero().squeeze(1)


@torch.no_grad()
def initialize_from_table(model: Model, table: Tensor) -> None:
    """A teacher's token table as the paper's initialization would size its values."""
    rows = model.encoder.embeddings.token.weight
    values = squeezed(table, rows.shape[1])
    rows[: len(values)] = values / values.std() * model.config.initializer_range


def squeezed(table_VH: Tensor, size: int) -> Tensor:
    """A table in `size` columns: its principal components, or with columns of zeros behind."""
    centred = table_VH - table_VH.mean(0)
    if size >= table_VH.shape[1]:
        return nn.functional.pad(centred, (0, size - table_VH.shape[1]))
    return centred @ principal_components(centred, size)


def _waves(places: int, columns: EmbeddingColumns) -> Tensor:
    """The position table (places, E)."""
    angles = torch.arange(places)[:, None] * columns.frequencies
    table = torch.zeros(places, columns.size)
    table[:, columns.sines], table[:, columns.cosines] = angles.sin(), angles.cos()
    return table * (ROW_LENGTH / columns.waves**0.5)

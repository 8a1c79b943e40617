"""Heads: what turns encoded tokens into an answer.

Pretraining: masked language, sentence pair (order or next), replaced token, span boundary.
Tasks: classification (regression with one label) from [CLS], from the mean of the tokens, or from
two texts read apart; token classification, span (SQuAD 1.1), conditional span (SQuAD 2.0, XLNet's),
multiple choice.

Shapes: M chosen tokens, B sequences, T tokens, H hidden, E embedding, V vocabulary, K beams.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from litebert.model.config import EncoderConfig
from litebert.model.lean import activate

SPAN_POSITION_SIZE = 200  # SpanBERT's width of the position within the span
LONGEST_SPAN = 20  # rows of that table; the objective asks for the first 15
NEVER = -1e30


class Pooler(nn.Module):
    """One vector a sequence: a dense layer over [CLS]."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.activation = config.pooler_activation
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, first_BH: Tensor) -> Tensor:
        x = self.dense(first_BH)
        return torch.tanh(x) if self.activation == "tanh" else F.gelu(x)


class MaskedLanguageHead(nn.Module):
    """H -> E, activation, LayerNorm; the decoder is the token table, with a bias of its own."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.activation = config.masked_language_activation
        self.dense = nn.Linear(config.hidden_size, config.embedding_size)
        self.norm = nn.LayerNorm(config.embedding_size, config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, x_MH: Tensor) -> Tensor:
        """The transformed tokens, ready for the token table."""
        return self.norm(activate(self.dense(x_MH), self.activation))


class SentencePairHead(nn.Module):
    """Two classes over the pooled vector: 0 in order (or next), 1 swapped (or random)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, 2)

    def forward(self, pooled_BH: Tensor) -> Tensor:
        return self.dense(pooled_BH)


class ReplacedTokenHead(nn.Module):
    """ELECTRA's discriminator: one logit a token, high where the token was replaced."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.activation = config.hidden_act
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, 1)

    def forward(self, x_NH: Tensor) -> Tensor:
        return self.output(activate(self.dense(x_NH), self.activation)).squeeze(-1)


class SpanBoundaryHead(nn.Module):
    """SpanBERT: a masked token from the tokens outside its span and its place within it.

    y = f(x_(s-1), x_(e+1), p_(i-s+1)) with f two dense layers, each GELU (erf) and LayerNorm.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.position = nn.Embedding(LONGEST_SPAN, SPAN_POSITION_SIZE)
        self.first = nn.Linear(2 * width + SPAN_POSITION_SIZE, width)
        self.first_norm = nn.LayerNorm(width, 1e-12)
        self.second = nn.Linear(width, config.embedding_size)
        self.second_norm = nn.LayerNorm(config.embedding_size, 1e-12)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, left_MH: Tensor, right_MH: Tensor, place_M: Tensor) -> Tensor:
        """The transformed tokens, ready for the token table."""
        x = torch.cat([left_MH, right_MH, self.position(place_M)], -1)
        x = self.first_norm(F.gelu(self.first(x)))
        return self.second_norm(F.gelu(self.second(x)))


class LinearHead(nn.Module):
    """Dropout and one dense layer: classification, tagging, spans and choices alike."""

    def __init__(self, config: EncoderConfig, outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.dense = nn.Linear(config.hidden_size, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.dense(F.dropout(x, self.dropout, self.training))


class ApartHead(nn.Module):
    """Two texts that were read apart: u, v, |u - v| and u * v side by side, and a dense layer."""

    def __init__(self, config: EncoderConfig, outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.dense = nn.Linear(4 * config.hidden_size, outputs)

    def forward(self, x_BH: Tensor) -> Tensor:
        """Sequences in pairs, (B, H), to (B / 2, outputs)."""
        u, v = x_BH.unflatten(0, (-1, 2)).unbind(1)
        features = torch.cat([u, v, (u - v).abs(), u * v], -1)
        return self.dense(F.dropout(features, self.dropout, self.training))


class ConditionalSpan(NamedTuple):
    """SQuAD 2.0's answer: starts, ends given a start, and whether there is no answer."""

    start_BT: Tensor
    end: Tensor  # (B, T) given the true start, (B, K, T) for the K best starts
    best_starts_BK: Tensor | None
    unanswerable_B: Tensor


class ConditionalSpanHead(nn.Module):
    """SQuAD 2.0 as ALBERT does it, after XLNet: the end is conditioned on the start."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.dropout = config.classifier_dropout_prob
        self.start = nn.Linear(width, 1)
        self.end_hidden = nn.Linear(2 * width, width)
        self.end_norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.end = nn.Linear(width, 1)
        self.answerable_hidden = nn.Linear(2 * width, width)
        self.answerable = nn.Linear(width, 1, bias=False)

    def forward(
        self, x_BTH: Tensor, allowed_BT: Tensor, start_B: Tensor | None = None, beams: int = 5
    ) -> ConditionalSpan:
        """`allowed_BT`: tokens an answer may touch. With the true `start_B`, as in training."""
        start_BT = self.start(x_BTH).squeeze(-1).masked_fill(~allowed_BT, NEVER)
        probability_BT = start_BT.softmax(-1)
        if start_B is None:
            best = probability_BT.topk(min(beams, x_BTH.shape[1]), -1).indices
            end = self._end(x_BTH[:, None], self._tokens(x_BTH, best)[:, :, None])
            end = end.masked_fill(~allowed_BT[:, None], NEVER)
        else:
            best = None
            end = self._end(x_BTH, self._tokens(x_BTH, start_B[:, None]))
            end = end.masked_fill(~allowed_BT, NEVER)
        summary_BH = torch.einsum("bt,bth->bh", probability_BT, x_BTH)
        hidden = torch.tanh(self.answerable_hidden(torch.cat([summary_BH, x_BTH[:, 0]], -1)))
        hidden = F.dropout(hidden, self.dropout, self.training)
        return ConditionalSpan(start_BT, end, best, self.answerable(hidden).squeeze(-1))

    def _end(self, tokens: Tensor, start: Tensor) -> Tensor:
        tokens, start = torch.broadcast_tensors(tokens, start)
        hidden = torch.tanh(self.end_hidden(torch.cat([tokens, start], -1)))
        return self.end(self.end_norm(hidden)).squeeze(-1)

    @staticmethod
    def _tokens(x_BTH: Tensor, index_BK: Tensor) -> Tensor:
        return x_BTH.gather(1, index_BK[..., None].expand(-1, -1, x_BTH.shape[-1]))

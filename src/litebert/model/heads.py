"""Heads: what turns encoded tokens into an answer. A head takes the encoder's state.

    model.head("masked_lm")(state, positions)       vocabulary logits
    model.head("sentence_pair")(state)              two classes: order, or next sentence
    model.head("classification")(state)             labels from the pooled [CLS]

Pretraining: masked LM, sentence pair, replaced token, span boundary. Tasks: classification (one
label is a regression) from [CLS], from the mean of the tokens or of a bi-encoder's two texts; token
classification, span (SQuAD 1.1), conditional span (SQuAD 2.0, XLNet's), multiple choice; and exits,
heads like these at the depths before the last. A new head is a class here and a row in `HEADS`.

Shapes: B sequences of T tokens, N tokens, M chosen ones, H hidden, E embedding, V vocabulary,
K beams.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from litebert.base.runtime import without_autocast
from litebert.model.config import EncoderConfig
from litebert.model.dropout import dropout
from litebert.model.efficient import activate, sampled_vocabulary_loss, vocabulary_loss
from litebert.model.layout import State

SPAN_POSITION_SIZE = 200  # SpanBERT's width of the position within the span
MAX_SPAN_LENGTH = 20  # rows of that table; the objective predicts the first 15
MASKED_FRACTION = 0.15  # of tokens, where FLOPs are estimated
NEVER = -1e30
EXITS = "_exits"  # what the name of a head's exits ends with


class Pooler(nn.Module):
    """One vector a sequence: a dense layer over [CLS]."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.activation = config.pooler_activation
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, state: State) -> Tensor:
        x = self.dense(state.first())
        return torch.tanh(x) if self.activation == "tanh" else F.gelu(x)


class Head(nn.Module):
    """The base of all heads. What a head borrows from its model it is shown by `attach`."""

    needs_pooler = False
    needs_token_table = False  # as its decoder

    def attach(self, token_table: nn.Embedding, pooler: Pooler | None) -> None:
        """Borrow the token table (tied decoders) or the pooler; in a tuple, so not registered."""
        self._borrowed = (token_table, pooler)

    @property
    def token_table(self) -> Tensor:
        return self._borrowed[0].weight

    def pooled(self, state: State) -> Tensor:
        pooler = self._borrowed[1]
        assert pooler is not None, "a model gives its pooler to the heads that need one"
        return pooler(state)

    @classmethod
    def flops_per_token(cls, config: EncoderConfig, max_length: int) -> float:
        """Forward FLOPs of matrix products, spread over the tokens of a sequence."""
        return 0.0


class MaskedLMHead(Head):
    """H -> E, activation, LayerNorm; the decoder is the token table, with a bias of its own."""

    needs_token_table = True

    def __init__(self, config: EncoderConfig, labels: int = 0) -> None:
        super().__init__()
        self.activation = config.masked_lm_activation
        self.dense = nn.Linear(config.hidden_size, config.embedding_size)
        self.norm = nn.LayerNorm(config.embedding_size, config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, state: State, positions: Tensor | None = None) -> Tensor:
        """Vocabulary logits at the given flat positions (M, V); at all tokens without."""
        return F.linear(self._transform(state, positions), self.token_table, self.bias)

    def loss(self, state: State, positions: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Summed loss at the masked positions, and the number of correct predictions."""
        x_ME = self._transform(state, positions)
        return vocabulary_loss(x_ME, self.token_table, self.bias, targets)

    def sampled_loss(
        self, state: State, positions: Tensor, targets: Tensor, uniform_M: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same, with a token sampled at each position by a number in [0, 1): ELECTRA's."""
        x_ME = self._transform(state, positions)
        return sampled_vocabulary_loss(x_ME, self.token_table, self.bias, targets, uniform_M)

    def _transform(self, state: State, positions: Tensor | None) -> Tensor:
        return self.norm(activate(self.dense(state.at(positions)), self.activation))

    @classmethod
    def flops_per_token(cls, config: EncoderConfig, max_length: int) -> float:
        width, embedding = config.hidden_size, config.embedding_size
        return MASKED_FRACTION * 2 * embedding * (width + config.vocab_size)


class SentencePairHead(Head):
    """Two classes over the pooled vector: 0 in order (or next), 1 swapped (or random)."""

    needs_pooler = True

    def __init__(self, config: EncoderConfig, labels: int = 0) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, 2)

    def forward(self, state: State) -> Tensor:
        return self.dense(self.pooled(state))

    @classmethod
    def flops_per_token(cls, config: EncoderConfig, max_length: int) -> float:
        return (2 * config.hidden_size**2 + 4 * config.hidden_size) / max_length


class ReplacedTokenHead(Head):
    """ELECTRA's discriminator: one logit a token, high where the token was replaced."""

    def __init__(self, config: EncoderConfig, labels: int = 0) -> None:
        super().__init__()
        self.activation = config.hidden_act
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, 1)

    def forward(self, state: State) -> Tensor:
        return self.output(activate(self.dense(state.x_NH), self.activation)).squeeze(-1)

    @classmethod
    def flops_per_token(cls, config: EncoderConfig, max_length: int) -> float:
        return 2 * config.hidden_size**2 + 2 * config.hidden_size


class SpanBoundaryHead(Head):
    """SpanBERT: a masked token from the tokens outside its span and its place within it.

    y = f(x_(s-1), x_(e+1), p_(i-s+1)) with f two dense layers, each GELU (erf) and LayerNorm.
    """

    needs_token_table = True

    def __init__(self, config: EncoderConfig, labels: int = 0) -> None:
        super().__init__()
        width = config.hidden_size
        self.position = nn.Embedding(MAX_SPAN_LENGTH, SPAN_POSITION_SIZE)
        self.first = nn.Linear(2 * width + SPAN_POSITION_SIZE, width)
        self.first_norm = nn.LayerNorm(width, 1e-12)
        self.second = nn.Linear(width, config.embedding_size)
        self.second_norm = nn.LayerNorm(config.embedding_size, 1e-12)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, state: State, left: Tensor, right: Tensor, place: Tensor) -> Tensor:
        """Logits of masked tokens (M, V) from flat boundary positions and places in the span."""
        return F.linear(self._transform(state, left, right, place), self.token_table, self.bias)

    def loss(
        self, state: State, left: Tensor, right: Tensor, place: Tensor, targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Summed loss and the number of correct predictions."""
        x_ME = self._transform(state, left, right, place)
        return vocabulary_loss(x_ME, self.token_table, self.bias, targets)

    def _transform(self, state: State, left: Tensor, right: Tensor, place: Tensor) -> Tensor:
        x = torch.cat([state.at(left), state.at(right), self.position(place)], -1)
        x = self.first_norm(F.gelu(self.first(x)))
        return self.second_norm(F.gelu(self.second(x)))

    @classmethod
    def flops_per_token(cls, config: EncoderConfig, max_length: int) -> float:
        width, embedding = config.hidden_size, config.embedding_size
        first = 2 * (2 * width + SPAN_POSITION_SIZE) * width
        return MASKED_FRACTION * (first + 2 * embedding * (width + config.vocab_size))


class TokenClassificationHead(Head):
    """Dropout and one dense layer over what `features` gives: here every token."""

    def __init__(
        self, config: EncoderConfig, outputs: int, *, dropout: float | None = None, inputs: int = 1
    ) -> None:
        super().__init__()
        self.dropout = config.classifier_dropout_prob if dropout is None else dropout
        self.dense = nn.Linear(inputs * config.hidden_size, outputs)

    def forward(self, state: State) -> Tensor:
        x = dropout(self.features(state), self.dropout if self.training else 0.0)
        with without_autocast(x.device):  # bf16 would tell 1,900 from 1,908 at best
            return self.dense(x.to(self.dense.weight.dtype))

    def features(self, state: State) -> Tensor:
        return state.x_NH


class ClassificationHead(TokenClassificationHead):
    """Label logits (B, labels) from the pooled [CLS]; one column is a regression."""

    needs_pooler = True

    def features(self, state: State) -> Tensor:
        return self.pooled(state)


class MeanClassificationHead(TokenClassificationHead):
    """Label logits (B, labels) from the mean of a sequence's tokens; a head of our own."""

    def features(self, state: State) -> Tensor:
        return state.mean()


class BiEncoderHead(TokenClassificationHead):
    """Label logits (B / 2, labels) of two texts encoded apart: u, v, |u - v|, u * v; our own."""

    def __init__(self, config: EncoderConfig, outputs: int) -> None:
        super().__init__(config, outputs, inputs=4)

    def features(self, state: State) -> Tensor:
        u, v = state.mean().unflatten(0, (-1, 2)).unbind(1)
        return torch.cat([u, v, (u - v).abs(), u * v], -1)


class MultipleChoiceHead(ClassificationHead):
    """One logit a sequence, (B,): a question with one of its options."""

    def __init__(self, config: EncoderConfig, labels: int = 0) -> None:
        super().__init__(config, 1)

    def forward(self, state: State) -> Tensor:
        return super().forward(state).squeeze(-1)


class SpanHead(TokenClassificationHead):
    """SQuAD 1.1: start and end logits a token, (N, 2)."""

    def __init__(self, config: EncoderConfig, labels: int = 0) -> None:
        super().__init__(config, 2, dropout=0.0)


class ConditionalSpan(NamedTuple):
    """SQuAD 2.0's answer: starts, ends given a start, and whether there is no answer."""

    start_BT: Tensor
    end: Tensor  # (B, T) given the true start, (B, K, T) for the K best starts
    best_starts_BK: Tensor | None
    unanswerable_B: Tensor


class ConditionalSpanHead(Head):
    """SQuAD 2.0 as ALBERT does it, after XLNet: the end is conditioned on the start."""

    def __init__(self, config: EncoderConfig, labels: int = 0) -> None:
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
        self, state: State, allowed_BT: Tensor, start_B: Tensor | None = None, beams: int = 5
    ) -> ConditionalSpan:
        """`allowed_BT`: tokens an answer may touch. With the true `start_B`, as in training."""
        x_BTH, real_BT = state.padded()
        allowed_BT = allowed_BT & real_BT
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
        hidden = dropout(hidden, self.dropout if self.training else 0.0)
        return ConditionalSpan(start_BT, end, best, self.answerable(hidden).squeeze(-1))

    def _end(self, tokens: Tensor, start: Tensor) -> Tensor:
        tokens, start = torch.broadcast_tensors(tokens, start)
        hidden = torch.tanh(self.end_hidden(torch.cat([tokens, start], -1)))
        return self.end(self.end_norm(hidden)).squeeze(-1)

    @staticmethod
    def _tokens(x_BTH: Tensor, index_BK: Tensor) -> Tensor:
        return x_BTH.gather(1, index_BK[..., None].expand(-1, -1, x_BTH.shape[-1]))


class Exits(Head):
    """A head like the one at the end for every depth before it, to leave by (PABEE)."""

    like: ClassVar[type[TokenClassificationHead]]

    def __init__(self, config: EncoderConfig, outputs: int) -> None:
        super().__init__()
        depths = range(1, config.num_hidden_layers)
        self.depths = nn.ModuleList(self.like(config, outputs) for _ in depths)

    def attach(self, token_table: nn.Embedding, pooler: Pooler | None) -> None:
        for head in self.depths:
            cast(Head, head).attach(token_table, pooler)

    def forward(self, state: State, depth: int) -> Tensor:
        return self.at(depth)(state)

    def at(self, depth: int) -> nn.Module:
        """The head for states of this depth, counted from 1."""
        return self.depths[depth - 1]


class TokenExits(Exits):
    """Of `token_classification`."""

    like = TokenClassificationHead


class ClassificationExits(Exits):
    """Of `classification`; all depths have one pooler."""

    like, needs_pooler = ClassificationHead, True


class MeanExits(Exits):
    """Of `mean_classification`."""

    like = MeanClassificationHead


class BiEncoderExits(Exits):
    """Of `bi_encoder_classification`."""

    like = BiEncoderHead


# name -> class, built with the configuration and the number of labels
HEADS: dict[str, type[Head]] = {
    "masked_lm": MaskedLMHead,
    "sentence_pair": SentencePairHead,
    "replaced_token": ReplacedTokenHead,
    "span_boundary": SpanBoundaryHead,
    "classification": ClassificationHead,
    "mean_classification": MeanClassificationHead,
    "bi_encoder_classification": BiEncoderHead,
    "token_classification": TokenClassificationHead,
    "multiple_choice": MultipleChoiceHead,
    "span": SpanHead,
    "conditional_span": ConditionalSpanHead,
    "classification_exits": ClassificationExits,
    "mean_classification_exits": MeanExits,
    "bi_encoder_classification_exits": BiEncoderExits,
    "token_classification_exits": TokenExits,
}

"""One transformer block, post-norm as in the paper: attention, then feed-forward.

    u  = LayerNorm(x + Dropout(Attention(x)))
    x' = LayerNorm(u + Dropout(FeedForward(u)))

Attention and feed-forward are separate modules, each with the layer norm that follows it, because
the paper shares them separately (Table 4). Query, key and value are one matrix product; optimizers
that treat tensors one by one (LAMB) see three through `query_key_value.weight.chunk(3)`.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from litebert.model.config import EncoderConfig
from litebert.model.dropout import dropout as drop
from litebert.model.efficient import norm_feed_forward
from litebert.model.layout import Layout


class Attention(nn.Module):
    """Multi-head self-attention with its output projection and the layer norm after it."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads = config.num_attention_heads
        self.dropout = config.attention_probs_dropout_prob
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, config.layer_norm_eps)

    def forward(
        self, x_NH: Tensor, layout: Layout, read_R: Tensor | None, asking_RH: Tensor
    ) -> Tensor:
        """What tokens see. `asking_RH` are those at `read_R`, or all: only they have queries."""
        width = self.output.in_features
        if read_R is None:
            projected = [self.query_key_value(x_NH)]
        else:
            weight, bias = self.query_key_value.weight, self.query_key_value.bias
            projected = [
                F.linear(asking_RH, weight[:width], bias[:width]),
                F.linear(x_NH, weight[width:], bias[width:]),
            ]
        by_head = [x.unflatten(-1, (-1, self.heads, width // self.heads)) for x in projected]
        dropout = self.dropout if self.training else 0.0
        return self.output(layout.attend(by_head, dropout, read_R))


class FeedForward(nn.Module):
    """Two dense layers with an activation between them, and the layer norm after them."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.activation = config.hidden_act
        self.inner = nn.Linear(config.hidden_size, config.intermediate_size)
        self.outer = nn.Linear(config.intermediate_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)

    def forward(self, x_NH: Tensor, norm: nn.LayerNorm, dropout: float) -> Tensor:
        """u + Dropout(feed-forward of u), where u = norm(x): see `efficient.py` for why in one."""
        return norm_feed_forward(x_NH, norm, self.inner, self.outer, self.activation, dropout)


def block(
    x_NH: Tensor, attention: Attention, feed_forward: FeedForward, layout: Layout, dropout: float,
    read_R: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """One application of one block to flat tokens.

    With `read_R`, the tokens that are read afterwards: only they are computed, as all others only
    matter to attention; their places hold zeros.
    """
    residual = x_NH if read_R is None else x_NH.index_select(0, read_R)
    attended = drop(attention(x_NH, layout, read_R, residual), dropout).add_(residual)
    result = feed_forward.norm(feed_forward(attended, attention.norm, dropout))
    return result if read_R is None else result.new_zeros(x_NH.shape).index_copy(0, read_R, result)

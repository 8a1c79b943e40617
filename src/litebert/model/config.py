"""What an encoder is, in numbers: one class for the whole family.

ALBERT, BERT, RoBERTa, ELECTRA and SpanBERT (a BERT) differ only in these fields. Names are those of
Google's and Hugging Face's configuration files, so that a student finds them again. The two dials
of the ALBERT paper are `embedding_size` (section 3.1, factorised embeddings) and `sharing` (section
3.1, cross-layer parameter sharing; Table 4).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from litebert.base.settings import Settings

Family = Literal["albert", "bert", "roberta", "electra"]
Sharing = Literal["all", "attention", "ffn", "none"]
Activation = Literal["gelu", "gelu_new", "relu"]

SHARES_ATTENTION = ("all", "attention")
SHARES_FFN = ("all", "ffn")

# Bounds far beyond use: past them, sizes overflow before memory runs out.
Size = Annotated[int, Field(ge=1, le=2**27)]
Count = Annotated[int, Field(ge=1, le=10_000)]
MOST_BLOCKS = 10_000  # run one after another
MOST_PARTS = 1_000  # attention or feed-forward parts with weights of their own


class EncoderConfig(Settings):
    """The shape of one encoder."""

    family: Family = Field(default="albert", description="whose layout the model folder has")
    vocab_size: Size = Field(default=30000, description="V, rows of the token table")
    embedding_size: Size = Field(default=128, description="E, width of the embedding tables")
    hidden_size: Size = Field(default=768, description="H, width of the layers")
    num_hidden_layers: Count = Field(default=12, description="L, depth")
    num_attention_heads: Count = Field(default=12, description="heads; H must be a multiple")
    intermediate_size: Size = Field(default=3072, description="width inside the feed-forward part")
    sharing: Sharing = Field(default="all", description="what the layers share (paper, Table 4)")
    num_hidden_groups: Count = Field(default=1, description="G, groups of layers that share")
    inner_group_num: Count = Field(default=1, description="blocks run in sequence within one layer")
    max_position_embeddings: Size = Field(default=512, description="rows of the position table")
    type_vocab_size: Size = Field(default=2, description="rows of the segment table")
    hidden_act: Activation = Field(default="gelu_new", description="gelu_new is Google's tanh form")
    hidden_dropout_prob: float = Field(default=0.0, ge=0, lt=1)
    attention_probs_dropout_prob: float = Field(default=0.0, ge=0, lt=1)
    classifier_dropout_prob: float = Field(default=0.1, ge=0, lt=1)
    layer_norm_eps: float = Field(default=1e-12, gt=0)
    initializer_range: float = Field(default=0.02, gt=0, description="std of the truncated normal")
    pad_token_id: int = Field(default=0, ge=0)
    projection: bool | None = Field(
        default=None, description="the E->H map; by default there is one only where E and H differ"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads "
                f"{self.num_attention_heads}"
            )
        self._fits_its_family()
        self._is_bounded()
        if self.num_hidden_groups > self.num_hidden_layers:
            raise ValueError(
                f"num_hidden_groups {self.num_hidden_groups} exceeds num_hidden_layers "
                f"{self.num_hidden_layers}"
            )
        if self.embedding_size != self.hidden_size and self.projection is False:
            raise ValueError("projection cannot be off where embedding_size and hidden_size differ")
        if self.pad_token_id >= self.vocab_size:
            raise ValueError(
                f"pad_token_id {self.pad_token_id} is outside vocab_size {self.vocab_size}"
            )
        if self.first_position >= self.max_position_embeddings:
            raise ValueError(
                f"max_position_embeddings {self.max_position_embeddings} leaves no room: RoBERTa's "
                f"positions start at pad_token_id + 1 = {self.first_position}"
            )
        return self

    def _fits_its_family(self) -> None:
        # ELECTRA's generator has the discriminator's embeddings, so its E may exceed its H.
        if self.embedding_size > self.hidden_size and self.family != "electra":
            raise ValueError(
                f"embedding_size {self.embedding_size} is larger than hidden_size "
                f"{self.hidden_size}; factorised embeddings need E <= H"
            )
        if self.family in ("bert", "roberta") and self.embedding_size != self.hidden_size:
            raise ValueError(
                f"family {self.family!r} has no factorised embeddings: embedding_size "
                f"{self.embedding_size} must equal hidden_size {self.hidden_size}, "
                "or choose family 'albert'"
            )
        if self.family != "albert" and (self.sharing != "none" or self.inner_group_num > 1):
            raise ValueError(
                f"family {self.family!r} has no shared layers: set sharing to 'none' and "
                "inner_group_num to 1, or choose family 'albert'"
            )

    def _is_bounded(self) -> None:
        """Parts are modules of Python: thousands of them take minutes before memory runs out."""
        blocks = self.num_hidden_layers * self.inner_group_num
        parts = self.inner_group_num * max(self.attention_groups, self.ffn_groups)
        if blocks > MOST_BLOCKS or parts > MOST_PARTS:
            raise ValueError(
                f"num_hidden_layers {self.num_hidden_layers} with inner_group_num "
                f"{self.inner_group_num} and sharing {self.sharing!r} makes {blocks:,} blocks, "
                f"{parts:,} of them with weights of their own; at most {MOST_BLOCKS:,} and "
                f"{MOST_PARTS:,} are possible"
            )

    @property
    def has_projection(self) -> bool:
        """Whether embeddings pass an E->H map. Google's code has one only if E != H."""
        return (
            self.embedding_size != self.hidden_size if self.projection is None else self.projection
        )

    @property
    def head_size(self) -> int:
        """d, the width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def first_position(self) -> int:
        """RoBERTa numbers real tokens from pad_token_id + 1; the others from 0."""
        return self.pad_token_id + 1 if self.family == "roberta" else 0

    @property
    def longest_sequence(self) -> int:
        """How many tokens a sequence may have."""
        return self.max_position_embeddings - self.first_position

    @property
    def has_pooler(self) -> bool:
        """ELECTRA has no pooler of its own; its classifiers bring one."""
        return self.family != "electra"

    @property
    def pooler_activation(self) -> Literal["tanh", "gelu"]:
        """ELECTRA's classifiers use GELU where the others use tanh."""
        return "gelu" if self.family == "electra" else "tanh"

    @property
    def masked_lm_activation(self) -> Activation:
        """Hugging Face fixes the erf GELU in RoBERTa's and ELECTRA's masked-language heads."""
        return "gelu" if self.family in ("roberta", "electra") else self.hidden_act

    @property
    def attention_groups(self) -> int:
        """How many groups of layers have an attention part of their own."""
        shared = self.sharing in SHARES_ATTENTION
        return self.num_hidden_groups if shared else self.num_hidden_layers

    @property
    def ffn_groups(self) -> int:
        """How many groups of layers have a feed-forward part of their own."""
        return self.num_hidden_groups if self.sharing in SHARES_FFN else self.num_hidden_layers

    @property
    def depth_is_free(self) -> bool:
        """With one group for everything, any number of layers can be run."""
        return self.attention_groups == self.ffn_groups == 1


def group_of_layer(layer: int, groups: int, layers: int) -> int:
    """Google's rule, in integers: the float form int(l / L * G) errs, e.g. at L = G = 22."""
    return layer * groups // layers

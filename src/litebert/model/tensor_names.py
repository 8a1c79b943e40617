"""Name tables: our tensors <-> Hugging Face's, one table read in both directions.

A row says which of our tensors, which third of it (query, key and value are one tensor here and
three there), and the name over there. A tensor that our layers share has a row for every layer
that Hugging Face's `albert` layout repeats it in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from litebert.model.config import EncoderConfig, group_of_layer


class TensorRow(NamedTuple):
    """One tensor over there, and what it is here."""

    ours: str
    third: int | None
    theirs: str


class Architecture(NamedTuple):
    """A class of `transformers`: the heads it has, and what it calls the pooler, if it has one."""

    name: str
    heads: tuple[str, ...]
    pooler: str | None


_DENSE = ("weight", "bias")
_Table = Mapping[tuple[str, int | None], str]

# Blocks: our module, the third of its output, and the module over there.
_ALBERT_ATTENTION: _Table = {
    ("query_key_value", 0): "attention.query",
    ("query_key_value", 1): "attention.key",
    ("query_key_value", 2): "attention.value",
    ("output", None): "attention.dense",
    ("norm", None): "attention.LayerNorm",
}
_ALBERT_FFN: _Table = {
    ("inner", None): "ffn",
    ("outer", None): "ffn_output",
    ("norm", None): "full_layer_layer_norm",
}
_BERT_ATTENTION: _Table = {
    ("query_key_value", 0): "attention.self.query",
    ("query_key_value", 1): "attention.self.key",
    ("query_key_value", 2): "attention.self.value",
    ("output", None): "attention.output.dense",
    ("norm", None): "attention.output.LayerNorm",
}
_BERT_FFN: _Table = {
    ("inner", None): "intermediate.dense",
    ("outer", None): "output.dense",
    ("norm", None): "output.LayerNorm",
}

_PROJECTION = {"albert": "encoder.embedding_hidden_mapping_in", "electra": "embeddings_project"}

# Heads: the modules of ours and theirs; ".bias" alone is the bias of the tied decoder.
_TASK_HEADS = {
    "classification": {"dense": "classifier"},
    "token_classification": {"dense": "classifier"},
    "multiple_choice": {"dense": "classifier"},
    "span": {"dense": "qa_outputs"},
}
_OUT_PROJECTION = {"classification": {"dense": "classifier.out_proj"}}
_HEADS: dict[str, dict[str, dict[str, str]]] = {
    "albert": {
        "masked_lm": {
            "dense": "predictions.dense", "norm": "predictions.LayerNorm", "": "predictions"
        },
        "sentence_pair": {"dense": "sop_classifier.classifier"},
        **_TASK_HEADS,
    },
    "bert": {
        "masked_lm": {
            "dense": "cls.predictions.transform.dense",
            "norm": "cls.predictions.transform.LayerNorm",
            "": "cls.predictions",
        },
        "sentence_pair": {"dense": "cls.seq_relationship"},
        **_TASK_HEADS,
    },
    "roberta": {
        "masked_lm": {"dense": "lm_head.dense", "norm": "lm_head.layer_norm", "": "lm_head"},
        **_TASK_HEADS,
        **_OUT_PROJECTION,
    },
    "electra": {
        "masked_lm": {
            "dense": "generator_predictions.dense",
            "norm": "generator_predictions.LayerNorm",
            "": "generator_lm_head",
        },
        "replaced_token": {
            "dense": "discriminator_predictions.dense",
            "output": "discriminator_predictions.dense_prediction",
        },
        **_TASK_HEADS,
        **_OUT_PROJECTION,
    },
}  # fmt: skip

# Our heads that another class of theirs would otherwise take the place of, newly initialized.
_CLASSIFIERS = ("classifier.weight", "classifier.out_proj.weight")
_REFUSED = {
    "mean_classification": _CLASSIFIERS,
    "bi_encoder_classification": _CLASSIFIERS,
    "conditional_span": ("qa_outputs.weight",),
}

# The decoder is the token table, and its bias the head's: repeated in some files, never needed.
_TIED = {
    "albert": ("predictions.decoder.weight", "predictions.decoder.bias"),
    "bert": ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias"),
    "roberta": ("lm_head.decoder.weight", "lm_head.decoder.bias"),
    "electra": ("generator_lm_head.weight", None),
}

_MLM, _PAIR = "masked_lm", "sentence_pair"
_TASKS = [("ForTokenClassification", "token_classification"), ("ForQuestionAnswering", "span")]


def _architectures(
    family: str, prefix: str, pooler: str, pretraining: list[tuple[str, tuple[str, ...], bool]]
) -> list[Architecture]:
    rows = [Architecture(prefix + n, heads, pooler if p else None) for n, heads, p in pretraining]
    rows += [Architecture(prefix + name, (head,), None) for name, head in _TASKS]
    in_classifier = "classifier.dense" if family in ("roberta", "electra") else pooler
    in_choice = "sequence_summary.summary" if family == "electra" else pooler
    own = None if family == "electra" else pooler
    return [
        *rows,
        Architecture(prefix + "ForSequenceClassification", ("classification",), in_classifier),
        Architecture(prefix + "ForMultipleChoice", ("multiple_choice",), in_choice),
        Architecture(prefix + "Model", (), own),
    ]


ARCHITECTURES: dict[str, list[Architecture]] = {
    "albert": _architectures(
        "albert", "Albert", "albert.pooler",
        [("ForPreTraining", (_MLM, _PAIR), True), ("ForMaskedLM", (_MLM,), False)],
    ),
    "bert": _architectures(
        "bert", "Bert", "bert.pooler.dense",
        [
            ("ForPreTraining", (_MLM, _PAIR), True),
            ("ForMaskedLM", (_MLM,), False),
            ("ForNextSentencePrediction", (_PAIR,), True),
        ],
    ),
    "roberta": _architectures(
        "roberta", "Roberta", "roberta.pooler.dense", [("ForMaskedLM", (_MLM,), False)]
    ),
    "electra": _architectures(
        "electra", "Electra", "electra.pooler.dense",
        [("ForPreTraining", ("replaced_token",), False), ("ForMaskedLM", (_MLM,), False)],
    ),
}  # fmt: skip


def architecture_for(family: str, heads: Iterable[str]) -> Architecture:
    """The class of `transformers` that has most of these heads and none besides."""
    have = set(heads)
    fitting = [row for row in ARCHITECTURES[family] if have.issuperset(row.heads)]
    return max(fitting, key=lambda row: len(row.heads))


def layout_groups(config: EncoderConfig) -> int:
    """`num_hidden_groups` over there: one group a layer unless attention and FFN share alike."""
    groups, layers = config.attention_groups, config.num_hidden_layers
    # transformers picks groups by a float quotient, which errs for a few pairs such as 18 and 14.
    exact = all(
        int(i / (layers / groups)) == group_of_layer(i, groups, layers) for i in range(layers)
    )
    return groups if exact and groups == config.ffn_groups else layers


def encoder_rows(config: EncoderConfig) -> list[TensorRow]:
    """Rows of embeddings, projection and blocks, with the family's prefix over there."""
    rows = []
    for ours, theirs in [("token", "word"), ("position", "position"), ("segment", "token_type")]:
        rows.append(
            TensorRow(
                f"encoder.embeddings.{ours}.weight", None, f"embeddings.{theirs}_embeddings.weight"
            )
        )
    rows += _dense("encoder.embeddings.norm", None, "embeddings.LayerNorm")
    if config.has_projection:
        rows += _dense("encoder.projection", None, _PROJECTION[config.family])
    blocks = _albert_blocks if config.family == "albert" else _bert_blocks
    rows += blocks(config)
    return [TensorRow(ours, third, f"{config.family}.{theirs}") for ours, third, theirs in rows]


def _albert_blocks(config: EncoderConfig) -> list[TensorRow]:
    rows, groups, inner = [], layout_groups(config), config.inner_group_num
    for group in range(groups):
        attention = group_of_layer(group, config.attention_groups, groups) * inner
        ffn = group_of_layer(group, config.ffn_groups, groups) * inner
        for i in range(inner):
            there = f"encoder.albert_layer_groups.{group}.albert_layers.{i}"
            rows += _block(f"encoder.attentions.{attention + i}", there, _ALBERT_ATTENTION)
            rows += _block(f"encoder.feed_forwards.{ffn + i}", there, _ALBERT_FFN)
    return rows


def _bert_blocks(config: EncoderConfig) -> list[TensorRow]:
    rows = []
    for layer in range(config.num_hidden_layers):
        there = f"encoder.layer.{layer}"
        rows += _block(f"encoder.attentions.{layer}", there, _BERT_ATTENTION)
        rows += _block(f"encoder.feed_forwards.{layer}", there, _BERT_FFN)
    return rows


def _block(ours: str, theirs: str, table: _Table) -> list[TensorRow]:
    rows = []
    for (module, third), there in table.items():
        rows += _dense(f"{ours}.{module}", third, f"{theirs}.{there}")
    return rows


def _dense(ours: str, third: int | None, theirs: str) -> list[TensorRow]:
    return [TensorRow(f"{ours}.{kind}", third, f"{theirs}.{kind}") for kind in _DENSE]


def pooler_rows(theirs: str) -> list[TensorRow]:
    """Rows of the pooler under the name an architecture gives it."""
    return _dense("pooler.dense", None, theirs)


def known_heads(family: str) -> list[str]:
    """The heads that both sides have."""
    return list(_HEADS[family])


def head_rows(family: str, head: str) -> list[TensorRow]:
    """Rows of one head that both sides have."""
    rows = []
    for module, theirs in _HEADS[family][head].items():
        ours = f"heads.{head}"
        if module:
            rows += _dense(f"{ours}.{module}", None, theirs)
        else:
            rows.append(TensorRow(f"{ours}.bias", None, f"{theirs}.bias"))
    return rows


def refused_names(heads: Iterable[str]) -> list[str]:
    """Names over there that must not load: written without elements, which their classes refuse.

    A folder with a head of ours would else open as their classifier with a random head. The size
    mismatch stops `from_pretrained`; `AutoModel` lists these names as unexpected and opens.
    """
    return list(dict.fromkeys(name for head in heads for name in _REFUSED.get(head, ())))


def tied_names(family: str) -> dict[str, str]:
    """Names over there that only repeat another tensor of ours: theirs -> ours."""
    weight, bias = _TIED[family]
    tied = {weight: "encoder.embeddings.token.weight"}
    if bias is not None:
        tied[bias] = f"heads.{_MLM}.bias"
    return tied

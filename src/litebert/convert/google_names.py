"""The names of Google's ALBERT and BERT variables, and Hugging Face's for the same tensors.

One table serves both directions. A TensorFlow `kernel` is the transpose of a PyTorch `weight`;
embedding tables and `output_weights` are not transposed.
"""

from __future__ import annotations

import re

# How the last part of a name differs, by the kind of layer.
LEAVES = {
    "dense": {"/kernel": ".weight", "/bias": ".bias"},
    "kernel": {"/kernel": ".weight"},
    "norm": {"/gamma": ".weight", "/beta": ".bias"},
    "output": {"output_weights": ".weight", "output_bias": ".bias"},
    "table": {"": ".weight"},
    "vector": {"": ""},
}

# (kind, TensorFlow, Hugging Face); {0} and {1} are numbers, MODEL is "albert" or "bert".
BOTH = (
    ("table", "bert/embeddings/word_embeddings", "MODEL.embeddings.word_embeddings"),
    ("table", "bert/embeddings/position_embeddings", "MODEL.embeddings.position_embeddings"),
    ("table", "bert/embeddings/token_type_embeddings", "MODEL.embeddings.token_type_embeddings"),
    ("norm", "bert/embeddings/LayerNorm", "MODEL.embeddings.LayerNorm"),
    ("output", "", "classifier"),
    ("output", "cls/squad/", "qa_outputs"),
)
GROUP = "bert/encoder/transformer/group_{0}/inner_group_{1}"
SHARED = "albert.encoder.albert_layer_groups.{0}.albert_layers.{1}"
MAPPING = "albert.encoder.embedding_hidden_mapping_in"
ALBERT = (
    ("dense", "bert/encoder/embedding_hidden_mapping_in", MAPPING),
    ("dense", f"{GROUP}/attention_1/self/query", f"{SHARED}.attention.query"),
    ("dense", f"{GROUP}/attention_1/self/key", f"{SHARED}.attention.key"),
    ("dense", f"{GROUP}/attention_1/self/value", f"{SHARED}.attention.value"),
    ("dense", f"{GROUP}/attention_1/output/dense", f"{SHARED}.attention.dense"),
    ("norm", f"{GROUP}/LayerNorm", f"{SHARED}.attention.LayerNorm"),
    ("dense", f"{GROUP}/ffn_1/intermediate/dense", f"{SHARED}.ffn"),
    ("dense", f"{GROUP}/ffn_1/intermediate/output/dense", f"{SHARED}.ffn_output"),
    ("norm", f"{GROUP}/LayerNorm_1", f"{SHARED}.full_layer_layer_norm"),
    ("dense", "bert/pooler/dense", "albert.pooler"),
    ("dense", "cls/predictions/transform/dense", "predictions.dense"),
    ("norm", "cls/predictions/transform/LayerNorm", "predictions.LayerNorm"),
    ("vector", "cls/predictions/output_bias", "predictions.bias"),
    ("output", "cls/seq_relationship/", "sop_classifier.classifier"),
    # SQuAD 2.0: the end is scored given the start; Hugging Face has no such head for ALBERT.
    ("dense", "start_logits/dense", "conditional_span.start"),
    ("dense", "end_logits/dense_0", "conditional_span.end_hidden"),
    ("norm", "end_logits/LayerNorm", "conditional_span.end_norm"),
    ("dense", "end_logits/dense_1", "conditional_span.end"),
    ("dense", "answer_class/dense_0", "conditional_span.answerable_hidden"),
    ("kernel", "answer_class/dense_1", "conditional_span.answerable"),
)
LAYER, OWN = "bert/encoder/layer_{0}", "bert.encoder.layer.{0}"
BERT = (
    ("dense", f"{LAYER}/attention/self/query", f"{OWN}.attention.self.query"),
    ("dense", f"{LAYER}/attention/self/key", f"{OWN}.attention.self.key"),
    ("dense", f"{LAYER}/attention/self/value", f"{OWN}.attention.self.value"),
    ("dense", f"{LAYER}/attention/output/dense", f"{OWN}.attention.output.dense"),
    ("norm", f"{LAYER}/attention/output/LayerNorm", f"{OWN}.attention.output.LayerNorm"),
    ("dense", f"{LAYER}/intermediate/dense", f"{OWN}.intermediate.dense"),
    ("dense", f"{LAYER}/output/dense", f"{OWN}.output.dense"),
    ("norm", f"{LAYER}/output/LayerNorm", f"{OWN}.output.LayerNorm"),
    ("dense", "bert/pooler/dense", "bert.pooler.dense"),
    ("dense", "cls/predictions/transform/dense", "cls.predictions.transform.dense"),
    ("norm", "cls/predictions/transform/LayerNorm", "cls.predictions.transform.LayerNorm"),
    ("vector", "cls/predictions/output_bias", "cls.predictions.bias"),
    ("output", "cls/seq_relationship/", "cls.seq_relationship"),
)
FAMILIES = {"albert": BOTH + ALBERT, "bert": BOTH + BERT}
MARKS = {"albert": "bert/encoder/transformer/group_", "bert": "bert/encoder/layer_"}

Rules = list[tuple[re.Pattern[str], str, bool]]  # pattern, replacement, whether to transpose


def renaming_rules(family: str, *, to_tensorflow: bool) -> Rules:
    """Each name of the table as a rule."""
    rules: Rules = []
    for kind, tensorflow, huggingface in FAMILIES[family]:
        for leaf, own_leaf in LEAVES[kind].items():
            names = [tensorflow + leaf, huggingface.replace("MODEL", family) + own_leaf]
            source, target = reversed(names) if to_tensorflow else names
            pattern = re.escape(source)
            for number in (r"\{0\}", r"\{1\}"):
                pattern = pattern.replace(number, r"(\d+)")
            rules.append((re.compile(pattern), target, leaf == "/kernel"))
    return rules


def rename(name: str, rules: Rules) -> tuple[str, bool] | None:
    """The name on the other side, and whether to transpose; None if no rule knows it."""
    for pattern, target, transpose in rules:
        if found := pattern.fullmatch(name):
            return target.format(*found.groups()), transpose
    return None

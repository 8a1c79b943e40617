"""Google's albert_config.json and bert_config.json, and Hugging Face's config.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from litebert.base.errors import FormatError

# The first of these tensors that is there tells the class; heads of tasks come first.
HEADS = (
    ("conditional_span.start.weight", "Model"),
    ("qa_outputs.weight", "ForQuestionAnswering"),
    ("classifier.weight", "ForSequenceClassification"),
    ("sop_classifier.classifier.weight", "ForPreTraining"),
    ("cls.seq_relationship.weight", "ForPreTraining"),
    ("predictions.bias", "ForMaskedLM"),
    ("cls.predictions.bias", "ForMaskedLM"),
)
WRITTEN = {head for _, head in HEADS} | {"Model", "ForMultipleChoice"}

# Google's code knows these two, and its GELU is the tanh form.
ACTIVATIONS = {"gelu": "gelu_new", "relu": "relu"}
EPSILON = 1e-12  # of every layer normalization in Google's code
NEEDED = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
OPTIONAL = (
    "num_hidden_groups",
    "inner_group_num",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "initializer_range",
)
# Switches of Google's ALBERT that were never released in another position.
SWITCHES = {"net_structure_type": 0, "gap_size": 0, "num_memory_blocks": 0, "down_scale_factor": 1}


def _sizes(where: str, config: dict[str, Any], family: str) -> dict[str, Any]:
    """The settings that both sides spell alike."""
    needed = (*NEEDED, "embedding_size") if family == "albert" else NEEDED
    for key in (*needed, "hidden_act"):
        if key not in config:
            raise FormatError(f"{where}: has no {key!r}; add it to the {family} config")
    return {key: config[key] for key in needed + OPTIONAL if key in config}


def from_google(path: Path, google: dict[str, Any], family: str) -> dict[str, Any]:
    """Hugging Face's settings for Google's, which were read from `path`."""
    sizes = _sizes(str(path), google, family)
    for key, value in SWITCHES.items():
        if google.get(key, value) != value:
            raise FormatError(f"{path}: {key} is {google[key]!r}, only {value} is known")
    activation = ACTIVATIONS.get(str(google["hidden_act"]))
    if activation is None:
        raise FormatError(
            f"{path}: hidden_act is {google['hidden_act']!r}, expected {' or '.join(ACTIVATIONS)}"
        )
    fixed = {"hidden_act": activation, "layer_norm_eps": EPSILON}
    return {"model_type": family} | sizes | fixed


def to_google(config: dict[str, Any], family: str) -> dict[str, Any]:
    """Google's settings for Hugging Face's."""
    sizes = _sizes("config", config, family)
    names = {own: google for google, own in ACTIVATIONS.items()}
    if config["hidden_act"] not in names:
        raise FormatError(
            f"hidden_act {config['hidden_act']!r}: Google's code has only {', '.join(names)} (its "
            "'gelu' is the tanh form), so the model cannot be written as a TensorFlow checkpoint; "
            "pretrain with --set model.hidden_act=gelu_new for that"
        )
    if config.get("layer_norm_eps", EPSILON) != EPSILON:
        raise FormatError(
            f"layer_norm_eps {config['layer_norm_eps']!r}: Google's code has {EPSILON} built in, "
            "so the model cannot be written as a TensorFlow checkpoint"
        )
    for name in config.get("architectures") or []:
        if name.removeprefix(family.capitalize()) not in WRITTEN:
            raise FormatError(f"{name}: Google's {family} code has no such head to write it for")
    switches = SWITCHES if family == "albert" else {}
    return {"hidden_act": names[config["hidden_act"]]} | sizes | switches


def architecture(family: str, tensors: dict[str, Tensor], regression: bool) -> dict[str, Any]:
    """The class that tensors are for, as config.json says it."""
    head = next((head for name, head in HEADS if name in tensors), "Model")
    if head != "ForSequenceClassification":
        return {"architectures": [family.capitalize() + head]}
    outputs = tensors["classifier.weight"].shape[0]
    if outputs == 1 and not regression:
        return {"architectures": [family.capitalize() + "ForMultipleChoice"]}
    labels = {str(number): f"LABEL_{number}" for number in range(outputs)}
    return {
        "architectures": [family.capitalize() + head],
        "id2label": labels,
        "label2id": {label: int(number) for number, label in labels.items()},
    }
